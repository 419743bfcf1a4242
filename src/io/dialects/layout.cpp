#include "io/dialects/layout.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace vitrail {

namespace {

// One loop of a copy between two orders of the same elements.
struct Loop {
  int64_t extent, from, to;  // strides in elements
};

std::string letters_of(std::string_view layout) {
  std::string letters;
  for (char c : layout)
    if (c >= 'A' && c <= 'Z') letters += c;
  return letters;
}

int64_t stride_in(std::string_view letters, char letter, const Shape& shape) {
  int64_t stride = 1;
  for (size_t i = letters.size(); i-- > 0 && letters[i] != letter;) stride *= shape.local(letters[i]);
  return stride;
}

std::string letters_of(const Shape& shape) {
  std::string letters;
  for (const Dim& dim : shape) letters += dim.name;
  return letters;
}

// A head after pre_logits reads its input from O; in the layouts the input of a head is always D.
Shape as_in(std::string_view layout, const Shape& shape) {
  const bool renamed = shape.has('O') && layout.find('O') == std::string_view::npos;
  return renamed ? shape.with('O', Dim('D', shape.local('O'))) : shape;
}

// Merges neighbouring loops that step through memory as one.
std::vector<Loop> merged(const std::vector<Loop>& loops) {
  std::vector<Loop> out;
  for (const Loop& loop : loops) {
    if (loop.extent == 1) continue;
    if (!out.empty() && out.back().from == loop.from * loop.extent &&
        out.back().to == loop.to * loop.extent) {
      out.back() = {out.back().extent * loop.extent, loop.from, loop.to};
    } else {
      out.push_back(loop);
    }
  }
  if (out.empty()) out.push_back({1, 1, 1});
  return out;
}

// Copies in square tiles, so that neither strided side of a transpose leaves the cache.
void copy_plane(Loop rows, Loop columns, const float* from, float* to) {
  constexpr int64_t kTile = 32;
  for (int64_t r0 = 0; r0 < rows.extent; r0 += kTile)
    for (int64_t c0 = 0; c0 < columns.extent; c0 += kTile)
      for (int64_t r = r0; r < std::min(r0 + kTile, rows.extent); ++r)
        for (int64_t c = c0; c < std::min(c0 + kTile, columns.extent); ++c)
          to[r * rows.to + c * columns.to] = from[r * rows.from + c * columns.from];
}

void strided_copy(const std::vector<Loop>& all, const float* from, float* to) {
  std::vector<Loop> loops = merged(all);
  while (loops.size() < 2) loops.insert(loops.begin(), {1, 0, 0});
  const size_t outer = loops.size() - 2;
  int64_t count = 1;
  for (size_t i = 0; i < outer; ++i) count *= loops[i].extent;
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n, from_offset = 0, to_offset = 0;
    for (size_t i = outer; i-- > 0;) {
      const int64_t at = rest % loops[i].extent;
      rest /= loops[i].extent;
      from_offset += at * loops[i].from;
      to_offset += at * loops[i].to;
    }
    copy_plane(loops[outer], loops[outer + 1], from + from_offset, to + to_offset);
  }
}

// Returns loops over the stored elements in the parameter's order: `from` steps through the stored tensor.
std::vector<Loop> loops_over(std::string_view layout, const Shape& param) {
  const Shape canonical = as_in(layout, param);
  const std::string stored = letters_of(layout), own = letters_of(canonical);
  std::vector<Loop> loops;
  for (const Dim& dim : canonical)
    if (stored.find(dim.name) != std::string::npos)
      loops.push_back(
          {dim.local, stride_in(stored, dim.name, canonical), stride_in(own, dim.name, canonical)});
  return loops;
}

int64_t part_offset(std::string_view layout, const Shape& canonical, int part) {
  const bool whole = !canonical.has('T') || layout.find('T') != std::string_view::npos;
  return whole ? 0 : part * stride_in(letters_of(canonical), 'T', canonical);
}

}  // namespace

std::vector<std::string> layout_groups(std::string_view layout) {
  std::vector<std::string> groups;
  bool inside = false;
  for (char c : layout) {
    if (c == '(' || c == ')') {
      inside = c == '(';
      if (inside) groups.emplace_back();
    } else if (inside) {
      groups.back() += c;
    } else {
      groups.emplace_back(1, c);
    }
  }
  return groups;
}

std::vector<int64_t> stored_shape(std::string_view layout, const Shape& param) {
  const Shape canonical = as_in(layout, param);
  std::vector<int64_t> shape;
  for (const std::string& group : layout_groups(layout)) {
    int64_t extent = 1;
    for (char letter : group)
      if (letter != '1') extent *= canonical.local(letter);
    shape.push_back(extent);
  }
  return shape;
}

void from_stored(std::string_view layout, const Shape& canonical, int part, std::span<const float> stored,
                 std::span<float> param) {
  VT_CHECK(param.size() == static_cast<size_t>(canonical.elems()), "the parameter's span has another size");
  strided_copy(loops_over(layout, canonical), stored.data(),
               param.data() + part_offset(layout, canonical, part));
}

void to_stored(std::string_view layout, const Shape& canonical, int part, std::span<const float> param,
               std::span<float> stored) {
  VT_CHECK(param.size() == static_cast<size_t>(canonical.elems()), "the parameter's span has another size");
  std::vector<Loop> loops = loops_over(layout, canonical);
  for (Loop& loop : loops) std::swap(loop.from, loop.to);
  strided_copy(loops, param.data() + part_offset(layout, canonical, part), stored.data());
}

bool same_order(std::string_view layout, const Shape& canonical) {
  return letters_of(layout) == letters_of(as_in(layout, canonical));
}

}  // namespace vitrail
