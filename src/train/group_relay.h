// Decoding once a group: ranks that hold parts of one model read the same images, so the first of them
// decodes and the others receive its batches. Knows neither images nor what becomes of them.
#pragma once

#include <memory>

#include "data/sample_source.h"
#include "dist/mesh_communicators.h"

namespace vitrail {

// The axes along which ranks have the same images.
inline constexpr AxisSet kSameImages = AxisSet(Axis::kTensor).with(Axis::kSequence);

// Whether another rank decodes for this one.
inline bool receives_images(const Mesh& mesh) {
  return mesh.coordinate(kSameImages) > 0;
}

// Null where no other rank has the same images; `ranks` may be null and must outlive it otherwise.
// Collectives of the relay run where its loader is asked for a batch, on the rank's own thread.
inline std::shared_ptr<BatchRelay> group_relay(MeshCommunicators* ranks) {
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
  if (!ranks || ranks->mesh().size(kSameImages) == 1) return nullptr;
  return std::make_shared<Relay>(ranks->over(kSameImages));
}

}  // namespace vitrail
