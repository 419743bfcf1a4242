#include "cuda_calls.h"

#include <gtest/gtest.h>

#include "backend/cuda/kernels.h"
#include "backend/cuda/plugin.h"
#include "blank_node.h"

namespace vitrail {

namespace {

using namespace cuda;

std::vector<CudaCall> recorded;

// The object's bytes; those between its members, which have no value, become zeros. Only the compilers that
// tests are built with know how.
template <typename T>
std::vector<std::byte> bytes_of(T object) {
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&object);
#endif
  const auto* first = reinterpret_cast<const std::byte*>(&object);
  return {first, first + sizeof(T)};
}

// Stands for a function that takes a session and one struct.
template <auto family, auto function>
struct Recorder;
template <typename Family, typename Call, Family Api::*family,
          void (*Family::*function)(Session&, const Call&)>
struct Recorder<family, function> {
  static void note(Session&, const Call& call) {
    recorded.push_back({place_in_api(family, function), bytes_of(call)});
  }
};

template <auto family, auto... functions>
void record(Api& api) {
  ((api.*family.*functions = Recorder<family, functions>::note), ...);
}

void record_others(Api& api) {
  api.session.use = [](Session&) {};
  api.rows.map = [](Session&, MapKind kind, const MapCall& call) {
    recorded.push_back({place_in_api(&Api::rows, &RowsApi::map) + static_cast<size_t>(kind), bytes_of(call)});
  };
  api.moves.clear = [](Session&, void* target, size_t bytes) {
    recorded.push_back(
        {place_in_api(&Api::moves, &MovesApi::clear), bytes_of(std::pair<void*, size_t>(target, bytes))});
  };
}

Api recording_api() {
  Api api{};
  record_others(api);
  record<&Api::gemms, &GemmApi::gemm, &GemmApi::tiled_gemm, &GemmApi::hopper_gemm, &GemmApi::hopper_fp8_gemm,
         &GemmApi::small_gemm, &GemmApi::finish, &GemmApi::gather_patches, &GemmApi::copy_rows>(api);
  record<&Api::fp8, &Fp8Api::quantize_rows, &Fp8Api::find_tops, &Fp8Api::quantize_columns>(api);
  record<&Api::attention, &AttentionApi::one_forward, &AttentionApi::short_forward,
         &AttentionApi::stream_forward, &AttentionApi::long_forward, &AttentionApi::plain_forward,
         &AttentionApi::weights, &AttentionApi::one_backward, &AttentionApi::stream_backward,
         &AttentionApi::group_backward, &AttentionApi::backward>(api);
  record<&Api::norms, &NormsApi::norm, &NormsApi::norm_grad, &NormsApi::rms, &NormsApi::rms_grad,
         &NormsApi::softmax, &NormsApi::softmax_grad>(api);
  record<&Api::rows, &RowsApi::sum, &RowsApi::dropout>(api);
  record<&Api::tokens, &TokensApi::move, &TokensApi::sum, &TokensApi::sincos, &TokensApi::max,
         &TokensApi::max_grad>(api);
  record<&Api::images, &ImagesApi::make>(api);
  record<&Api::losses, &LossesApi::forward, &LossesApi::backward, &LossesApi::sum>(api);
  record<&Api::updates, &UpdatesApi::copy, &UpdatesApi::accumulate, &UpdatesApi::average,
         &UpdatesApi::square_sum, &UpdatesApi::total, &UpdatesApi::step_control, &UpdatesApi::sgd,
         &UpdatesApi::adam, &UpdatesApi::lion, &UpdatesApi::lamb, &UpdatesApi::lamb_moments,
         &UpdatesApi::lamb_move>(api);
  record<&Api::moves, &MovesApi::copy>(api);
  return api;
}

std::vector<TensorView> views(DescSpan descs, const std::vector<std::byte*>& at, bool blind) {
  std::vector<TensorView> list;
  for (size_t i = 0; i < descs.size(); ++i) list.emplace_back(at[i], blind ? TensorDesc{} : descs[i]);
  return list;
}

// The inputs as the kernel wants them.
std::vector<TensorDesc> packed_inputs(const Kernel& kernel, const NodeView& node, const DeviceInfo& device) {
  std::vector<TensorDesc> ins(node.ins.begin(), node.ins.end());
  while (kernel.packing) {
    const Packing wanted = kernel.packing({node.op, ins, node.outs}, device);
    if (wanted.input < 0 || !ins[static_cast<size_t>(wanted.input)].packing.empty()) break;
    TensorDesc& input = ins[static_cast<size_t>(wanted.input)];
    input.packing = wanted.name, input.packed_rows = wanted.rows, input.packed_bytes = wanted.bytes;
  }
  return ins;
}

// Inputs from here on, then outputs, then scratch.
std::byte* nth_place(size_t i) {
  static std::vector<std::byte> memory(size_t{1} << 20);
  return memory.data() + 256 * i;
}

}  // namespace

std::vector<CudaCall> recorded_calls(const std::function<void()>& launch) {
  static const Api api = recording_api();
  recorded.clear();
  replace_api(&api);
  try {
    launch();
  } catch (...) {
    replace_api(nullptr);
    throw;
  }
  replace_api(nullptr);
  return recorded;
}

Operands separate_operands(const NodeView& node) {
  Operands operands;
  for (size_t i = 0; i < node.ins.size(); ++i) operands.ins.push_back(nth_place(i));
  for (size_t i = 0; i < node.outs.size(); ++i) operands.outs.push_back(nth_place(node.ins.size() + i));
  operands.scratch = nth_place(node.ins.size() + node.outs.size());
  return operands;
}

std::vector<CudaCall> calls_of(const Prepared& kernel, const NodeView& node, const DeviceInfo& device,
                               const Operands& operands, uint64_t fixed, bool blind) {
  static const BlankOp blank;
  static ThreadPool pool(1);
  static std::byte session;  // the recording functions do not look at it
  const DeviceInfo unknown;
  const std::vector<TensorView> ins = views(node.ins, operands.ins, blind),
                                outs = views(node.outs, operands.outs, blind);
  const LaunchContext context{pool, blind ? unknown : device, &session};
  return recorded_calls([&] {
    kernel.run(
        {blind ? blank : node.op, ins, outs, {operands.scratch, kernel.scratch_bytes}, context, fixed});
  });
}

int expect_blind_launches(const std::string& name, const NodeView& node, const Operands& operands,
                          OpPtr twin) {
  const DeviceInfo device = planned_cuda_device("H200", 90, 132);
  struct Accepting {
    const Kernel* kernel;
    std::vector<TensorDesc> ins;
    Prepared prepared, outliving;
  };
  std::vector<Accepting> accepting;
  const std::vector<Kernel>* list = cuda_backend().kernels_of(node);
  for (const Kernel& kernel : list ? *list : std::vector<Kernel>()) {
    const std::vector<TensorDesc> ins = packed_inputs(kernel, node, device);
    const NodeView packed{node.op, ins, node.outs};
    if (!kernel.declines(packed, device).empty()) continue;
    accepting.push_back({&kernel, ins, kernel.prepare(packed, device),
                         kernel.prepare({twin ? *twin : node.op, ins, node.outs}, device)});
  }
  twin.reset();
  for (const auto& [kernel, ins, prepared, outliving] : accepting)
    for (const uint64_t fixed : {uint64_t{0}, ~uint64_t{0}}) {
      const NodeView packed{node.op, ins, node.outs};
      const std::vector<CudaCall> calls = calls_of(prepared, packed, device, operands, fixed, false);
      EXPECT_FALSE(calls.empty()) << name << " by " << kernel->name;
      EXPECT_TRUE(calls == calls_of(outliving, packed, device, operands, fixed, true))
          << name << " by " << kernel->name;
    }
  return static_cast<int>(accepting.size());
}

}  // namespace vitrail
