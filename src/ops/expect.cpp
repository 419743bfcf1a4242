#include "ops/expect.h"

namespace vitrail {

namespace {
[[noreturn]] void refuse(const Op& op, const std::string& message) {
  throw Error(ErrorKind::kInternal, std::string(op.kind()) + ": " + message);
}
}  // namespace

void expect_inputs(const Op& op, DescSpan ins, size_t count) {
  if (ins.size() != count) refuse(op, strf("expected %zu inputs, found %zu", count, ins.size()));
}

void expect_same(const Op& op, const TensorDesc& a, const TensorDesc& b) {
  if (a != b) refuse(op, strf("inputs differ: %s and %s", to_string(a).c_str(), to_string(b).c_str()));
}

void expect_suffix(const Op& op, const Shape& big, const Shape& small) {
  bool fits = small.rank() <= big.rank();
  for (size_t i = 0; fits && i < small.rank(); ++i) fits = small[i] == big[big.rank() - small.rank() + i];
  if (!fits) refuse(op, strf("%s is no suffix of %s", to_string(small).c_str(), to_string(big).c_str()));
}

void expect_dim(const Op& op, const Shape& shape, char name) {
  if (!shape.has(name)) refuse(op, strf("%s has no dim %c", to_string(shape).c_str(), name));
}

void expect_last(const Op& op, const Shape& shape, char name) {
  if (shape.rank() == 0 || shape[shape.rank() - 1].name != name)
    refuse(op, strf("the last dim of %s is not %c", to_string(shape).c_str(), name));
}

void expect_normed(const Op& op, const Shape& shape, const Shape& weight) {
  if (shape.rank() == 0 ||
      std::string_view("DEF").find(shape[shape.rank() - 1].name) == std::string_view::npos)
    refuse(op, strf("the last dim of %s is none of D, E and F", to_string(shape).c_str()));
  expect_suffix(op, shape, weight);
}

}  // namespace vitrail
