#include "runtime/check/noise.h"

#include <algorithm>
#include <cmath>

#include "backend/ref/kernels.h"
#include "ops/attention.h"
#include "ops/attention_bias_grad.h"
#include "ops/attention_sums.h"
#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/gelu_slope.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"
#include "ops/persistent.h"
#include "ops/scale.h"
#include "runtime/check/noise_rules.h"

namespace vitrail {

namespace noise {

double square(double x) {
  return x * x;
}

Noise silence(size_t elems) {
  return {Values(elems), Values(elems)};
}

Noise alike(const Tolerance& tolerance, const Values& values) {
  double largest = 0;
  for (double value : values)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  Noise noise = silence(values.size());
  std::fill(noise.bound.begin(), noise.bound.end(), tolerance.relative * largest + tolerance.absolute);
  return noise;
}

double rounding_of(DType type, double value) {
  const double least = type == DType::kF16 ? 0x1p-25 : 0;  // bf16 and f32 reach down to 1e-45 and further
  return std::max(roundoff(type) * std::abs(value), least);
}

DType narrow_type(DescSpan descs) {
  DType narrow = DType::kF32;
  for (const TensorDesc& desc : descs)
    if (is_float(desc.dtype) && roundoff(desc.dtype) > roundoff(narrow)) narrow = desc.dtype;
  return narrow;
}

namespace {

struct Rule {
  std::string_view op;
  Noise (*noise)(const Args&);
};
constexpr Rule kRules[] = {{LinearOp::kKind, of_linear},
                           {LinearDxOp::kKind, of_linear_dx},
                           {LinearDwOp::kKind, of_linear_dw},
                           {PatchEmbedOp::kKind, of_patch_embed},
                           {PatchEmbedDwOp::kKind, of_patch_embed_dw},
                           {AttentionOp::kKind, of_attention},
                           {AttentionGradOp::kKind, of_attention_grad},
                           {AttentionBiasGradOp::kKind, of_attention_bias_grad},
                           {AttentionSumsOp::kKind, of_attention_sums},
                           {AttentionSumsGradOp::kKind, of_attention_sums_grad},
                           {GeluOp::kKind, of_gelu},
                           {GeluGradOp::kKind, of_gelu_grad},
                           {GeluSlopeOp::kKind, of_gelu_slope},
                           {GeluSlopeGradOp::kKind, of_gelu_slope_grad},
                           {LayernormGradOp::kKind, of_layernorm_grad},
                           {BiasOp::kKind, of_sum},
                           {AddOp::kKind, of_sum},
                           {AccumulateOp::kKind, of_sum},
                           {ScaleOp::kKind, of_scale}};

// Returns whether an op is a GEMM of rounded factors. The reference rounds them alike; a factor that falls to
// the other side of a rounding boundary moves a sum by a whole step of one term.
bool rounds_factors(const Op& op) {
  const auto* fused = dynamic_cast<const FusedOp*>(&op);
  if (!fused) return arithmetic_of(op) != Arithmetic::kExact;
  return std::any_of(fused->members().begin(), fused->members().end(),
                     [](const FusedOp::Member& member) { return rounds_factors(*member.op); });
}

Noise of_rounded_factors(const Args& args) {
  Tolerance tolerance = tolerance_of(args.query.op, args.query.descs);
  tolerance.relative /= 2;
  tolerance.absolute /= 2;  // judge() allows twice the bound
  Noise noise = alike(tolerance, args.out.values);
  if (tolerance.typical == 0) return noise;
  double squares = 0;
  for (double value : args.out.values)
    if (std::isfinite(value)) squares += square(value);
  const double count = static_cast<double>(args.out.values.size());
  noise.typical.assign(noise.bound.size(), tolerance.typical * std::sqrt(squares / count));
  return noise;
}

Noise of_op(const Args& args) {
  const auto* rule = std::find_if(std::begin(kRules), std::end(kRules),
                                  [&](const Rule& one) { return one.op == args.query.op.kind(); });
  return rule == std::end(kRules) ? of_any(args) : rule->noise(args);
}

// Computes a member in f64 from its inputs.
Known run_member(const Op& op, std::span<const Known> ins, ThreadPool& pool) {
  std::vector<TensorDesc> descs;
  std::vector<TensorView> views;
  for (const Known& in : ins) {
    descs.push_back({DType::kF64, in.shape});
    views.emplace_back(const_cast<double*>(in.values.data()), descs.back());
  }
  const TensorDesc out = {DType::kF64, op.infer(descs)[0].shape};
  Known result{out.shape, Values(static_cast<size_t>(out.elems()))};
  const DeviceInfo device;
  const TensorView target(result.values.data(), out);
  const Choice choice = ref_backend().choose({op, descs, {&out, 1}}, device);
  choice.kernel->run({op, views, {&target, 1}, {}, {pool, device}});
  return result;
}

void round_to(DType type, Known& known) {
  if (known.noise.exact()) known.noise = silence(known.values.size());
  for (size_t i = 0; i < known.values.size(); ++i)
    known.noise.add_error(i, rounding_of(type, known.values[i]));
}

bool is_gemm(const Op& op) {
  return is<LinearOp, LinearDxOp, PatchEmbedOp>(op);
}

// A library adds bias and residual to the sums of a GEMM in an order of its own, so the largest of the
// possible intermediate results counts as rounded.
void round_residual(const Known& sums, const Known& biased, const Args& args, Noise& noise) {
  const DType type = narrow_type(args.query.descs);
  for (size_t i = 0; i < noise.bound.size(); ++i) {
    const double gemm = sums.values[i], with_bias = biased.values[i];
    const double with_residual = args.out.values[i] - (with_bias - gemm);
    const double largest = std::max({std::abs(gemm), std::abs(with_bias), std::abs(with_residual)});
    noise.bound[i] += rounding_of(type, largest);
  }
}

Noise of_node(const Args& args);

// Follows a fused node member by member, to the last one or to the one whose kept output is asked for;
// between them, what the kernel declares is rounded, and what is kept.
Noise of_fused(const FusedOp& fused, const Args& args) {
  const NoiseQuery& query = args.query;
  const std::vector<TensorDesc> outs = fused.member_outputs(query.descs);
  const bool keeps = fused.kept() != FusedOp::kNone, kept = keeps && args.result + 1 == args.results.size();
  const size_t end = kept ? static_cast<size_t>(fused.kept()) : fused.members().size() - 1;
  const size_t first = kept ? args.result : 0, count = kept ? 1 : args.results.size() - keeps;
  std::vector<Known> made;
  size_t gemm = fused.members().size();  // the one behind which a residual may be added
  for (size_t m = 0;; ++m) {
    const FusedOp::Member& member = fused.members()[m];
    std::vector<Known> ins;
    for (const FusedOp::Source& source : member.sources) ins.push_back(source.pick(query.ins, made));
    if (query.rounding.bias && is<BiasOp>(*member.op)) round_to(narrow_type(query.descs), ins[1]);
    const std::vector<TensorDesc> descs = fused.member_inputs(m, query.descs, outs);
    const NoiseQuery own{*member.op, descs, ins, query.rounding, query.pool};
    if (m == end) {
      Noise noise = of_node({own, args.results.subspan(first, count), args.types.subspan(first, count),
                             args.result - first, args.out});
      if (query.rounding.residual && is<AddOp>(*member.op) && gemm + 1 < made.size())
        round_residual(made[gemm], made.back(), args, noise);
      return noise;
    }
    if (is_gemm(*member.op)) gemm = m;
    made.push_back(run_member(*member.op, ins, query.pool));
    made.back().noise = of_node({own, {&made.back(), 1}, {&outs[m].dtype, 1}, 0, made.back()});
    const Rounding& rounding = query.rounding;
    if (rounding.members || fused.is_kept(m) || (rounding.gemm && is_gemm(*member.op)))
      round_to(outs[m].dtype, made.back());
  }
}

Noise of_node(const Args& args) {
  if (rounds_factors(args.query.op)) return of_rounded_factors(args);
  const auto* fused = dynamic_cast<const FusedOp*>(&args.query.op);
  return fused ? of_fused(*fused, args) : of_op(args);
}

}  // namespace
}  // namespace noise

std::vector<Noise> result_noise(const NoiseQuery& query, std::span<const Known> wanted,
                                std::span<const DType> types) {
  std::vector<Noise> all;
  for (size_t r = 0; r < wanted.size(); ++r) {
    all.push_back(noise::of_node({query, wanted, types, r, wanted[r]}));
    for (size_t i = 0; is_float(types[r]) && i < wanted[r].values.size(); ++i)
      all.back().add_error(i, noise::rounding_of(types[r], wanted[r].values[i]));
  }
  return all;
}

namespace {

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

// The parts of a result that are judged separately: queries, keys and values.
struct Parts {
  explicit Parts(const Shape& shape) {
    const auto dim = shape.find('T');
    if (!dim) return;
    count = shape[*dim].local;
    for (size_t i = *dim + 1; i < shape.rank(); ++i) inner *= shape[i].local;
  }
  int64_t of(size_t element) const { return static_cast<int64_t>(element) / inner % count; }
  int64_t count = 1, inner = 1;
};

constexpr double kBounds = 2, kDeviations = 10, kRootMeanSquare = 2.5;

Verdict judge_elements(const Known& wanted, std::span<const double> found) {
  Verdict verdict;
  for (size_t i = 0; i < found.size(); ++i) {
    const double expected = wanted.values[i];
    if (same(expected, found[i])) continue;
    const double allowed =
        kBounds * wanted.noise.bound[i] + kDeviations * std::sqrt(wanted.noise.variance[i]);
    const double off = std::abs(found[i] - expected);
    const double share = std::isfinite(off) && allowed > 0 ? off / allowed : INFINITY;
    if (share <= verdict.share) continue;
    verdict = {share, strf("element %zu is %.9g, expected %.9g +- %.3g", i, found[i], expected, allowed), i};
  }
  return verdict;
}

Verdict judge_parts(const Known& wanted, std::span<const double> found) {
  const Parts parts(wanted.shape);
  Values off(static_cast<size_t>(parts.count)), expected(off.size()), counted(off.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const auto part = static_cast<size_t>(parts.of(i));
    if (!same(wanted.values[i], found[i])) off[part] += noise::square(found[i] - wanted.values[i]);
    expected[part] += wanted.noise.mean_square(i);
    ++counted[part];
  }
  Verdict verdict;
  for (size_t part = 0; part < off.size(); ++part) {
    if (off[part] == 0) continue;
    // A small number of elements scatters more about the expected mean square.
    const double allowed = kRootMeanSquare * (1 + 2 / std::sqrt(counted[part])) * std::sqrt(expected[part]);
    const double share = std::isfinite(off[part]) && allowed > 0 ? std::sqrt(off[part]) / allowed : INFINITY;
    if (share <= verdict.share) continue;
    const double count = std::sqrt(counted[part]);
    verdict = {share, strf("the root mean square error of part %zu is %.3g, allowed %.3g", part,
                           std::sqrt(off[part]) / count, allowed / count)};
  }
  return verdict;
}

}  // namespace

Verdict judge(const Known& wanted, std::span<const double> found) {
  VT_CHECK(wanted.values.size() == found.size() && wanted.noise.bound.size() == found.size(),
           "a result of %zu elements is judged by %zu", found.size(), wanted.values.size());
  const Verdict elements = judge_elements(wanted, found), parts = judge_parts(wanted, found);
  return elements.share >= parts.share ? elements : Verdict{parts.share, parts.where, elements.element};
}

}  // namespace vitrail
