// Every optimizer against torch and timm: ten updates from the same gradients, in double.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "golden_json.h"
#include "optim/optimizer.h"
#include "run_program.h"

namespace vitrail {
namespace {

constexpr double kTolerance = 1e-13;

std::vector<double> by_rule(const std::string& name, size_t count, double scale, size_t step) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = scale * static_cast<double>(counter_uniform(name_key(name), step * count + i));
  return values;
}

TrainedParam trained(const Json& row, double lr_scale) {
  const auto extents = row.at("shape").get<std::vector<int64_t>>();
  std::vector<Dim> dims = {Dim('O', extents[0])};
  if (extents.size() > 1) dims.emplace_back('D', extents[1]);
  return {row.at("name"), {DType::kF64, Shape(dims)}, lr_scale, row.at("weight_decay")};
}

class UpdateGolden : public testing::TestWithParam<golden::NamedRow> {};

TEST_P(UpdateGolden, TenUpdatesAgreeWithTheLibrary) {
  const Json& row = GetParam().row;
  const auto config = golden::read_config<OptimConfig>(row.at("optim"));
  std::vector<TrainedParam> params;
  for (const Json& p : row.at("params")) params.push_back(trained(p, p.at("lr_scale")));
  Builder builder;
  record_update(builder, params, config);
  ProgramRunner runner(builder.finish());
  runner.set(kLossScaleState, {1});
  const auto count = [](const TrainedParam& p) { return static_cast<size_t>(p.desc.elems()); };
  for (const TrainedParam& p : params) {
    runner.set(p.name, by_rule(p.name, count(p), 1, 0));
    if (config.ema_decay > 0) runner.set(ema_name(p.name), by_rule(p.name, count(p), 1, 0));
  }
  const auto norms = row.at("norms").get<std::vector<double>>();
  for (size_t step = 0; step < norms.size(); ++step) {
    for (const TrainedParam& p : params)
      runner.set(gradient_name(p.name), by_rule(gradient_name(p.name), count(p), 0.3, step));
    const double rest = static_cast<double>(norms.size() - step) / static_cast<double>(norms.size());
    runner.set("hyper", {config.lr * rest, 1, config.ema_decay, 0});
    runner.run();
    EXPECT_NEAR(runner.get("control")[5], norms[step], 1e-14);
    EXPECT_EQ(runner.get("control")[4], static_cast<double>(step + 1));
  }
  for (const TrainedParam& p : params) {
    EXPECT_LE(golden::largest_error(runner.get(p.name), row.at("weights").at(p.name)), kTolerance) << p.name;
    if (config.ema_decay > 0) {
      EXPECT_LE(golden::largest_error(runner.get(ema_name(p.name)), row.at("ema").at(p.name)), kTolerance);
    }
    EXPECT_EQ(runner.get(gradient_name(p.name)), std::vector<double>(count(p), 0.0)) << "sums are left";
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, UpdateGolden, testing::ValuesIn(golden::rows("updates.json")),
                         golden::row_name);

// Masters in f32 with the first moment in its stored type.
TEST(UpdateRecord, StatesHaveTheirTypesAndCategories) {
  const TrainedParam param{"head.weight", {DType::kF32, {{'K', 3}, {'D', 2}}}, 1, 0.1};
  Builder builder;
  record_update(builder, {param}, {.name = "adam", .moment_dtype = MomentDType::kBF16, .ema_decay = 0.5});
  std::map<std::string, std::pair<DType, Category>> found;
  const Program program = builder.finish();
  for (const Value& value : program.values)
    if (value.persistent()) found[value.name] = {value.desc.dtype, value.category};
  const std::map<std::string, std::pair<DType, Category>> wanted = {
      {"head.weight", {DType::kF32, Category::kParameters}},
      {"grad/head.weight", {DType::kF32, Category::kGradients}},
      {"optim/head.weight/m", {DType::kBF16, Category::kOptimizer}},
      {"optim/head.weight/v", {DType::kF32, Category::kOptimizer}},
      {"ema/head.weight", {DType::kF32, Category::kOptimizer}},
      {"optim/loss_scale", {DType::kF64, Category::kOptimizer}},
      {"optim/control", {DType::kF64, Category::kOptimizer}}};
  EXPECT_EQ(found, wanted);
  for (const Node& node : program.nodes) EXPECT_EQ(node.phase, Phase::kUpdate) << node.name;
}

TEST(UpdateRecord, SgdWithoutMomentumKeepsNoState) {
  const TrainedParam param{"head.bias", {DType::kF32, {{'K', 3}}}};
  Builder builder;
  record_update(builder, {param}, {.name = "sgd", .momentum = 0});
  for (const Value& value : builder.finish().values) EXPECT_FALSE(value.name.starts_with("optim/head"));
}

TEST(UpdateRecord, RefusesNothingToTrain) {
  Builder builder;
  EXPECT_THROW(record_update(builder, {}, {}), Error);
}

}  // namespace
}  // namespace vitrail
