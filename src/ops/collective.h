// Defines what ranks do together, as ops: the passes that share a program out to ranks record them, the
// executor hands them to the communicator of their axes. They move flat memory; ops/flat.h brings values into
// that order. What comes from the host's memory beside the program is here, too, in the same two halves.
#pragma once

#include "graph/op.h"
#include "tensor/mesh.h"

namespace vitrail {

// kSend and kReceive are the two ranks of a pair: stages of a pipeline.
enum class CollectiveKind : uint8_t { kAllReduce, kReduceScatter, kAllGather, kAllToAll, kSend, kReceive };
inline constexpr size_t kCollectiveKinds = 6;

class CollectiveOp : public Op {
 public:
  struct Form {
    CollectiveKind kind = CollectiveKind::kAllReduce;
    AxisSet axes;                // the ranks that take part differ in these alone
    std::vector<size_t> counts;  // elements, as dist/communicator.h says
    TensorDesc out = {};         // the result, where it is a value of its own
    // A collective in place changes its first input, a persistent value that holds the parts of all ranks.
    bool in_place = false;
    // A started collective is complete only after a WaitOp that lists its values.
    bool started = false;
    // A send and a receive name the other's place along the axes and the channel that keeps their order.
    int peer = 0, channel = 0;

    bool is_pair() const { return kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive; }
  };
  explicit CollectiveOp(Form form) : form_(std::move(form)) {}

  std::string_view kind() const override;  // "all_reduce"
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {kEveryDim}; }
  bool is_launched() const override { return false; }
  double flops(DescSpan, DescSpan) const override { return 0; }
  std::string attributes() const override;
  int in_place_input() const override;
  std::span<const int> updates() const override;
  bool keeps() const override { return form_.kind == CollectiveKind::kSend; }

  const Form& form() const { return form_; }
  // The bytes that one of `ranks` hands to the others by the best algorithm: 2 (p-1)/p n of an all-reduce,
  // n of a send, (p-1)/p n of the rest, n being the whole.
  double bytes_sent(DescSpan ins, int ranks) const;

 private:
  Form form_;
};

// Returns the op as a collective; null when it is another.
inline const CollectiveOp* as_collective(const Op& op) {
  return dynamic_cast<const CollectiveOp*>(&op);
}

// Starts the way of a persistent value from the host's memory to the device's, which a WaitOp ends. Where
// both memories are one it is a copy.
class UploadOp : public Op {
 public:
  static constexpr std::string_view kKind = "upload";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override { return {ins[0]}; }
  DimsRule dims() const override { return {kEveryDim}; }
  bool is_launched() const override { return false; }
  double flops(DescSpan, DescSpan) const override { return 0; }
};

// Ends a started collective or an upload. It lists what that reads and writes, so that it lives until here;
// the first of them is its name. It computes nothing.
class WaitOp : public Op {
 public:
  static constexpr std::string_view kKind = "wait";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan) const override { return {}; }
  DimsRule dims() const override { return {kEveryDim}; }
  bool is_launched() const override { return false; }
  double flops(DescSpan, DescSpan) const override { return 0; }
  bool keeps() const override { return true; }
};

}  // namespace vitrail
