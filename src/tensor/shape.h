// Shapes whose dims have names: B batch, N tokens, D width, H heads, E head size, F MLP width, K classes, T
// the 3 of qkv, C channels, Y X pixels, P Q patch rows and columns, S special tokens, M keys, O outputs. A
// name occurs once in a shape. It must not know memory or devices.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace vitrail {

// One dim of a value. A whole dim has local == extent and offset == 0; a shard holds [offset, offset+local).
struct Dim {
  char name = '?';
  int64_t extent = 0;
  int64_t local = 0;
  int64_t offset = 0;

  Dim() = default;
  Dim(char dim_name, int64_t whole) : name(dim_name), extent(whole), local(whole) {}
  bool operator==(const Dim&) const = default;
};

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims);
  explicit Shape(std::vector<Dim> dims);

  size_t rank() const { return dims_.size(); }
  const Dim& operator[](size_t i) const { return dims_[i]; }
  const std::vector<Dim>& dims() const { return dims_; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }

  bool has(char name) const { return find(name).has_value(); }
  std::optional<size_t> find(char name) const;
  int64_t local(char name) const;  // local extent of a dim that must exist
  int64_t elems() const;           // product of local extents
  Shape with(char name, Dim replacement) const;

  bool operator==(const Shape&) const = default;

 private:
  std::vector<Dim> dims_;
};

std::string to_string(const Shape& shape);  // "[B1 N197 D192]"

}  // namespace vitrail
