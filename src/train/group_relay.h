// Decoding once a group: ranks that hold parts of one model read the same images, so the first of them
// decodes and the others receive its batches, or make without decoding what they need. Knows neither images
// nor what becomes of them.
#pragma once

#include <memory>

#include "data/sample_source.h"
#include "dist/mesh_communicators.h"

namespace vitrail {

// The axes along which ranks have the same images.
inline constexpr AxisSet kSameImages = AxisSet(Axis::kTensor).with(Axis::kSequence);

// The axes along which a batch is handed on. The stages of a pipeline ask for the batches of an evaluation
// one by one together, so the first can tell them which samples were skipped; in training each asks at its
// own turns, and two that wait for each other's broadcast would wait for ever.
inline AxisSet handed_along(Purpose purpose, OnError on_error) {
  const bool stages = purpose == Purpose::kEval && on_error == OnError::kSkip;
  return stages ? kSameImages.with(Axis::kPipeline) : kSameImages;
}

// Returns whether a rank needs labels alone and knows them without the images: a stage behind the first,
// unless a sample that is skipped would change what it learns from.
inline bool needs_targets_only(const Mesh& mesh, Purpose purpose, OnError on_error) {
  const int stage = mesh.coordinate(Axis::kPipeline), last = mesh.size(Axis::kPipeline) - 1;
  const bool asks_for_none = purpose == Purpose::kTrain && stage < last;
  return stage > 0 && (on_error == OnError::kFail || asks_for_none);
}

// Returns whether another rank decodes for this one.
inline bool receives_images(const Mesh& mesh, AxisSet along = kSameImages) {
  return mesh.coordinate(along) > 0;
}

// Returns null where no other rank has the same images; `ranks` may be null and must outlive it otherwise.
// Collectives of the relay run where its loader is asked for a batch, on the rank's own thread.
inline std::shared_ptr<BatchRelay> group_relay(MeshCommunicators* ranks, AxisSet along = kSameImages) {
  class Relay : public BatchRelay {
   public:
    explicit Relay(Communicator& group) : group_(group) {}
    void pass(std::span<std::byte> bytes) override {
      group_.run({.kind = Collective::Kind::kBroadcast,
                  .dtype = DType::kU8,
                  .in = nullptr,
                  .out = bytes.data(),
                  .counts = {bytes.size()},
                  .peer = 0});
    }

   private:
    Communicator& group_;
  };
  if (!ranks || ranks->mesh().size(along) == 1) return nullptr;
  return std::make_shared<Relay>(ranks->over(along));
}

}  // namespace vitrail
