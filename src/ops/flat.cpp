#include "ops/flat.h"

#include "ops/expect.h"

namespace vitrail {

namespace {
TensorDesc flat(DType dtype, int64_t elems) {
  return {dtype, {{kFlat, elems}}};
}
}  // namespace

DimSplit::DimSplit(const Shape& shape, char dim) {
  const size_t at = *shape.find(dim);
  for (size_t i = 0; i < at; ++i) outer *= shape[i].local;
  for (size_t i = at + 1; i < shape.rank(); ++i) inner *= shape[i].local;
  extent = shape[at].local;
}

std::vector<TensorDesc> PackOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  VT_CHECK(ins[0].shape.local(dim_) == cuts_.back(), "pack: %lld in %s", static_cast<long long>(cuts_.back()),
           to_string(ins[0]).c_str());
  return {flat(ins[0].dtype, ins[0].elems())};
}

std::vector<TensorDesc> UnpackOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  VT_CHECK(ins[0].elems() == out_.elems() && out_.local(dim_) == cuts_.back(), "unpack: %s from %s",
           to_string(out_).c_str(), to_string(ins[0]).c_str());
  return {{ins[0].dtype, out_}};
}

std::vector<TensorDesc> SliceOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  expect_dim(*this, ins[0].shape, part_.name);
  const Dim& whole = ins[0].shape[*ins[0].shape.find(part_.name)];
  VT_CHECK(part_.offset >= whole.offset && part_.offset + part_.local <= whole.offset + whole.local,
           "slice: %s holds no such part of %c", to_string(ins[0]).c_str(), part_.name);
  return {{ins[0].dtype, ins[0].shape.with(part_.name, part_)}};
}

std::string SliceOp::attributes() const {
  const int64_t end = part_.offset + part_.local;
  return strf("%c %lld..%lld", part_.name, static_cast<long long>(part_.offset), static_cast<long long>(end));
}

std::vector<TensorDesc> JoinOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, offsets_.size());
  for (size_t i = 0; i < ins.size(); ++i) {
    VT_CHECK(ins[i].dtype == ins[0].dtype, "join: %s after %s", to_string(ins[i]).c_str(),
             to_string(ins[0]).c_str());
    const int64_t end = i + 1 < ins.size() ? offsets_[i + 1] : elems_;
    VT_CHECK(offsets_[i] + ins[i].elems() <= end, "join: no room for %s", to_string(ins[i]).c_str());
  }
  return {flat(ins[0].dtype, elems_)};
}

std::vector<TensorDesc> ViewOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  VT_CHECK(offset_ + shape_.elems() <= ins[0].elems(), "view: %s from %lld on of %s",
           to_string(shape_).c_str(), static_cast<long long>(offset_), to_string(ins[0]).c_str());
  return {{ins[0].dtype, shape_}};
}

}  // namespace vitrail
