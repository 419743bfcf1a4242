// One product in fp8 as its launches: both matrices rounded to e4m3 with a scale a row, multiplied by
// cuBLASLt, which takes the scales in, and finished. Used by the kernels of one product and of two behind
// each other.
#pragma once

#include "backend/cuda/launch.h"
#include "backend/cuda/products_parse.h"

namespace vitrail::cuda {

// How a weight that was rounded when it was loaded lies: codes, a row of inputs an output, then the scales.
inline constexpr std::string_view kFp8Packing = "fp8-rows";

// Why a node is no product that runs so, wherever its weight was rounded.
std::string fp8_misfit(const NodeView& node, const DeviceInfo& device);
std::string fp8_misfit_of_card(const DeviceInfo& device);
// Of the plan's weight, where it is read by rows.
Packing fp8_packing_of(const ProductPlan& plan);
// Codes from `data` on, as many as there are, and the scales behind them.
Fp8Matrix fp8_matrix_at(void* data, int64_t codes);

class Fp8Product {
 public:
  // The plan's inputs are those of the node; the scratch is the plan's own.
  Fp8Product(const KernelArgs& args, const ProductPlan& plan, std::byte* scratch);

  // The input, through its norm where it has one.
  Fp8Matrix round_a() const;
  // Where the codes of an input go that something else rounds.
  Fp8Matrix place_of_a() const;
  // The sums alone.
  void multiply(const Fp8Matrix& a, const Operand& product) const;
  // With all that follows the product, to `result`.
  void run(const Fp8Matrix& a, const Operand& result) const;

 private:
  Operand input(int i) const { return i < 0 ? Operand{} : operand(args_.ins[i]); }
  Fp8Matrix matrix(size_t codes_at, size_t scales_at) const;
  Fp8Matrix round_b() const;
  Operand epilogue_bias() const;
  GemmCall call(const Fp8Matrix& a, const Operand& product) const;
  void finish(const Operand& product, const Operand& result) const;

  const KernelArgs& args_;
  const ProductPlan& plan_;
  std::byte* scratch_;
};

}  // namespace vitrail::cuda
