// One GEMM in fp8 as its launches: both matrices rounded to e4m3 with a scale a row, multiplied by
// cuBLASLt, which takes the scales in, and finished. Used by the kernels of one GEMM and of two behind
// each other.
#pragma once

#include "backend/cuda/gemm_parse.h"
#include "backend/cuda/launch.h"

namespace vitrail::cuda {

// How a weight that was rounded when it was loaded lies: codes, a row of inputs an output, then the scales.
inline constexpr std::string_view kFp8Packing = "fp8-rows";

// Why a node is no GEMM that runs so, wherever its weight was rounded.
std::string fp8_unsupported(const NodeView& node, const DeviceInfo& device);
std::string fp8_unsupported_on_gpu(const DeviceInfo& device);
// Of the plan's weight, where it is read by rows.
Packing fp8_packing_of(const GemmPlan& plan);
// Codes from `data` on, as many as there are, and the scales behind them.
Fp8Matrix fp8_matrix_at(void* data, int64_t codes);

class Fp8Gemm {
 public:
  // The plan's inputs are those of the node; the scratch is the plan's own.
  Fp8Gemm(const KernelArgs& args, const GemmPlan& plan, std::byte* scratch);

  // The input, through its norm where it has one.
  Fp8Matrix round_a() const;
  // Where the codes of an input go that something else rounds.
  Fp8Matrix place_of_a() const;
  // The sums alone.
  void multiply(const Fp8Matrix& a, const Operand& gemm) const;
  // With all that follows the GEMM, to `result`.
  void run(const Fp8Matrix& a, const Operand& result) const;

 private:
  Operand input(int i) const { return i < 0 ? Operand{} : operand(args_.ins[i]); }
  Fp8Matrix matrix(size_t codes_at, size_t scales_at) const;
  Fp8Matrix round_b() const;
  Operand epilogue_bias() const;
  GemmCall call(const Fp8Matrix& a, const Operand& gemm) const;
  void finish(const Operand& gemm, const Operand& result) const;

  const KernelArgs& args_;
  const GemmPlan& plan_;
  std::byte* scratch_;
};

}  // namespace vitrail::cuda
