#include "tensor/shape.h"

#include "base/checked.h"
#include "base/error.h"

namespace vitrail {

Shape::Shape(std::initializer_list<Dim> dims) : Shape(std::vector<Dim>(dims)) {}

Shape::Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {
  for (size_t i = 0; i < dims_.size(); ++i) {
    VT_CHECK(dims_[i].local >= 0, "dim %c is negative", dims_[i].name);
    for (size_t j = i + 1; j < dims_.size(); ++j)
      VT_CHECK(dims_[i].name != dims_[j].name, "dim %c occurs twice", dims_[i].name);
  }
}

std::optional<size_t> Shape::find(char name) const {
  for (size_t i = 0; i < dims_.size(); ++i)
    if (dims_[i].name == name) return i;
  return std::nullopt;
}

int64_t Shape::local(char name) const {
  const auto at = find(name);
  VT_CHECK(at, "%s has no dim %c", to_string(*this).c_str(), name);
  return dims_[*at].local;
}

int64_t Shape::elems() const {
  uint64_t total = 1;
  for (const Dim& dim : dims_) {
    const auto next = checked_mul(total, static_cast<uint64_t>(dim.local));
    VT_CHECK(next && *next <= static_cast<uint64_t>(INT64_MAX), "%s has too many elements",
             to_string(*this).c_str());
    total = *next;
  }
  return static_cast<int64_t>(total);
}

Shape Shape::with(char name, Dim replacement) const {
  const auto at = find(name);
  VT_CHECK(at, "%s has no dim %c", to_string(*this).c_str(), name);
  std::vector<Dim> dims = dims_;
  dims[*at] = replacement;
  return Shape(std::move(dims));
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (const Dim& dim : shape) {
    if (text.size() > 1) text += ' ';
    text += strf("%c%lld", dim.name, static_cast<long long>(dim.extent));
    if (dim.local != dim.extent)
      text += strf("(%lld+%lld)", static_cast<long long>(dim.offset), static_cast<long long>(dim.local));
  }
  return text + "]";
}

}  // namespace vitrail
