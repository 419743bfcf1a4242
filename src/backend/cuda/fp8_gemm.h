// The launches of one GEMM in fp8: both matrices are rounded to e4m3 with a scale per row, multiplied by
// cuBLASLt or our own kernel, which apply the scales, and finished by an epilogue. Knows the plan of a GEMM,
// not the graph.
#pragma once

#include "backend/cuda/gemm_parse.h"
#include "backend/cuda/launch.h"

namespace vitrail::cuda {

// The packed layout of a weight that was rounded when it was loaded: the codes, one row of inputs per output,
// then the scales, then the norms.
inline constexpr std::string_view kFp8Packing = "fp8-rows";

// Why a node is not a GEMM that can run in fp8, wherever its weight was rounded; empty: it is one.
std::string fp8_unsupported(const NodeView& node, const DeviceInfo& device);
std::string fp8_unsupported_on_gpu(const DeviceInfo& device);
// The packed layout of the plan's weight, where the weight is read by rows.
Packing fp8_packing_of(const GemmPlan& plan);
// A packed weight of so many rows of codes.
Fp8Matrix fp8_matrix_at(void* data, int64_t rows, int64_t width);

class Fp8Gemm {
 public:
  // The plan's inputs are those of the node; the scratch belongs to this plan alone.
  Fp8Gemm(const KernelArgs& args, const GemmPlan& plan, std::byte* scratch);

  // Rounds the input, after its layernorm where it has one; with the norms of its rows where they are wanted.
  Fp8Matrix round_a(bool norms = false) const;
  // Where the codes of the input go when another kernel rounds it.
  Fp8Matrix place_of_a() const;
  // Computes the sums alone, without an epilogue.
  void multiply(const Fp8Matrix& a, const Operand& sums) const;
  // Computes the GEMM and everything that follows it, into `result`.
  void run(const Fp8Matrix& a, const Operand& result) const;
  // Computes GEMM, bias and gelu by our own kernel, into codes; a must have norms.
  void run_to_codes(const Fp8Matrix& a, const Fp8Matrix& result) const;
  // The call of our own kernel.
  FusedGemmCall fused(const Fp8Matrix& a) const;

 private:
  Operand input(int i) const { return i < 0 ? Operand{} : operand(args_.ins[i]); }
  uint8_t* bytes_at(size_t offset) const { return reinterpret_cast<uint8_t*>(scratch_ + offset); }
  float* floats_at(size_t offset) const { return reinterpret_cast<float*>(scratch_ + offset); }
  Fp8Matrix round_b(bool norms = false) const;
  FusedGemmCall fused_by(const Fp8Matrix& a, const Fp8Matrix& b) const;
  Operand epilogue_bias() const;
  GemmCall call(const Fp8Matrix& a, const Operand& sums) const;
  void finish(const Operand& gemm, const Operand& result) const;

  const KernelArgs& args_;
  const GemmPlan& plan_;
  std::byte* scratch_;
};

}  // namespace vitrail::cuda
