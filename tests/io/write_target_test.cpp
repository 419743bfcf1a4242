// A model folder that is written over is the old model or the new one at any moment, never a mixture.
#include "io/write_target.h"

#include <cerrno>
#include <set>

#include "io/adapters.h"
#include "io/dialect_files.h"
#include "io/file_faults.h"
#include "io/sealed_folder.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;
using testing::dies_at;

class WriteTarget : public DialectTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    DialectTest::SetUp();
    testing::refuse_exchange(GetParam() ? EINVAL : 0);
  }
  void TearDown() override {
    testing::refuse_exchange(0);
    DialectTest::TearDown();
  }

  // Weights, labels and preprocessing all follow from the name.
  void write(const std::string& kind, Dialect dialect = Dialect::kHf, const std::string& name = "m") const {
    ModelCard card = tiny();
    for (int i = 0; i < 5; ++i) card.labels.push_back(kind + std::to_string(i));
    card.preprocess.resize = kind == "old" ? 36 : 48;
    const float factor = kind == "old" ? 1 : 2;
    write_model(at(name), card, {.dialect = dialect, .overwrite = true, .manifest = true},
                [&](const ParamSpec& spec, std::span<float> values) {
                  fill_by_rule(spec, values);
                  for (float& value : values) value *= factor;
                });
  }
  std::string found(const std::string& name = "m") const {
    const auto model = open_model(at(name));
    std::string kind = model->card().labels.at(0).substr(0, 3);
    if (model->card().preprocess.resize != (kind == "old" ? 36 : 48)) return "mixed";
    for (const ParamSpec& spec : vit_params(model->card().config)) {
      std::vector<float> expected(static_cast<size_t>(spec.shape.elems()));
      fill_by_rule(spec, expected);
      const std::vector<float> stored = values(*model, spec);
      for (size_t i = 0; i < stored.size(); ++i)
        if (stored[i] != expected[i] * (kind == "old" ? 1 : 2)) return "mixed";
    }
    return kind;
  }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(home_), fs::directory_iterator()));
  }
};

TEST_P(WriteTarget, AReplacedFolderKeepsItsRights) {
  write("old");
  for (const fs::perms rights : {fs::perms::owner_all, fs::perms::owner_all | fs::perms::group_read}) {
    fs::permissions(at("m"), rights);
    write("new");
    EXPECT_EQ(fs::status(at("m")).permissions(), rights);
  }
}

TEST_P(WriteTarget, DeathAtAnyStepLeavesTheOldModelOrTheNewOne) {
  write("old");
  write_file(at("m/LICENSE"), "free");
  std::set<std::string> seen;
  long call = 1;
  for (; dies_at(call, [&] { write("new"); }); ++call) {
    SCOPED_TRACE(call);
    finish_folder_replacement(at("m"));
    const std::string now = found();
    EXPECT_TRUE(now == "old" || now == "new") << now;
    seen.insert(now);
    EXPECT_EQ(read_file(at("m/LICENSE"), 10), "free");
    write("old");
    EXPECT_EQ(found(), "old");
    EXPECT_EQ(entries(), 1u);
  }
  EXPECT_EQ(found(), "new");
  EXPECT_GT(call, 8);
  EXPECT_EQ(seen.size(), 2u);
}

// Two files cannot be replaced at once: weights beside the old JSON are refused, never taken for a pair.
TEST_P(WriteTarget, DeathBetweenAnNpzAndItsJsonIsNoticed) {
  const auto now = [&]() -> std::string {
    try {
      return found("m.npz");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_SAYS(error.what(), "other weights");
      return "refused";
    }
  };
  write("old", Dialect::kGoogle, "m.npz");
  std::set<std::string> seen;
  for (long call = 1; dies_at(call, [&] { write("new", Dialect::kGoogle, "m.npz"); }); ++call) {
    seen.insert(now());
    write("old", Dialect::kGoogle, "m.npz");
    EXPECT_EQ(now(), "old");
  }
  EXPECT_EQ(now(), "new");
  EXPECT_FALSE(seen.contains("mixed"));
  EXPECT_TRUE(seen.contains("old") && seen.contains("refused"));
}

TEST_P(WriteTarget, AFailureLeavesTheOldModel) {
  write("old");
  ModelCard card = tiny();
  const auto fails = [](const ParamSpec& spec, std::span<float> values) {
    fill_by_rule(spec, values);
    if (spec.name == "head.weight") throw Error(ErrorKind::kData, "unreadable");
  };
  EXPECT_THROW(write_model(at("m"), card, {.dialect = Dialect::kHf, .overwrite = true}, fails), Error);
  EXPECT_EQ(found(), "old");
  EXPECT_EQ(entries(), 1u);
}

// Adapters of the previous model would be merged into the new one.
TEST_P(WriteTarget, NothingOfTheOldModelIsLeft) {
  write("old");
  write_adapters(at("m"), tiny().config, {.rank = 2}, by_rule);
  write("new");
  EXPECT_FALSE(fs::exists(at("m/adapters.safetensors")));
  EXPECT_EQ(found(), "new");
}

TEST_P(WriteTarget, ALinkToTheFolderStaysALink) {
  write("old");
  fs::rename(at("m"), at("real"));
  fs::create_directory_symlink(at("real"), at("m"));
  write("new");
  EXPECT_TRUE(fs::is_symlink(at("m")));
  EXPECT_EQ(found(), "new");
}

INSTANTIATE_TEST_SUITE_P(FileSystems, WriteTarget, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "WithoutExchange" : "WithExchange"; });

}  // namespace
}  // namespace vitrail
