// Every setting of a run has an effect: one row per key, with the part of a run that it must change. A new
// setting fails here until it has a row. The exact effect is checked by the goldens and the other tests.
#include <gtest/gtest.h>

#include "io/model_files.h"
#include "setting_rows.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

// Everything a run leaves to compare.
struct Left {
  Tensors weights, model;
  std::vector<double> rates, scales;
  std::vector<std::string> evals, log, files;
  std::vector<int64_t> checkpoints;
  std::string end, card;  // how it ended; what best/ says of its model
  size_t memory = 0, steps = 0;
};

Left left_by(const TrainConfig& config, const std::string& folder) {
  Ran ran;
  Left left;
  try {
    train_into(ran, config, folder);
    left.end = ran.outcome.reason;
  } catch (const Error& error) {
    left.end = error.message();
  }
  left.weights = state_of(folder);
  left.weights.erase(kLossScaleState), left.weights.erase(kUpdateCounterState);
  if (fs::exists(folder + "/best/model.safetensors"))
    left.model = tensors_of(*open_tensors(folder + "/best/model.safetensors"));
  if (fs::exists(folder + "/best/config.json")) left.card = read_file(folder + "/best/config.json", 1 << 20);
  for (const TrainStatus& status : ran.steps) {
    left.rates.push_back(status.lr);
    left.scales.push_back(status.loss_scale);
    left.memory = static_cast<size_t>(status.memory_bytes);
  }
  for (const EvalStatus& status : ran.evals)
    left.evals.push_back(strf("%lld %lld %.17g", static_cast<long long>(status.step),
                              static_cast<long long>(status.count), status.loss));
  left.log = metrics_of(folder);
  left.checkpoints = CheckpointStore(folder).steps();
  for (const auto& file : fs::recursive_directory_iterator(folder))
    left.files.push_back(fs::relative(file.path(), folder).extension().string() + " " +
                         file.path().filename().string().substr(0, 8));
  std::sort(left.files.begin(), left.files.end());
  left.steps = ran.steps.size();
  return left;
}

bool differ(const Left& a, const Left& b, Shows what) {
  switch (what) {
    case Shows::kWeights:
      return a.weights != b.weights;
    case Shows::kModel:
      return a.model != b.model || a.card != b.card;
    case Shows::kRates:
      return a.rates != b.rates;
    case Shows::kEvals:
      return a.evals != b.evals;
    case Shows::kLog:
      return a.log != b.log;
    case Shows::kCheckpoints:
      return a.checkpoints != b.checkpoints;
    case Shows::kFiles:
      return a.files != b.files;
    case Shows::kScale:
      return a.scales != b.scales;
    case Shows::kEnd:
      return a.end != b.end;
    case Shows::kMemory:
      return a.memory != b.memory;
    case Shows::kSteps:
      return a.steps != b.steps;
  }
  return false;
}

class Settings : public ::testing::TestWithParam<const char*> {
 protected:
  SettingsFolder work_;
  const SettingRows rows_ = setting_rows(work_);
};

TEST_P(Settings, EveryOneChangesWhatItShould) {
  const std::string section = GetParam();
  const TrainConfig listed;
  TrainConfig::sections(listed, [&](const std::string& name, const auto& fields) {
    if (name != section || section == "augment" || section == "loader") return;
    std::decay_t<decltype(fields)>::fields(fields, [&](const char* key, const auto&, const char*) {
      if (section + "." + key == "loss_scale.consecutive") return;  // StepControl's own tests hold it
      EXPECT_TRUE(rows_.contains(section + "." + key)) << section << "." << key << " has no row";
    });
  });
  int tried = 0;
  for (const auto& [key, row] : rows_) {
    if (!key.starts_with(section + ".")) continue;
    SCOPED_TRACE(key);
    TrainConfig config = tiny_config(6);
    row.prepare(config);
    const Left before = left_by(config, work_ / (key + " before"));
    row.change(config);
    const Left after = left_by(config, work_ / (key + " after"));
    EXPECT_TRUE(differ(before, after, row.what)) << before.end << " / " << after.end;
    ++tried;
  }
  EXPECT_GT(tried, 0);
}

// A mesh changes nothing that a run of one rank could show: tests/ranks holds its settings.
std::vector<const char*> all_sections() {
  std::vector<const char*> names;
  const TrainConfig config;
  TrainConfig::sections(config, [&](const std::string_view name, const auto&) {
    if (name != "mesh") names.push_back(name.data());
  });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Sections, Settings, ::testing::ValuesIn(all_sections()),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace vitrail::testing
