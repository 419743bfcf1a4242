// Ops that bring values into the order in which ranks exchange them.
#include "op_cases.h"
#include "ops/flat.h"

namespace vitrail {

void add_flat_cases(std::vector<OpCase>& cases) {
  const Shape x = {{'B', 3}, {'N', 7}, {'D', 10}};
  const std::vector<int64_t> cuts = {0, 2, 2, 7};  // the middle part is empty
  cases.push_back({"pack_tokens", make_op<PackOp>('N', cuts), {x}, {false}});
  cases.push_back({"pack_heads",
                   make_op<PackOp>('H', std::vector<int64_t>{0, 1, 4}),
                   {{{'B', 2}, {'N', 3}, {'T', 3}, {'H', 4}, {'E', 5}}},
                   {false}});
  cases.push_back({"unpack_tokens", make_op<UnpackOp>('N', cuts, x), {{{kFlat, 210}}}, {false}});
  Dim part('N', 7);
  part.local = 3, part.offset = 2;
  cases.push_back({"slice_tokens", make_op<SliceOp>(part), {x}, {false}});
  cases.push_back({"join",
                   make_op<JoinOp>(std::vector<int64_t>{0, 32, 48}, int64_t{64}),
                   {{{'D', 20}}, {{'F', 2}, {'D', 8}}, {{'K', 10}}},
                   {false, false, false}});
}

}  // namespace vitrail
