#include "judge_op.h"

#include <gtest/gtest.h>

#include <map>

namespace vitrail {

std::vector<Known> with_noise(const OpCase& c, const RunSettings& settings, const Rounding& rounding,
                              const std::vector<Values>& inputs, const std::vector<Result>& wanted,
                              const std::vector<DType>& types) {
  const std::vector<TensorDesc> descs = input_descs(c, c.ins, settings);
  std::vector<Known> ins, results;
  for (size_t i = 0; i < inputs.size(); ++i) ins.push_back({descs[i].shape, inputs[i]});
  for (const Result& result : wanted) results.push_back({result.desc.shape, result.values});
  ThreadPool pool(1);
  const std::vector<Noise> noise = result_noise({*c.op, descs, ins, rounding, pool}, results, types);
  for (size_t r = 0; r < results.size(); ++r) results[r].noise = noise[r];
  return results;
}

Verdict judge_results(const OpCase& c, const RunSettings& settings, const std::vector<Values>& inputs,
                      const std::vector<Result>& found, const std::vector<Result>& wanted) {
  std::vector<DType> types;
  for (const Result& result : found) types.push_back(result.desc.dtype);
  const Rounding rounding = op_rounding(c, c.ins, settings);
  const std::vector<Known> known = with_noise(c, settings, rounding, inputs, wanted, types);
  Verdict worst;
  for (size_t r = 0; r < known.size(); ++r) {
    Verdict verdict = judge(known[r], found[r].values);
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
[[maybe_unused]] const auto* const report = testing::AddGlobalTestEnvironment(new Report);

}  // namespace

void Margins::note(const RunSettings& settings, double share, const std::string& name) {
  auto& row = nearest()[strf("%s %s %s", settings.backend, settings.isa, to_string(settings.dtype))];
  if (share > row.first) row = {share, name};
}

}  // namespace vitrail
