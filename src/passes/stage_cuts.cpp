// Decides where a pipeline cuts a model: by the cost of its blocks, or as it is told.
#include <algorithm>
#include <limits>

#include "passes/stages.h"

namespace vitrail {

namespace {

// The FLOPs of every block, what stands before and behind them added to the first and the last.
std::vector<double> block_costs(const Program& program) {
  int blocks = 0;
  for (const Node& node : program.nodes) blocks = std::max(blocks, node.block + 1);
  VT_CHECK(blocks > 0, "a program without blocks has no stages");
  std::vector<double> costs(static_cast<size_t>(blocks));
  Phase phase = Phase::kForward;
  bool seen = false;  // a block, in this phase
  for (const Node& node : program.nodes) {
    if (node.phase != phase) {
      phase = node.phase;
      seen = false;
    }
    seen |= node.block >= 0;
    const bool front = (phase == Phase::kForward) != seen;
    const size_t block = node.block >= 0 ? static_cast<size_t>(node.block) : front ? 0 : costs.size() - 1;
    costs[block] += node.op->flops(program.descs(node.ins), program.descs(node.outs));
  }
  return costs;
}

// The cheapest way to cut the first `blocks` into `chunks`, by the sum of a penalty of each chunk.
class Cutter {
 public:
  explicit Cutter(const std::vector<double>& costs) : sums_(1, 0.0) {
    for (const double cost : costs) sums_.push_back(sums_.back() + cost);
  }

  double cost(size_t first, size_t end) const { return sums_[end] - sums_[first]; }

  // `joined(a, b)` is the penalty of chunks together; returns the first block of all but the first.
  template <typename Penalty, typename Joined>
  std::pair<double, std::vector<int>> best(size_t chunks, const Penalty& penalty,
                                           const Joined& joined) const {
    const size_t blocks = sums_.size() - 1;
    constexpr double kNever = std::numeric_limits<double>::infinity();
    std::vector<std::vector<double>> least(chunks + 1, std::vector<double>(blocks + 1, kNever));
    std::vector<std::vector<size_t>> from(chunks + 1, std::vector<size_t>(blocks + 1));
    least[0][0] = 0;
    for (size_t c = 1; c <= chunks; ++c)
      for (size_t end = c; end <= blocks; ++end)
        for (size_t first = c - 1; first < end; ++first) {
          const double one = joined(least[c - 1][first], penalty(cost(first, end)));
          if (one < least[c][end]) {
            least[c][end] = one;
            from[c][end] = first;
          }
        }
    std::vector<int> begins;
    for (size_t c = chunks, end = blocks; c > 1; --c) {
      end = from[c][end];
      begins.insert(begins.begin(), static_cast<int>(end));
    }
    return {least[chunks][blocks], begins};
  }

 private:
  std::vector<double> sums_;
};

}  // namespace

void require_cuts(const std::vector<int>& begins, int blocks, int chunks) {
  if (chunks > blocks)
    throw Error(
        ErrorKind::kConfig,
        strf("a pipeline of %d stages (mesh.pp x mesh.virtual_stages) for %d blocks: each needs one at least",
             chunks, blocks),
        strf("mesh.pp x mesh.virtual_stages of %d at most, as mesh.pp=%d with mesh.virtual_stages=1", blocks,
             blocks));
  if (begins.empty()) return;
  bool rises = static_cast<int>(begins.size()) == chunks - 1;
  for (size_t i = 0; i < begins.size(); ++i)
    rises = rises && begins[i] > (i ? begins[i - 1] : 0) && begins[i] < blocks;
  VT_REQUIRE(rises, ErrorKind::kConfig,
             "mesh.stages names %zu blocks; expected %d, in order, each of blocks.1 to blocks.%d: where the "
             "stages behind the first begin",
             begins.size(), chunks - 1, blocks - 1);
}

std::vector<int> cut_by_cost(const Program& program, int chunks) {
  const std::vector<double> costs = block_costs(program);
  require_cuts({}, static_cast<int>(costs.size()), chunks);
  const Cutter cutter(costs);
  const auto count = static_cast<size_t>(chunks);
  const double most =
      cutter
          .best(
              count, [](double cost) { return cost; }, [](double a, double b) { return std::max(a, b); })
          .first;
  // Among the cuts whose dearest chunk costs no more, this takes the most even one.
  constexpr double kDear = 1e30;
  return cutter
      .best(
          count, [&](double cost) { return cost > most * (1 + 1e-9) ? kDear : cost / most * (cost / most); },
          [](double a, double b) { return a + b; })
      .second;
}

}  // namespace vitrail
