// Ops that bring values into the order in which ranks exchange them, and back: a value is [B N D] in memory,
// so that a part of N is not in one piece. They move elements and compute nothing.
#pragma once

#include "graph/op.h"

namespace vitrail {

// The dim of flat memory: elements of a value or of a group of values, one after another.
inline constexpr char kFlat = 'W';

// The elements of a value around one of its dims, which lie in memory as [outer, extent, inner].
struct DimSplit {
  DimSplit(const Shape& shape, char dim);
  int64_t outer = 1, extent = 0, inner = 1;
};

class MoveOp : public Op {
 public:
  DimsRule dims() const override { return {kEveryDim}; }
  double flops(DescSpan, DescSpan) const override { return 0; }
};

// Brings the parts of one dim one after another: x -> [W], all of part 0, then all of part 1, ...
class PackOp : public MoveOp {
 public:
  PackOp(char dim, std::vector<int64_t> cuts) : dim_(dim), cuts_(std::move(cuts)) {}

  static constexpr std::string_view kKind = "pack";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  std::string attributes() const override { return std::string(1, dim_); }

  char dim() const { return dim_; }
  const std::vector<int64_t>& cuts() const { return cuts_; }

 private:
  char dim_;
  std::vector<int64_t> cuts_;
};

// The inverse: [W] -> a value of this shape, in which the dim is whole.
class UnpackOp : public MoveOp {
 public:
  UnpackOp(char dim, std::vector<int64_t> cuts, Shape out)
      : dim_(dim), cuts_(std::move(cuts)), out_(std::move(out)) {}

  static constexpr std::string_view kKind = "unpack";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  std::string attributes() const override { return std::string(1, dim_); }

  char dim() const { return dim_; }
  const std::vector<int64_t>& cuts() const { return cuts_; }

 private:
  char dim_;
  std::vector<int64_t> cuts_;
  Shape out_;
};

// The part of a dim that a rank keeps of a value that it has whole.
class SliceOp : public MoveOp {
 public:
  explicit SliceOp(const Dim& part) : part_(part) {}

  static constexpr std::string_view kKind = "slice";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  std::string attributes() const override;

  const Dim& part() const { return part_; }

 private:
  Dim part_;
};

// Puts values into one flat value, each at its element offset; what lies between is zero.
class JoinOp : public MoveOp {
 public:
  JoinOp(std::vector<int64_t> offsets, int64_t elems) : offsets_(std::move(offsets)), elems_(elems) {}

  static constexpr std::string_view kKind = "join";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;

  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  std::vector<int64_t> offsets_;
  int64_t elems_;
};

// A value that lies inside a flat one from an element offset on. The planner gives it its place and nothing
// runs.
class ViewOp : public MoveOp {
 public:
  ViewOp(int64_t offset, Shape shape) : offset_(offset), shape_(std::move(shape)) {}

  static constexpr std::string_view kKind = "view";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  bool is_launched() const override { return false; }
  std::string attributes() const override { return strf("%lld", static_cast<long long>(offset_)); }

  int64_t offset() const { return offset_; }

 private:
  int64_t offset_;
  Shape shape_;
};

}  // namespace vitrail
