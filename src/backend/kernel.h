// Kernels and how one is chosen. Each backend lists its kernels fastest first. Whether one accepts a node is
// answered from descriptions alone; then it is prepared for the node, once, and from then on only run. Knows
// no device in use: what is prepared is launched by whoever holds the addresses.
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

// A node as selection sees it.
struct NodeView {
  const Op& op;
  DescSpan ins, outs;
};

// Where a kernel runs.
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
};

// The storage order a kernel wants for one of its parameters.
struct Packing {
  int input = -1;         // which input; -1: it wants none packed
  std::string_view name;  // TensorDesc::packing
  int64_t rows = 0;       // TensorDesc::packed_rows
  size_t bytes = 0;
};

// What a kernel rounds to 16 bits on its way, beside its results: how exact it can be, which --check ref and
// the op tests hold it to. Sums are f32 everywhere.
struct Rounding {
  bool gemm = false;      // the GEMM of a fused node, before what follows it
  bool members = false;   // the result of every member of a fused node
  bool weights = false;   // attention's weights and the gradients of its scores
  bool residual = false;  // a GEMM with its bias or its residual, before the other is added
  bool bias = false;      // a bias of f32, before it is added
  bool gelu = false;      // none, but a library's gelu of less than f32's accuracy
};

using Declines = std::string (*)(const NodeView&, const DeviceInfo&);
using ScratchBytes = size_t (*)(const NodeView&, const DeviceInfo&);
using RunKernel = void (*)(const KernelArgs&);

// A kernel made ready for one node: what it read from the op and the shapes lies in `run`, which may be
// called from several threads and refers to the node's op.
struct Prepared {
  size_t scratch_bytes = 0;
  std::function<void(const KernelArgs&)> run;
};
using Prepare = std::function<Prepared(const NodeView&, const DeviceInfo&)>;

// Of a kernel that has nothing worth keeping: it reads its node at every launch.
inline Prepare unprepared(ScratchBytes scratch, RunKernel run) {
  return [=](const NodeView& node, const DeviceInfo& device) { return Prepared{scratch(node, device), run}; };
}

struct Kernel {
  const char* name;
  // Empty when it can run the node, else why not ("weights are not packed").
  Declines declines;
  // Of a node it does not decline.
  Prepare prepare;
  // Which input it wants packed and how; asked again with that one packed, until there is none. Null: none,
  // ever.
  Packing (*packing)(const NodeView&, const DeviceInfo&) = nullptr;
  // A variant of another in the list: runs only where a table names it, or where `by_default` says so.
  bool only_by_table = false;
  bool (*by_default)(const NodeView&, const DeviceInfo&) = nullptr;
  Rounding (*rounding)(const NodeView&) = nullptr;  // null: its results alone

  size_t scratch_bytes(const NodeView& node, const DeviceInfo& device) const {
    return prepare(node, device).scratch_bytes;
  }
  // Prepares and runs: for what is launched once.
  void run(const KernelArgs& args) const;
};

// One line of a backend's list: an op's kernels, fastest first.
struct OpKernels {
  std::string_view op;  // the op's kind; "fused" serves every fused node
  std::vector<Kernel> kernels;
};

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
  // Why it has no GEMMs of this arithmetic on the device, whatever their sizes; empty: it may have.
  virtual std::string lacks(Arithmetic, const DeviceInfo&) const { return {}; }

  // The kernels to ask about a node, in order: those the device's table prefers, then the list.
  std::vector<const Kernel*> candidates(const NodeView& node, const DeviceInfo& device) const;
  // By what a table may know the node; nothing: its kernels are not tuned.
  virtual std::optional<TuneKey> tune_key(const NodeView&, const DeviceInfo&) const { return std::nullopt; }

  // The first candidate that accepts; Error(kDevice) with all reasons when none does.
  Choice choose(const NodeView& node, const DeviceInfo& device) const;
  const std::vector<Kernel>* find(std::string_view op_kind) const;
  // The list for a node; null: it has none.
  const std::vector<Kernel>* kernels_of(const NodeView& node) const;
  // What the pass pipeline goes by when it rewrites a program for it.
  RewriteTraits traits() const;

 protected:
  // What its kernels take in beside their own op.
  virtual RewriteTraits fusing() const { return {}; }
};

// Error(kUsage) where the backend lacks the arithmetic.
void require_arithmetic(const Backend& backend, const DeviceInfo& device, Arithmetic arithmetic);

// A backend of the registry by name; Error(kUsage) for an unknown one.
const Backend& find_backend(std::string_view name);

}  // namespace vitrail
