// Kernels and how one is chosen. Each backend lists its kernels fastest first. Whether a kernel accepts a
// node is decided from descriptions alone; the kernel is then prepared for the node once, and only run at
// each step. Knows no device in use: whoever holds the addresses launches what was prepared.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/device_info.h"
#include "base/thread_pool.h"
#include "graph/op.h"
#include "graph/rewrite_traits.h"

namespace vitrail {

// A node as the kernel choice sees it: its op and the descriptions of its inputs and outputs.
struct NodeView {
  const Op& op;
  DescSpan ins, outs;
};

// Holds what a kernel runs on.
struct LaunchContext {
  ThreadPool& pool;
  const DeviceInfo& device;
  void* stream = nullptr;  // Device::stream() of the device
};

struct KernelArgs {
  const Op& op;
  std::span<const TensorView> ins, outs;
  std::span<std::byte> scratch;
  const LaunchContext& context;
  // One bit for each of the first inputs: set for a parameter in a program that updates nothing, which a
  // kernel may read while earlier nodes still run.
  uint64_t fixed = 0;

  bool is_fixed(int input) const { return input < 64 && fixed >> input & 1; }
};

// The packed layout that a kernel wants for one of its parameters.
struct Packing {
  int input = -1;         // which input; -1: it wants none packed
  std::string_view name;  // TensorDesc::packing
  int64_t rows = 0;       // TensorDesc::packed_rows
  size_t bytes = 0;
};

// Says what a kernel rounds to 16 bits in between, beside its results. It bounds the kernel's accuracy, which
// --check ref and the op tests verify. Sums are f32 in every kernel.
struct Rounding {
  bool gemm = false;      // the sums of a fused node's GEMM, before its epilogue
  bool members = false;   // the result of every member of a fused node
  bool weights = false;   // attention's weights and the gradients of its scores
  bool residual = false;  // the sums with the bias or the residual, before the other one is added
  bool bias = false;      // an f32 bias, before it is added
  bool gelu = false;      // not a rounding, but a library's gelu of less than f32's accuracy
};

using Declines = std::string (*)(const NodeView&, const DeviceInfo&);
using RunKernel = void (*)(const KernelArgs&);

// A kernel prepared for one node: `run` holds what was read from the op and the shapes, may be called from
// several threads, and outlives the node.
struct Prepared {
  size_t scratch_bytes = 0;
  std::function<void(const KernelArgs&)> run;
};
using Prepare = std::function<Prepared(const NodeView&, const DeviceInfo&)>;

// The preparation of a kernel of the reference, which reads its node at every launch for the sake of being
// read, and needs no scratch.
inline Prepare unprepared(RunKernel run) {
  return [=](const NodeView&, const DeviceInfo&) { return Prepared{0, run}; };
}

struct Kernel {
  const char* name;
  // Returns an empty text when the kernel can run the node, else the reason why not ("weights are not
  // packed").
  Declines declines;
  // May be called only for a node that the kernel does not decline.
  Prepare prepare;
  // Returns which input the kernel wants packed and how. It is called again with that input packed, until it
  // returns none. Null: the kernel never wants a packed input.
  Packing (*packing)(const NodeView&, const DeviceInfo&) = nullptr;
  // The kernel is a variant of another one in the list and runs only where a table of kernels names it, or
  // where `by_default` returns true.
  bool only_by_table = false;
  bool (*by_default)(const NodeView&, const DeviceInfo&) = nullptr;
  Rounding (*rounding)(const NodeView&) = nullptr;  // null: its results alone

  size_t scratch_bytes(const NodeView& node, const DeviceInfo& device) const {
    return prepare(node, device).scratch_bytes;
  }
  // Prepares the kernel and runs it, for work that is launched once.
  void run(const KernelArgs& args) const;
};

// One row of a backend's list: the kernels of an op, fastest first. Rows are made from the op's class.
struct OpKernels {
  std::string op;  // row_name() of what they serve
  std::vector<Kernel> kernels;
};
template <typename Served>
OpKernels row(std::vector<Kernel> kernels) {
  return {std::string(Served::kKind), std::move(kernels)};
}
OpKernels fused_row(std::vector<Kernel> kernels);  // of every fused node
// The row that serves an op: its kind's, or the one of all fused nodes.
std::string_view row_name(const Op& op);

struct Choice {
  const Kernel* kernel = nullptr;     // null: a fused node that runs member by member
  std::vector<std::string> declined;  // "onednn tiles: why", in list order
};

enum class Arithmetic;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* name() const = 0;
  virtual const std::vector<OpKernels>& kernels() const = 0;
  // Returns why the backend has no GEMMs of this arithmetic on the device, whatever their sizes; empty: it
  // may have some.
  virtual std::string unsupported_reason(Arithmetic, const DeviceInfo&) const { return {}; }

  // The kernels to try for a node, in order: those that the device's table prefers, then the list.
  std::vector<const Kernel*> candidates(const NodeView& node, const DeviceInfo& device) const;
  // The key under which a table of kernels may hold the node; nullopt: its kernels are not tuned.
  virtual std::optional<TuneKey> tune_key(const NodeView&, const DeviceInfo&) const { return std::nullopt; }

  // The first candidate that accepts the node; throws Error(kDevice) with all reasons when none does.
  Choice choose(const NodeView& node, const DeviceInfo& device) const;
  const std::vector<Kernel>* find(std::string_view row) const;
  // The list of kernels for a node's op; null: the backend has none.
  const std::vector<Kernel>* kernels_of(const NodeView& node) const;
  // The traits by which the pass pipeline rewrites a program for this backend.
  RewriteTraits traits() const;

 protected:
  // The neighbours that this backend's kernels can fuse with their own op.
  virtual RewriteTraits fusing() const { return {}; }
};

// Throws Error(kUsage) where the backend lacks the arithmetic.
void require_arithmetic(const Backend& backend, const DeviceInfo& device, Arithmetic arithmetic);

// The backend of the registry with this name; throws Error(kUsage) for an unknown name.
const Backend& find_backend(std::string_view name);

}  // namespace vitrail
