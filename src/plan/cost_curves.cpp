#include "plan/cost_curves.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "ops/attention.h"
#include "ops/attention_bias_grad.h"
#include "ops/attention_sums.h"
#include "ops/fused.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"

namespace vitrail {

namespace {
constexpr size_t kSizes = 4;
constexpr size_t kTerms = kSizes + 1;  // of the local fit: a constant and a slope for each number
constexpr size_t kNearest = 16;
// The least time of a node, so that a roofline's estimate of an empty one is no zero.
constexpr double kLeast = 1e-6;

double estimate(const NodeSize& size, const std::string& type, const Roofline& roofline) {
  const auto known = roofline.flops.find(type);
  const double rate = known == roofline.flops.end() ? roofline.flops.at("f32") : known->second;
  return kLeast + size.flops / rate + size.bytes / roofline.bytes;
}

// A measured point as the fit sees it.
struct Neighbour {
  std::array<double, kSizes> away;  // logarithms of its numbers over those of the node
  double distance = 0;              // squared
  double above = 0;                 // the logarithm of its time over its roofline's estimate
};

// Returns where a node lies among others, in logarithms. Attention is computed by image and head, so that
// beside its tokens their number counts: with few of them threads and multiprocessors stay idle.
std::array<double, kSizes> place_of(const NodeSize& size, bool is_attention) {
  std::array<double, kSizes> logs{};
  const auto numbers = size.tied();
  for (size_t i = 0; i < kSizes; ++i) logs[i] = std::log(std::max(numbers[i], 1.0));
  if (!is_attention) return logs;
  const auto [flops, bytes, first, last] = logs;
  return {2 * first - flops, flops - first, last - first, 0};
}

Neighbour neighbour(const CostPoint& point, const std::array<double, kSizes>& wanted, bool is_attention,
                    double expected) {
  Neighbour one;
  const auto has = place_of(point.size, is_attention);
  for (size_t i = 0; i < kSizes; ++i) {
    one.away[i] = has[i] - wanted[i];
    one.distance += one.away[i] * one.away[i];
  }
  one.above = std::log(point.seconds / expected);
  return one;
}

// Solves the symmetric positive system of a fit by elimination and returns its first unknown, the constant.
double constant_of(std::array<std::array<double, kTerms + 1>, kTerms> rows) {
  for (size_t i = kTerms; i-- > 1;)
    for (size_t j = 0; j < i; ++j) {
      const double factor = rows[j][i] / rows[i][i];
      for (size_t c = 0; c <= kTerms; ++c) rows[j][c] -= factor * rows[i][c];
    }
  return rows[0][kTerms] / rows[0][0];
}

// A weighted linear fit around the node: near points count most, and slopes are kept small, so that far from
// all points the roofline leads.
double fitted(const std::vector<Neighbour>& near) {
  constexpr double kNearby = 0.02, kStiffness = 0.05;
  std::array<std::array<double, kTerms + 1>, kTerms> rows{};
  double total = 0;
  for (const Neighbour& one : near) {
    const double weight = 1 / std::pow(one.distance + kNearby, 2);
    total += weight;
    std::array<double, kTerms> terms = {1};
    std::copy(one.away.begin(), one.away.end(), terms.begin() + 1);
    for (size_t i = 0; i < kTerms; ++i) {
      for (size_t j = 0; j < kTerms; ++j) rows[i][j] += weight * terms[i] * terms[j];
      rows[i][kTerms] += weight * terms[i] * one.above;
    }
  }
  for (size_t i = 1; i < kTerms; ++i) rows[i][i] += kStiffness * total;
  return constant_of(rows);
}

// A fit may lead a little beyond what was measured, not far.
double between(const std::vector<Neighbour>& near) {
  constexpr double kBeyond = 0.25;
  const auto [least, most] = std::minmax_element(
      near.begin(), near.end(), [](const auto& a, const auto& b) { return a.above < b.above; });
  return std::clamp(fitted(near), least->above - kBeyond, most->above + kBeyond);
}

// Returns whether a kind is attention or one of its gradients.
bool attends(std::string_view kind) {
  constexpr std::string_view kKinds[] = {AttentionOp::kKind,     AttentionProbsOp::kKind,
                                         AttentionGradOp::kKind, AttentionBiasGradOp::kKind,
                                         AttentionSumsOp::kKind, AttentionSumsGradOp::kKind};
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

double seconds_among(const std::vector<const CostCurve*>& curves, const NodeSize& size,
                     const Roofline& roofline) {
  const bool is_attention = attends(main_kind(curves.front()->kind));
  const auto wanted = place_of(size, is_attention);
  std::vector<Neighbour> near;
  for (const CostCurve* curve : curves)
    for (const CostPoint& point : curve->points)
      near.push_back(neighbour(point, wanted, is_attention, estimate(point.size, curve->type, roofline)));
  const size_t count = std::min(near.size(), kNearest);
  std::partial_sort(near.begin(), near.begin() + static_cast<ptrdiff_t>(count), near.end(),
                    [](const auto& a, const auto& b) { return a.distance < b.distance; });
  near.resize(count);
  return estimate(size, curves.front()->type, roofline) * std::exp(between(near));
}

// Says how alike two curves must be to stand for each other, the strictest first.
using Alike = bool (*)(const CostCurve& a, const CostCurve& b);
constexpr Alike kAlike[] = {
    [](const CostCurve& a, const CostCurve& b) { return a.kind == b.kind && a.kernel == b.kernel; },
    [](const CostCurve& a, const CostCurve& b) { return a.kind == b.kind; },
    [](const CostCurve& a, const CostCurve& b) { return main_kind(a.kind) == main_kind(b.kind); }};
}  // namespace

bool CostCurve::operator<(const CostCurve& other) const {
  return std::tie(kind, kernel, type, threads) <
         std::tie(other.kind, other.kernel, other.type, other.threads);
}

void CostCurves::add(const CostCurve& where, const CostPoint& point) {
  auto at = std::lower_bound(curves_.begin(), curves_.end(), where);
  if (at == curves_.end() || where < *at)
    at = curves_.insert(at, {where.kind, where.kernel, where.type, where.threads, {}});
  for (CostPoint& known : at->points)
    if (known.size == point.size) {
      known.seconds = (known.seconds + point.seconds) / 2;
      return;
    }
  at->points.push_back(point);
}

std::optional<double> CostCurves::seconds(const CostCurve& of, const NodeSize& size,
                                          const Rooflines& rooflines) const {
  for (const Alike alike : kAlike) {
    // The nearest numbers of threads on both sides; at the wanted one both are the same.
    int below = 0, above = 0;
    for (const CostCurve& curve : curves_) {
      if (curve.type != of.type || !alike(curve, of)) continue;
      if (curve.threads <= of.threads) below = std::max(below, curve.threads);
      if (curve.threads >= of.threads && (above == 0 || curve.threads < above)) above = curve.threads;
    }
    if (below == 0 && above == 0) continue;
    const auto at = [&](int threads) {
      std::vector<const CostCurve*> curves;
      for (const CostCurve& curve : curves_)
        if (curve.type == of.type && curve.threads == threads && alike(curve, of)) curves.push_back(&curve);
      return seconds_among(curves, size, rooflines(threads));
    };
    // Beyond the measured numbers of threads, time changes as the roofline's does.
    if (below == 0 || above == 0) {
      const int nearest = std::max(below, above);
      return at(nearest) * estimate(size, of.type, rooflines(of.threads)) /
             estimate(size, of.type, rooflines(nearest));
    }
    if (below == above) return at(below);
    const double share =
        std::log(static_cast<double>(of.threads) / below) / std::log(static_cast<double>(above) / below);
    return std::exp((1 - share) * std::log(at(below)) + share * std::log(at(above)));
  }
  return std::nullopt;
}

std::string main_kind(const std::string& kind) {
  const std::vector<std::string_view> members = FusedOp::kinds_in(kind);
  for (const std::string_view candidate :
       {AttentionGradOp::kKind, AttentionOp::kKind, LinearDwOp::kKind, LinearDxOp::kKind, LinearOp::kKind,
        PatchEmbedDwOp::kKind, PatchEmbedOp::kKind})
    if (std::find(members.begin(), members.end(), candidate) != members.end()) return std::string(candidate);
  return std::string(members.front());
}

}  // namespace vitrail
