// Every parameter's gradient of a step on a GPU (gradient_case.h), and that the kernels of the sizes which
// matter made it: those of attention for 197 and for 577 tokens of 64, our own GEMM with the gelu's slope and
// its gradient where there are many rows, and GEMMs in fp8 and tf32. Which kernels a Hopper GPU runs is
// planned without one, too.
#include "cuda_test.h"
#include "gradient_case.h"
#include "ops/fused.h"

namespace vitrail::golden {
namespace {

// A GPU's kernels with every GEMM of the blocks in fp8 that is to be, however small; it would be bf16.
class CudaInFp8 : public Backend {
 public:
  const char* name() const override { return cuda_backend().name(); }
  const std::vector<OpKernels>& kernels() const override { return cuda_backend().kernels(); }
  std::string unsupported_reason(Arithmetic arithmetic, const DeviceInfo& device) const override {
    return cuda_backend().unsupported_reason(arithmetic, device);
  }
  std::optional<TuneKey> tune_key(const NodeView& node, const DeviceInfo& device) const override {
    return cuda_backend().tune_key(node, device);
  }

 protected:
  RewriteTraits fusing() const override {
    RewriteTraits traits = cuda_backend().traits();
    traits.fp8_rows = traits.fp8_trained_width = 0;
    return traits;
  }
};
const Backend& cuda_in_fp8() {
  static const CudaInFp8 backend;
  return backend;
}

bool is_gemm_or_attention(const Op& op) {
  return op.kind().starts_with("linear") || op.kind().starts_with("attention");
}

// The kernel of a GEMM or of attention, by the node's name.
std::string kernel_of(const StepPlan& plan, const std::string& name) {
  std::string kernels;
  for (size_t i = 0; i < plan.micro.node_count(); ++i) {
    const Node& node = plan.micro.program.nodes[i];
    if (node.name != name || !is_gemm_or_attention(*node.op)) continue;
    for (const Launch& launch : plan.micro.choices[i].launches)
      kernels += (kernels.empty() ? "" : "; ") + std::string(launch.kernel->name);
  }
  return kernels;
}

void expect_kernels(const StepPlan& plan, const std::string& block,
                    const std::map<std::string, std::string>& wanted) {
  for (const auto& [node, kernel] : wanted) EXPECT_EQ(kernel_of(plan, block + node), kernel) << block << node;
}

// In the last block one query an image is left.
void expect_attention(const StepPlan& plan, const char* forward, const char* backward) {
  for (const char* block : {"blocks.0.", "blocks.1."})
    expect_kernels(plan, block, {{"attn.softmax", forward}, {"attn.softmax.dx", backward}});
  expect_kernels(plan, "blocks.2.", {{"attn.softmax", "one_query"}, {"attn.softmax.dx", "one_query"}});
}

void expect_attention_of(const StepPlan& plan, std::string_view name) {
  if (name == "tokens_197") return expect_attention(plan, "short_heads", "group_heads");
  expect_attention(plan, "stream_heads", "stream_heads");
}

// 4 x 197 rows are too few for our own GEMM; in the last block there is a row an image.
void expect_bf16(const StepPlan& plan, const StepCase& c) {
  expect_attention_of(plan, c.name);
  const char* mlp = c.name == "tokens_197" && c.batch < kManyImages ? "cublaslt" : "hopper";
  for (const char* block : {"blocks.0.", "blocks.1."})
    expect_kernels(plan, block, {{"mlp.fc1", mlp}, {"mlp.fc2.dx", mlp}, {"mlp.fc2.dw", "cublaslt"}});
  expect_kernels(plan, "blocks.2.", {{"mlp.fc1", "hopper_small"}});
}

// The gradient of a weight stays in bf16.
void expect_fp8(const StepPlan& plan, const StepCase& c) {
  expect_attention_of(plan, c.name);
  const char *library = "cublaslt fp8, weight rounded too", *own = "hopper fp8, weight rounded too";
  for (const char* block : {"blocks.0.", "blocks.1.", "blocks.2."}) {
    expect_kernels(plan, block, {{"mlp.fc1", own}, {"mlp.fc2.dx", own}});
    for (const char* gemm : {"attn.qkv", "attn.proj", "mlp.fc2", "attn.qkv.dx", "attn.proj.dx", "mlp.fc1.dx"})
      expect_kernels(plan, block, {{gemm, library}});
    for (const char* gemm : {"attn.qkv.dw", "attn.proj.dw", "mlp.fc1.dw", "mlp.fc2.dw"})
      expect_kernels(plan, block, {{gemm, "cublaslt"}});
  }
}

Arithmetic arithmetic_within(const Op& op) {
  if (const auto* fused = dynamic_cast<const FusedOp*>(&op)) return arithmetic_of(*fused->members()[0].op);
  return arithmetic_of(op);
}

// f32 and tf32 have one kernel, which asks the node: four GEMMs of three blocks and their gradients.
void expect_tf32(const StepPlan& plan) {
  int gemms = 0;
  for (const Node& node : plan.micro.program.nodes) {
    if (node.block < 0 || !node.op->kind().starts_with("linear")) continue;
    EXPECT_EQ(arithmetic_within(*node.op), Arithmetic::kTF32) << node.name;
    EXPECT_EQ(kernel_of(plan, node.name), "cublaslt") << node.name;
    ++gemms;
  }
  EXPECT_EQ(gemms, 3 * 4 * 3);
}

StepPlan planned(const StepCase& c, const Backend& backend = cuda_backend()) {
  return plan_step(c.config, backend, planned_cuda_device("H200", 90, 132));
}

class GradientKernels : public ::testing::TestWithParam<const char*> {};

TEST_P(GradientKernels, InBf16) {
  for (const StepTypes& types : {kInBf16, kInBf16Stream}) {
    const StepCase c = load_gradient_case(GetParam(), types);
    expect_bf16(planned(c), c);
  }
}

TEST_P(GradientKernels, InFp8) {
  const StepCase c = load_gradient_case(GetParam(), kInFp8);
  expect_fp8(planned(c, cuda_in_fp8()), c);
}

TEST_P(GradientKernels, InTf32) {
  expect_tf32(planned(load_gradient_case(GetParam(), kInTf32)));
}

TEST(GradientKernelsOfManyRows, InBf16) {
  const StepCase c = load_gradient_case("tokens_197", kInBf16, kManyImages);
  expect_bf16(planned(c), c);
}

bool on_hopper() {
  return hopper_problem().empty();
}

class CudaGradientGolden : public CudaTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(CudaGradientGolden, InFloat) {
  const StepCase c = load_gradient_case(GetParam(), kInFloat);
  CaseRun run(c, cuda_backend(), cuda_device());
  expect_gradients(c, run, kFloat);
}

TEST_P(CudaGradientGolden, InTf32) {
  const StepCase c = load_gradient_case(GetParam(), kInTf32);
  CaseRun run(c, cuda_backend(), cuda_device());
  expect_tf32(run.plan());
  expect_gradients(c, run, kTf32, &kFloat);
}

TEST_P(CudaGradientGolden, InBf16) {
  const StepCase c = load_gradient_case(GetParam(), kInBf16);
  CaseRun run(c, cuda_backend(), cuda_device());
  if (on_hopper()) expect_bf16(run.plan(), c);
  expect_gradients(c, run, kHalf, &kFloat);
}

TEST_P(CudaGradientGolden, InBf16WithItsStream) {
  const StepCase c = load_gradient_case(GetParam(), kInBf16Stream);
  CaseRun run(c, cuda_backend(), cuda_device());
  if (on_hopper()) expect_bf16(run.plan(), c);
  expect_gradients(c, run, kHalfStream, &kFloat);
}

TEST_P(CudaGradientGolden, InFp8) {
  if (const std::string problem = hopper_problem(); !problem.empty()) GTEST_SKIP() << problem;
  const StepCase c = load_gradient_case(GetParam(), kInFp8);
  CaseRun run(c, cuda_in_fp8(), cuda_device());
  expect_fp8(run.plan(), c);
  expect_gradients(c, run, kFp8, &kHalf);
}

class CudaGradientsOfManyRows : public CudaTest {};

TEST_F(CudaGradientsOfManyRows, InBf16) {
  const StepCase c = load_gradient_case("tokens_197", kInBf16, kManyImages),
                 in_float = load_gradient_case("tokens_197", kInFloat, kManyImages);
  CaseRun run(c, cuda_backend(), cuda_device()), exact(in_float, cpu_backend());
  if (on_hopper()) expect_bf16(run.plan(), c);
  expect_near_run(c, run, exact, kHalf);
}

INSTANTIATE_TEST_SUITE_P(Cases, GradientKernels, ::testing::ValuesIn(kGradientCases),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Cases, CudaGradientGolden, ::testing::ValuesIn(kGradientCases),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace vitrail::golden
