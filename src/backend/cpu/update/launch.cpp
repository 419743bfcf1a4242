// Launches of optimizer updates on the CPU: parameters, gradient sums and states are f32, the step's numbers
// f64.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/launch.h"
#include "backend/cpu/tiles.h"
#include "ops/update/adam.h"
#include "ops/update/control.h"
#include "ops/update/ema.h"
#include "ops/update/lamb.h"
#include "ops/update/lion.h"
#include "ops/update/sgd.h"

namespace vitrail::cpu {

namespace {

// The elements of an update, before they are cut into chunks.
struct Update {
  StepValues step;
  UpdateElements elements;

  Update(const KernelArgs& args, int64_t count, const UpdateScale& scale)
      : step(StepValues::read(args.ins.back().as<double>())),
        elements{.w = args.ins[0].as<float>(),
                 .sum = args.ins[1].as<float>(),
                 .count = count,
                 .factor = static_cast<float>(step.grad_factor),
                 .coupled = static_cast<float>(scale.coupled(step)),
                 .shrink = static_cast<float>(scale.shrink(step)),
                 .lr = static_cast<float>(scale.lr(step))} {}

  // Returns whether the step is skipped; where it is, its gradient sums are zeroed.
  bool skipped() const {
    if (step.skip == 0) return false;
    std::memset(elements.sum, 0, static_cast<size_t>(elements.count) * sizeof(float));
    return true;
  }
  UpdateElements part(int64_t first, int64_t count) const {
    UpdateElements some = elements;
    some.w += first;
    some.sum += first;
    some.count = count;
    return some;
  }
};

MomentElements moments_of(const KernelArgs& args, const Moments& moments, double step) {
  return {.m = args.ins[2].as<float>(),
          .v = args.ins[3].as<float>(),
          .m_rate = static_cast<float>(1 - moments.beta1),
          .v_rate = static_cast<float>(1 - moments.beta2),
          .correction = static_cast<float>(moments.m_correction(step)),
          .root = static_cast<float>(moments.root_v_correction(step)),
          .eps = static_cast<float>(moments.eps)};
}

MomentElements part(MomentElements moments, int64_t first) {
  moments.m += first;
  moments.v += first;
  return moments;
}

// Calls body(first, count) for chunks of the elements of a parameter.
template <typename Body>
void spread_elements(const CpuContext& context, int64_t count, const Body& body) {
  spread_rows(context, count, 1, body);
}

int64_t chunks_of(const TensorDesc& desc) {
  return ceil_div(desc.elems(), kSquareSumChunk);
}

// The parameter, its gradient sum and its states have one shape; the remaining inputs are the step's numbers.
std::string declines_update(const NodeView& node, const DeviceInfo&) {
  for (const TensorDesc& desc : node.ins)
    if (desc.shape == node.ins[0].shape && desc.dtype != DType::kF32)
      return strf("updates f32 only, not %s", to_string(desc.dtype));
  return {};
}

// An update of type Op, run by `run` with the elements that the parameter has.
template <typename Op, void (*run)(const KernelArgs&, const Op&, int64_t count)>
Prepared prepare_update(const NodeView& node, const DeviceInfo&) {
  return {0, [op = static_cast<const Op&>(node.op), count = node.ins[0].elems()](const KernelArgs& args) {
            run(args, op, count);
          }};
}

void run_sgd_update(const KernelArgs& args, const SgdUpdateOp& op, int64_t all) {
  const Update update(args, all, op.scale());
  if (update.skipped()) return;
  const CpuContext context = context_of(args);
  const auto momentum = static_cast<float>(op.momentum());
  float* m = op.momentum() > 0 ? args.ins[2].as<float>() : nullptr;
  spread_elements(context, all, [&](int64_t first, int64_t count) {
    context.isa.sgd_update(update.part(first, count), m ? m + first : nullptr, momentum, op.nesterov());
  });
}

void run_adam_update(const KernelArgs& args, const AdamUpdateOp& op, int64_t all) {
  const Update update(args, all, op.scale());
  if (update.skipped()) return;
  const CpuContext context = context_of(args);
  const MomentElements moments = moments_of(args, op.moments(), update.step.step);
  spread_elements(context, all, [&](int64_t first, int64_t count) {
    context.isa.adam_update(update.part(first, count), part(moments, first));
  });
}

void run_lion_update(const KernelArgs& args, const LionUpdateOp& op, int64_t all) {
  const Update update(args, all, op.scale());
  if (update.skipped()) return;
  const CpuContext context = context_of(args);
  float* m = args.ins[2].as<float>();
  spread_elements(context, all, [&](int64_t first, int64_t count) {
    context.isa.lion_update(update.part(first, count), m + first, static_cast<float>(1 - op.beta1()),
                            static_cast<float>(1 - op.beta2()));
  });
}

void run_lamb_update(const KernelArgs& args, const LambUpdateOp& op, int64_t all) {
  Update update(args, all, op.scale());
  if (update.skipped()) return;
  const CpuContext context = context_of(args);
  const MomentElements moments = moments_of(args, op.moments(), update.step.step);
  const int64_t chunks = ceil_div(all, kSquareSumChunk);
  auto* squares = reinterpret_cast<SquareSums*>(context.scratch.data());
  const auto each_chunk = [&](const auto& body) {
    spread(context, context.parallel.softmax, chunks, [&](int64_t chunk, int) {
      const int64_t first = chunk * kSquareSumChunk;
      body(chunk, update.part(first, std::min(kSquareSumChunk, all - first)), part(moments, first));
    });
  };
  each_chunk([&](int64_t chunk, const UpdateElements& elements, const MomentElements& some) {
    squares[chunk] = context.isa.lamb_moments(elements, some);
  });
  SquareSums total;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    total.param += squares[chunk].param;
    total.update += squares[chunk].update;
  }
  update.elements.lr = static_cast<float>(op.scale().lr(update.step) *
                                          op.ratio(std::sqrt(total.param), std::sqrt(total.update)));
  each_chunk([&](int64_t, const UpdateElements& elements, const MomentElements& some) {
    context.isa.lamb_update(elements, some);
  });
}

Prepared prepare_lamb_update(const NodeView& node, const DeviceInfo& device) {
  Prepared prepared = prepare_update<LambUpdateOp, run_lamb_update>(node, device);
  prepared.scratch_bytes = static_cast<size_t>(chunks_of(node.ins[0])) * sizeof(SquareSums);
  return prepared;
}

void run_ema_update(const KernelArgs& args, const EmaUpdateOp& op, int64_t all) {
  const StepValues step = StepValues::read(args.ins[3].as<double>());
  if (step.skip != 0) return;
  const CpuContext context = context_of(args);
  const auto rate = static_cast<float>(1 - op.decay(args.ins[2].as<double>(), step));
  const float* w = args.ins[1].as<float>();
  float* ema = args.ins[0].as<float>();
  spread_elements(context, all, [&](int64_t first, int64_t count) {
    context.isa.move_towards(w + first, rate, count, ema + first);
  });
}

std::string declines_square_sum(const NodeView& node, const DeviceInfo&) {
  for (const TensorDesc& desc : node.ins)
    if (desc.dtype != DType::kF32) return strf("takes f32 only, not %s", to_string(desc.dtype));
  return {};
}

// The sums of chunks of several values, added in the order of the chunks.
struct SquareSum {
  struct Chunk {
    size_t input;
    int64_t first, count;
  };
  std::vector<Chunk> chunks;

  void operator()(const KernelArgs& args) const {
    const CpuContext context = context_of(args);
    auto* parts = reinterpret_cast<double*>(context.scratch.data());
    spread(context, context.parallel.softmax, std::ssize(chunks), [&](int64_t i, int) {
      const Chunk& chunk = chunks[static_cast<size_t>(i)];
      parts[i] = context.isa.square_sum(args.ins[chunk.input].as<float>() + chunk.first, chunk.count);
    });
    double total = 0;
    for (size_t i = 0; i < chunks.size(); ++i) total += parts[i];
    *args.outs[0].as<double>() = total;
  }
};

Prepared prepare_square_sum(const NodeView& node, const DeviceInfo&) {
  SquareSum sum;
  for (size_t i = 0; i < node.ins.size(); ++i)
    for (int64_t first = 0, all = node.ins[i].elems(); first < all; first += kSquareSumChunk)
      sum.chunks.push_back({i, first, std::min(kSquareSumChunk, all - first)});
  const size_t bytes = sum.chunks.size() * sizeof(double);
  return {bytes, std::move(sum)};
}

Kernel update_kernel(PrepareNode prepare) {
  return kernel("one pass", prepare, declines_update);
}

}  // namespace

std::vector<OpKernels> update_kernels() {
  return {
      row<SquareSumOp>({kernel("chunks in double", prepare_square_sum, declines_square_sum)}),
      row<SgdUpdateOp>({update_kernel(prepare_update<SgdUpdateOp, run_sgd_update>)}),
      row<AdamUpdateOp>({update_kernel(prepare_update<AdamUpdateOp, run_adam_update>)}),
      row<LionUpdateOp>({update_kernel(prepare_update<LionUpdateOp, run_lion_update>)}),
      row<LambUpdateOp>({update_kernel(prepare_lamb_update)}),
      row<EmaUpdateOp>({update_kernel(prepare_update<EmaUpdateOp, run_ema_update>)}),
  };
}

}  // namespace vitrail::cpu
