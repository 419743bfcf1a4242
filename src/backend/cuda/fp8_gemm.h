// The launches of one GEMM in fp8: both matrices are rounded to e4m3 with a scale per row, multiplied by
// cuBLASLt, which applies the scales, and finished by an epilogue. Knows the plan of a GEMM, not the graph.
#pragma once

#include "backend/cuda/gemm_parse.h"
#include "backend/cuda/launch.h"

namespace vitrail::cuda {

// The packed layout of a weight that was rounded when it was loaded: the codes, one row of inputs per output,
// then the scales.
inline constexpr std::string_view kFp8Packing = "fp8-rows";

// Why a node is not a GEMM that can run in fp8, wherever its weight was rounded; empty: it is one.
std::string fp8_unsupported(const NodeView& node, const DeviceInfo& device);
std::string fp8_unsupported_on_gpu(const DeviceInfo& device);
// The packed layout of the plan's weight, where the weight is read by rows.
Packing fp8_packing_of(const GemmPlan& plan);
// A matrix whose codes start at `data`, followed by their scales.
Fp8Matrix fp8_matrix_at(void* data, int64_t codes);

class Fp8Gemm {
 public:
  // The plan's inputs are those of the node; the scratch belongs to this plan alone.
  Fp8Gemm(const KernelArgs& args, const GemmPlan& plan, std::byte* scratch);

  // Rounds the input, after its layernorm where it has one.
  Fp8Matrix round_a() const;
  // Where the codes of the input go when another kernel rounds it.
  Fp8Matrix place_of_a() const;
  // Computes the sums alone, without an epilogue.
  void multiply(const Fp8Matrix& a, const Operand& sums) const;
  // Computes the GEMM and everything that follows it, into `result`.
  void run(const Fp8Matrix& a, const Operand& result) const;

 private:
  Operand input(int i) const { return i < 0 ? Operand{} : operand(args_.ins[i]); }
  Fp8Matrix matrix(size_t codes_at, size_t scales_at) const;
  Fp8Matrix round_b() const;
  Operand epilogue_bias() const;
  GemmCall call(const Fp8Matrix& a, const Operand& sums) const;
  void finish(const Operand& gemm, const Operand& result) const;

  const KernelArgs& args_;
  const GemmPlan& plan_;
  std::byte* scratch_;
};

}  // namespace vitrail::cuda
