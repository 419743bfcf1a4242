#include "judge_op.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace vitrail {

std::vector<Known> with_noise(const OpCase& c, const RunSettings& settings, const Rounding& rounding,
                              const std::vector<Values>& inputs, const std::vector<Result>& wanted,
                              const std::vector<DType>& types, const Tokens& tokens) {
  const std::vector<TensorDesc> descs = input_descs(c, c.ins, settings);
  std::vector<Known> ins, results;
  for (size_t i = 0; i < inputs.size(); ++i) ins.push_back({descs[i].shape, inputs[i]});
  for (const Result& result : wanted) results.push_back({result.desc.shape, result.values});
  ThreadPool pool(1);
  const std::vector<Noise> noise = result_noise({*c.op, descs, ins, rounding, pool, tokens}, results, types);
  for (size_t r = 0; r < results.size(); ++r) results[r].noise = noise[r];
  return results;
}

namespace {

// The elements of these tokens' rows, of one part where a result holds several.
std::vector<size_t> elements_of(const Shape& shape, const Tokens& tokens, int64_t part) {
  int64_t row = 1;
  for (size_t d = *shape.find('N') + 1; d < shape.rank(); ++d) row *= shape[d].local;
  const int64_t size = shape.has('T') ? row / shape.local('T') : row, image = row * shape.local('N');
  std::vector<size_t> elements;
  for (int64_t at = 0; at < shape.elems(); at += image)
    for (const int64_t token : tokens)
      for (int64_t e = 0; e < size; ++e) elements.push_back(at + token * row + part * size + e);
  return elements;
}

Values pick(std::span<const double> values, const std::vector<size_t>& elements) {
  Values picked;
  for (const size_t i : elements) picked.push_back(values[i]);
  return picked;
}

}  // namespace

Verdict judge_rows(const Known& wanted, std::span<const double> found, const Tokens& tokens) {
  if (tokens.empty()) return judge(wanted, found);
  Verdict worst;
  for (int64_t part = 0; part < (wanted.shape.has('T') ? wanted.shape.local('T') : 1); ++part) {
    const std::vector<size_t> elements = elements_of(wanted.shape, tokens, part);
    const Known rows{{{'R', std::ssize(elements)}},
                     pick(wanted.values, elements),
                     {pick(wanted.noise.bound, elements), pick(wanted.noise.variance, elements)}};
    Verdict verdict = judge(rows, pick(found, elements));
    verdict.where = strf("of these rows' part %lld: ", static_cast<long long>(part)) + verdict.where;
    if (verdict.share > worst.share) worst = verdict;
  }
  return worst;
}

const std::vector<Known>& OpJudge::known(const RunSettings& settings, const std::vector<Result>& found) {
  std::vector<DType> types;
  types.reserve(found.size());
  for (const Result& result : found) types.push_back(result.desc.dtype);
  const Rounding rounding = op_rounding(case_, case_.ins, settings);
  static_assert(std::has_unique_object_representations_v<Rounding>);  // flags and nothing between them
  const std::string flags(reinterpret_cast<const char*>(&rounding), sizeof rounding);
  const auto [at, fresh] = known_.try_emplace({flags, types});
  if (fresh) at->second = with_noise(case_, settings, rounding, inputs_, wanted_, types, tokens_);
  return at->second;
}

Verdict OpJudge::verdict(const RunSettings& settings, const std::vector<Result>& found) {
  const std::vector<Known>& allowed = known(settings, found);
  Verdict worst;
  for (size_t r = 0; r < allowed.size(); ++r) {
    Verdict verdict = judge_rows(allowed[r], found[r].values, tokens_);
    verdict.where = strf("result %zu: ", r) + verdict.where;
    if (verdict.share > worst.share) worst = verdict;
  }
  return worst;
}

namespace {

std::map<std::string, std::pair<double, std::string>>& nearest() {
  static std::map<std::string, std::pair<double, std::string>> map;
  return map;
}

class Report : public testing::Environment {
 public:
  void TearDown() override {
    for (const auto& [key, row] : nearest())
      printf("margin %s: %.2f (%s)\n", key.c_str(), 1 / row.first, row.second.c_str());
  }
};
[[maybe_unused]] const auto* const kReport = testing::AddGlobalTestEnvironment(new Report);

}  // namespace

void Margins::note(const RunSettings& settings, double share, const std::string& name, const char* kind) {
  auto& row = nearest()[strf("%s %s %s%s", settings.backend, settings.isa, to_string(settings.dtype), kind)];
  if (share > row.first) row = {share, name};
}

}  // namespace vitrail
