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

// Returns why a node is not a GEMM that can run in fp8, wherever its weight was rounded; empty: it is one.
std::string fp8_unsupported(const NodeView& node, const DeviceInfo& device);
std::string fp8_unsupported_on_gpu(const DeviceInfo& device);
// The packed layout of the plan's weight, where the weight is read by rows.
Packing fp8_packing_of(const GemmPlan& plan);

// Says where a matrix of codes lies; it has no norms where none are wanted.
struct Fp8Places {
  Place codes, scales, norms = {};
};
// A packed weight of so many rows of codes.
Fp8Places fp8_places(const Place& packed, int64_t rows, int64_t width);
template <typename Call>
void bind_matrix(Bound<Call>& call, Fp8Matrix& matrix, const Fp8Places& places) {
  call.bind(matrix.codes, places.codes).bind(matrix.scales, places.scales).bind(matrix.norms, places.norms);
}

class Fp8Gemm {
 public:
  // Adds to the calls. The plan is that of the node; from an offset on the scratch belongs to it alone.
  Fp8Gemm(Calls& calls, const NodeView& node, const GemmPlan& plan, size_t scratch_at = 0);

  // Rounds the input, after its layernorm where it has one; with the norms of its rows where they are wanted.
  Fp8Places round_a(bool norms = false);
  // Returns where the codes of the input go when another kernel rounds it.
  Fp8Places place_of_a() const;
  // Computes the sums alone, without an epilogue.
  void multiply(const Fp8Places& a, const Place& sums);
  // Computes the GEMM and everything that follows it, into `result`.
  void run(const Fp8Places& a, const Place& result);
  // Computes GEMM, bias and gelu by our own kernel, into codes; a must have norms.
  void run_to_codes(const Fp8Places& a, const Fp8Places& result);
  // The call of our own kernel.
  Bound<FusedGemmCall> fused(const Fp8Places& a);

 private:
  Place in(int i) const { return input(node_, i); }
  Place at(size_t offset, DType dtype = DType::kF32) const {
    return aligned_scratch(scratch_at_ + offset, dtype);
  }
  Fp8Places round_b(bool norms = false);
  Bound<FusedGemmCall> fused_by(const Fp8Places& a, const Fp8Places& b) const;
  Place epilogue_bias();
  Bound<GemmCall> call(const Fp8Places& a, const Place& sums);

  Calls& calls_;
  NodeView node_;
  const GemmPlan& plan_;
  size_t scratch_at_;
};

}  // namespace vitrail::cuda
