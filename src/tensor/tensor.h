// TensorDesc: dtype and shape. TensorView: a description and a pointer that owns nothing, as kernels receive
// it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace vitrail {

struct TensorDesc {
  DType dtype = DType::kF32;
  Shape shape;
  // A backend's private storage order of a parameter (a static name such as "panels16"); the shape stays
  // the logical one. Empty: plain row-major.
  std::string_view packing = {};
  int64_t packed_rows = 0;  // the parameter seen as a matrix: outputs x inputs
  size_t packed_bytes = 0;

  int64_t elems() const { return shape.elems(); }
  size_t bytes() const;  // throws when the product overflows
  bool operator==(const TensorDesc&) const = default;
};

std::string to_string(const TensorDesc& desc);  // "f32[B1 N197 D192]"

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<F16> {
  static constexpr DType value = DType::kF16;
};
template <>
struct DTypeOf<BF16> {
  static constexpr DType value = DType::kBF16;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kU8;
};

class TensorView {
 public:
  TensorView() = default;
  TensorView(void* data, TensorDesc desc) : data_(data), desc_(std::move(desc)) {}

  const TensorDesc& desc() const { return desc_; }
  const Shape& shape() const { return desc_.shape; }
  DType dtype() const { return desc_.dtype; }
  void* data() const { return data_; }

  // Returns the elements as T, which must be the view's dtype.
  template <typename T>
  T* as() const {
    VT_CHECK(desc_.packing.empty(), "%s is read as if it were row-major", to_string(desc_).c_str());
    VT_CHECK(DTypeOf<T>::value == desc_.dtype, "a view of %s is read as another type",
             to_string(desc_).c_str());
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  TensorDesc desc_;
};

}  // namespace vitrail
