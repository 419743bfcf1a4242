// Computes how much memory the kernels of an instruction set need. It is compiled without that instruction
// set: see isa/shape.h.
#include "backend/cpu/attention/isa/attention_plan.h"
#include "backend/cpu/isa/kernels.h"

namespace vitrail::cpu::VT_ISA {

int64_t packed_elems(int64_t n, int64_t k) {
  return round_up(n, kNr) * k;
}
int64_t gemm_scratch_elems(int64_t rows, int64_t cols, int64_t k) {
  return rows * (k > kBlockK ? round_up(cols, kNr) : kNr);
}
int64_t attention_scratch_elems(int64_t queries, int64_t keys, int64_t head_size) {
  return AttentionPlan(queries, keys, head_size, nullptr).elems;
}
int64_t attention_grad_scratch_elems(int64_t queries, int64_t keys, int64_t head_size) {
  return AttentionGradPlan(queries, keys, head_size, nullptr).elems;
}

namespace bf16 {
int64_t packed_bytes(int64_t n, int64_t k) {
  return round_up(n, kNr) * k * 2;
}
int64_t row_bytes(int64_t k) {
  return k * 4;
}
int64_t tile_scratch_bytes(int64_t rows, int64_t cols, int64_t) {
  return (kWidened + rows * round_up(cols, kNr)) * 4;
}
}  // namespace bf16

namespace int8 {
int64_t packed_bytes(int64_t n, int64_t k) {
  return weight_bytes(n, k) + round_up(n, kNr) * 4;
}
int64_t row_bytes(int64_t k) {
  return round_up(k, 2) * 2;
}
int64_t tile_scratch_bytes(int64_t rows, int64_t cols, int64_t) {
  return kWidenedBytes + rows * round_up(cols, kNr) * 4;
}
}  // namespace int8

}  // namespace vitrail::cpu::VT_ISA
