// Packed weights cached from one start to the next: the outputs are the same bit for bit, and a doubtful
// cache is not used.
#include <gtest/gtest.h>

#include "api/engine.h"
#include "api/packed_cache.h"
#include "backend/cpu/host/levels.h"
#include "golden_cases.h"
#include "thrown.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;

// A model folder with a cache beside it.
class PackedCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "vitrail-cache-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    fs::copy(golden::folder() / "models" / "hf_single", root_ / "model", fs::copy_options::recursive);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string start(EngineOptions options = {}) {
    const auto model = open_model((root_ / "model").string());
    if (options.cache_folders.empty()) options.cache_folders = {(root_ / "cache").string()};
    Engine engine(*model, options);
    engine.run(golden::images(model->card().config, 1), 1);
    logits_ = engine.output("logits");
    return engine.cache_note();
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(root_ / "cache")) found.push_back(entry.path());
    return found;
  }
  static bool says(const std::string& note, const char* words) {
    return note.find(words) != std::string::npos;
  }

  fs::path root_;
  std::vector<float> logits_;
};

TEST_F(PackedCacheTest, TheSecondStartTakesItAndAnswersTheSame) {
  EXPECT_TRUE(says(start(), "written to"));
  const std::vector<float> expected = logits_;
  const std::string note = start();
  EXPECT_TRUE(says(note, "packed weights from")) << note;
  EXPECT_EQ(logits_, expected);
  EXPECT_TRUE(says(start({.threads = 3, .batch = 2}), "packed weights from"))
      << "threads and batch do not matter";
  EXPECT_EQ(files().size(), 1u);
}

// One sentence says what happened, with the file's whole path.
TEST_F(PackedCacheTest, SaysWhatHappenedToWhichFile) {
  write_file((root_ / "a-file").string(), "");
  const std::string blocked = (root_ / "a-file" / "cache").string();
  const std::vector<std::string> both = {blocked, (root_ / "cache").string()};
  const std::string first = start({.cache_folders = both});
  const std::string file = files().at(0).string();
  EXPECT_TRUE(first.starts_with("cannot ")) << first;
  EXPECT_TRUE(first.ends_with("; packed weights written to " + file)) << first;
  EXPECT_NE(first.find(blocked + "/" + files()[0].filename().string()), std::string::npos) << first;
  EXPECT_EQ(start({.cache_folders = both}), "packed weights from " + file);
  fs::remove(file);
  EXPECT_EQ(start(), "packed weights written to " + file);
  write_file(file, "");
  const std::string mended = start();
  EXPECT_TRUE(mended.starts_with(file + " is not used: ")) << mended;
  EXPECT_TRUE(mended.ends_with("; packed weights written to " + file)) << mended;
}

// What holds no parameters, or more than them, is no engine's.
TEST_F(PackedCacheTest, IsOfParametersAlone) {
  const auto model = open_model((root_ / "model").string());
  const ExecutionPlan plan = plan_inference(model->card().config, {.threads = 1});
  RankContext rank(plan.device);
  const auto more = std::make_shared<PersistentLayout>(*plan.memory.persistent);
  more->place({"state", {DType::kF32, {{'D', 5}}}, ValueKind::kState, Category::kOptimizer});
  for (const auto& layout : {std::make_shared<PersistentLayout>(), more}) {
    const PersistentStore store(layout, rank);
    PackedCache cache(*model, plan, {(root_ / "cache").string()});
    const std::string said = thrown_by([&] { cache.save(store, rank.pool); });
    EXPECT_TRUE(said.starts_with("internal: ")) << said;
    EXPECT_NE(said.find("a cache of more than parameters"), std::string::npos) << said;
  }
}

TEST_F(PackedCacheTest, ADamagedOneIsReplaced) {
  start();
  const std::vector<float> expected = logits_;
  std::string content = read_file(files()[0].string(), 64 << 20);
  content[content.size() - 100] ^= 4;
  write_file(files()[0].string(), content);
  const std::string note = start();
  EXPECT_TRUE(says(note, "is damaged; packed weights written")) << note;
  EXPECT_EQ(logits_, expected);
  EXPECT_TRUE(says(start(), "packed weights from"));
  write_file(files()[0].string(), content.substr(0, content.size() / 2));
  EXPECT_TRUE(says(start(), "another size; packed weights written"));
}

TEST_F(PackedCacheTest, OfOtherWeightsItIsReplaced) {
  start();
  const std::vector<float> before = logits_;
  const fs::path weights = root_ / "model" / "model.safetensors";
  std::string content = read_file(weights.string(), 64 << 20);
  for (size_t at = content.size() - 4000; at < content.size(); at += 4) content[at + 1] ^= 0x55;
  const auto time = fs::last_write_time(weights);
  write_file(weights.string(), content);
  fs::last_write_time(weights, time);
  const std::string note = start();
  EXPECT_TRUE(says(note, "made from something else; packed weights written")) << note;
  EXPECT_NE(logits_, before);
  EXPECT_EQ(files().size(), 1u) << "the old one is gone";
}

TEST_F(PackedCacheTest, OfAnotherInstructionSetItIsNotTaken) {
  const auto levels = available_isa_levels();
  if (levels.size() < 2) GTEST_SKIP() << "one instruction set only";
  start();
  const fs::path best = files()[0];
  const std::string lower = to_string(levels.front());
  EXPECT_FALSE(says(start({.isa = lower}), "packed weights from"));
  const std::vector<float> expected = logits_;
  for (const fs::path& file : files())
    if (file != best) fs::copy_file(best, file, fs::copy_options::overwrite_existing);
  EXPECT_FALSE(says(start({.isa = lower}), "packed weights from")) << "a foreign file under its name";
  EXPECT_EQ(logits_, expected);
}

TEST_F(PackedCacheTest, PlacesThatCannotBeWrittenArePassedOver) {
  write_file((root_ / "a-file").string(), "");
  const std::string blocked = (root_ / "a-file" / "cache").string();
  const std::vector<std::string> both = {blocked, (root_ / "cache").string()};
  EXPECT_TRUE(says(start({.cache_folders = both}), "written to"));
  EXPECT_TRUE(says(start({.cache_folders = both}), "packed weights from"));
  EXPECT_FALSE(says(start({.cache_folders = {blocked}}), "written to"));
  EXPECT_FALSE(logits_.empty());
}

}  // namespace
}  // namespace vitrail
