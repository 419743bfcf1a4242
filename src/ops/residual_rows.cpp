#include "ops/residual_rows.h"

#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> ResidualRowsOp::infer(DescSpan ins) const {
  const size_t floats = norm_at() + (form_.norm ? 2 : 0);
  expect_inputs(*this, ins, floats + (drops() ? 1 : 0));
  VT_CHECK(ins[0].shape == ins[residual_at()].shape, "residual_rows: %s and %s are added",
           to_string(ins[0]).c_str(), to_string(ins[residual_at()]).c_str());
  const int64_t width = ins[0].shape.local('D');
  for (size_t i = 1; i < floats; ++i)
    VT_CHECK(i == residual_at() || ins[i].elems() == width, "residual_rows: %s for rows of %lld",
             to_string(ins[i]).c_str(), static_cast<long long>(width));
  for (const std::optional<DropoutOp>& drop : {form_.elements, form_.images})
    if (drop) drop->infer(std::vector{ins[0], ins.back()});
  std::vector<TensorDesc> outs = {ins[residual_at()]};
  if (form_.norm) outs.push_back(outs[0]);
  return outs;
}

double ResidualRowsOp::flops(DescSpan ins, DescSpan) const {
  const int an_element = 1 + form_.bias + form_.scale + form_.elements.has_value() +
                         form_.images.has_value() + (form_.norm ? 8 : 0);
  return an_element * static_cast<double>(ins[0].elems());
}

std::string ResidualRowsOp::attributes() const {
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  if (form_.bias) add("bias");
  if (form_.elements) add("dropout " + form_.elements->attributes());
  if (form_.scale) add("scale");
  if (form_.images) add("dropout " + form_.images->attributes());
  if (form_.norm) add(strf("norm eps=%g", form_.eps));
  return text;
}

}  // namespace vitrail
