#include "io/checkpoint/part.h"

#include <algorithm>
#include <optional>

#include "base/checked.h"
#include "base/text.h"

namespace vitrail {

namespace {

constexpr size_t kMostDims = 16;

int64_t product(const std::vector<int64_t>& extents) {
  int64_t elems = 1;
  for (const int64_t extent : extents) elems *= extent;
  return elems;
}

// A row of the whole tensor is what the last cut dim and those behind it span: the box holds one run of it.
struct Rows {
  size_t outer = 0;     // dims before those of a row
  int64_t whole = 1;    // elements of a row
  int64_t held = 1;     // of those, the box's
  int64_t skipped = 0;  // before the box's
};

Rows rows_of(const TensorPart& part) {
  Rows rows;
  size_t dim = part.shape.size();
  while (dim > 0) {
    --dim;
    rows.held = rows.whole * part.local[dim];
    rows.skipped = rows.whole * part.offset[dim];
    rows.whole *= part.shape[dim];
    if (part.local[dim] != part.shape[dim]) break;
  }
  rows.outer = dim;
  return rows;
}

// The number of a whole row among the box's; nothing where the box does not reach it.
std::optional<int64_t> row_in_box(const TensorPart& part, size_t outer, int64_t row) {
  int64_t number = 0, stride = 1;
  for (size_t dim = outer; dim-- > 0;) {
    const int64_t at = row % part.shape[dim] - part.offset[dim];
    if (at < 0 || at >= part.local[dim]) return std::nullopt;
    number += at * stride;
    stride *= part.local[dim];
    row /= part.shape[dim];
  }
  return number;
}

std::vector<int64_t> counts_from(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  VT_REQUIRE(json.is_object() && found != json.end() && found->is_array() && found->size() <= kMostDims,
             ErrorKind::kData, "\"%s\" of a part is missing or no list of at most %zu numbers", key,
             kMostDims);
  std::vector<int64_t> counts;
  for (const Json& number : *found) {
    const bool fits = number.is_number_unsigned() ? number.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)
                                                  : number.is_number_integer() && number.get<int64_t>() >= 0;
    VT_REQUIRE(fits, ErrorKind::kData, "\"%s\" of a part holds %s, which is no count", key,
               shown(number.dump()).c_str());
    counts.push_back(number.get<int64_t>());
  }
  return counts;
}

void require_sound(const TensorPart& part) {
  VT_REQUIRE(part.offset.size() == part.shape.size() && part.local.size() == part.shape.size(),
             ErrorKind::kData, "a part of %zu dims has %zu offsets and %zu extents", part.shape.size(),
             part.offset.size(), part.local.size());
  std::optional<uint64_t> elems = 1;
  for (size_t dim = 0; dim < part.shape.size(); ++dim) {
    elems = elems ? checked_mul(*elems, static_cast<uint64_t>(part.shape[dim])) : elems;
    VT_REQUIRE(part.shape[dim] > 0 && part.local[dim] <= part.shape[dim] &&
                   part.offset[dim] <= part.shape[dim] - part.local[dim],
               ErrorKind::kData, "a part reaches beyond dim %zu of its tensor", dim);
  }
  VT_REQUIRE(elems && *elems <= uint64_t{1} << 53, ErrorKind::kData,
             "a part of a tensor with too many elements");
  VT_REQUIRE(part.count <= part.box_elems() && part.first <= part.box_elems() - part.count, ErrorKind::kData,
             "a part has elements %lld to %lld of %lld", static_cast<long long>(part.first),
             static_cast<long long>(part.first + part.count), static_cast<long long>(part.box_elems()));
}

}  // namespace

TensorPart TensorPart::whole(const std::vector<int64_t>& shape) {
  return {shape, std::vector<int64_t>(shape.size()), shape, 0, product(shape)};
}

int64_t TensorPart::whole_elems() const {
  return product(shape);
}

int64_t TensorPart::box_elems() const {
  return product(local);
}

Json to_json(const TensorPart& part) {
  return {{"shape", part.shape},
          {"offset", part.offset},
          {"local", part.local},
          {"range", std::vector<int64_t>{part.first, part.count}}};
}

TensorPart part_from(const Json& json) {
  TensorPart part{counts_from(json, "shape"), counts_from(json, "offset"), counts_from(json, "local")};
  const std::vector<int64_t> range = counts_from(json, "range");
  VT_REQUIRE(range.size() == 2, ErrorKind::kData, "\"range\" of a part has %zu numbers, not first and count",
             range.size());
  part.first = range[0];
  part.count = range[1];
  require_sound(part);
  return part;
}

std::vector<ElementRun> runs_in(const TensorPart& part, int64_t begin, int64_t end) {
  std::vector<ElementRun> runs;
  if (begin >= end || part.count == 0) return runs;
  const Rows rows = rows_of(part);
  for (int64_t row = begin / rows.whole; row * rows.whole < end; ++row) {
    const std::optional<int64_t> number = row_in_box(part, rows.outer, row);
    if (!number) continue;
    // Element b of the box is element b + shift of the whole.
    const int64_t box = *number * rows.held, shift = row * rows.whole + rows.skipped - box;
    const int64_t from = std::max(begin, std::max(box, part.first) + shift),
                  to = std::min(end, std::min(box + rows.held, part.first + part.count) + shift);
    if (from < to) runs.push_back({from, from - shift - part.first, to - from});
  }
  return runs;
}

}  // namespace vitrail
