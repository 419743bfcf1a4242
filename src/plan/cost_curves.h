// Holds what nodes cost on a device, as measured there: seconds of nodes of known sizes, by operation,
// kernel, type and threads, and the cost of any other node between them. It is plain data and arithmetic,
// knows no program and measures nothing.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/roofline.h"

namespace vitrail {

// The size of a node: what its time depends on. For a GEMM the four numbers determine m, n and k.
struct NodeSize {
  double flops = 0, bytes = 0;
  double first = 0, last = 0;  // elements of the first input, and of the output or of what is updated

  std::array<double, 4> tied() const { return {flops, bytes, first, last}; }
  bool operator==(const NodeSize& other) const { return tied() == other.tied(); }
};

struct CostPoint {
  NodeSize size;
  double seconds = 0;
};

// The points of one kernel for one kind of node.
struct CostCurve {
  std::string kind, kernel;  // "layernorm+linear+bias", "packed gemm"
  std::string type;          // of the arithmetic
  int threads = 1;           // of a CPU; 1 on a GPU
  std::vector<CostPoint> points;

  bool operator<(const CostCurve& other) const;
};

class CostCurves {
 public:
  // Adds a point. A size that is there already takes the mean of both, since both were whole runs' parts.
  void add(const CostCurve& where, const CostPoint& point);
  const std::vector<CostCurve>& curves() const { return curves_; }
  bool empty() const { return curves_.empty(); }

  // The roofline of so many threads, to whose estimate measured times are set in proportion.
  using Rooflines = std::function<Roofline(int threads)>;
  // Returns the seconds of a node of that kind, kernel, type and number of threads: between the points of the
  // nearest sizes. A kernel that was not measured counts as any other of that kind, a kind as any other with
  // the same GEMM or attention; nothing where neither was.
  std::optional<double> seconds(const CostCurve& of, const NodeSize& size, const Rooflines& rooflines) const;

 private:
  std::vector<CostCurve> curves_;  // in order
};

// Returns the member of a fused kind that its time is spent in: "linear" of "layernorm+linear+bias".
std::string main_kind(const std::string& kind);

}  // namespace vitrail
