// DeepSpeed files of public projects: each becomes the settings and the batch that DeepSpeed would take, or
// names exactly the keys that stand in the way; no key of any of them is passed over without a word.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "source_root.h"
#include "train/deepspeed/keys.h"
#include "train/helpers/deepspeed_reading.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

const std::string kGoldens = std::string(VT_SOURCE_DIR) + "/tests/golden/deepspeed";
constexpr int kOwnBatch = 48;  // of the config, where a file leaves the batch open

Json expected_rows() {
  return parse_json(read_file(kGoldens + "_expected.json", 1 << 22), "expected");
}

std::string public_file(const std::string& name) {
  return read_file(kGoldens + "/" + name + ".json", 1 << 22);
}

// A row's "ranks" are those that share their images, of each data-parallel one.
DeepSpeedBase base_of(const Json& row, int world) {
  return with_batch(kOwnBatch, world * row.value("ranks", 1));
}

int first_world(const Json& row) {
  for (const int world : {1, 2, 3, 8})
    if (!row["triples"][std::to_string(world)].is_null()) return world;
  return 0;
}

void check_triple(const std::string& text, const Json& row, int world, const Json& triple) {
  const DeepSpeedBase base = base_of(row, world);
  const std::string told_world = std::to_string(world) + " data-parallel rank";
  if (triple.is_null()) {
    const Error error = error_of(text, base);
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(error.message().find(told_world), std::string::npos) << error.message();
    return;
  }
  const DeepSpeedReading reading = translated(text, base);
  EXPECT_EQ(keys_of(reading.refused), row["refused"].get<std::set<std::string>>());
  const RunConfig& run = reading.config.train;
  EXPECT_EQ((std::vector<int64_t>{run.batch, run.micro_batch, run.accumulation}),
            triple.get<std::vector<int64_t>>());
  EXPECT_EQ(resolved(reading.config, base.ranks).train.batch, run.batch) << "a config that runs";
  EXPECT_NE(text_of(reading, "train_batch_size").find(told_world), std::string::npos);
}

TEST(DeepSpeedPublic, FilesGiveTheirBatchOrNameWhatStandsInTheWay) {
  const Json expected = expected_rows();
  ASSERT_GE(expected.size(), 21U);
  for (const auto& [name, row] : expected.items())
    for (const auto& [world, triple] : row["triples"].items()) {
      SCOPED_TRACE(name + " on " + world);
      check_triple(public_file(name), row, std::stoi(world), triple);
    }
}

TEST(DeepSpeedPublic, FilesThatRunBecomeTheSettingsThatDeepSpeedWouldTake) {
  const Json expected = expected_rows();
  for (const auto& [name, row] : expected.items()) {
    if (!row["refused"].empty()) continue;
    const DeepSpeedReading reading = translated(public_file(name), base_of(row, first_world(row)));
    ASSERT_FALSE(row["settings"].empty()) << name;
    for (const auto& [key, value] : row["settings"].items()) {
      const Json became = setting_of(reading, key);
      if (value.is_number())
        EXPECT_DOUBLE_EQ(became.get<double>(), value.get<double>()) << name << ": " << key;
      else
        EXPECT_EQ(became, value) << name << ": " << key;
    }
  }
}

// Calls `leaf` with the path of every key that DeepSpeed or nobody reads: blocks of the table are looked
// into.
void each_key(const Json& object, const std::string& prefix,
              const std::function<void(const std::string&, const deepspeed::KeyRow*)>& leaf) {
  for (const auto& [name, value] : object.items()) {
    const std::string path = prefix + name;
    const deepspeed::KeyRow* row = nullptr;
    for (const deepspeed::KeyRow& one : deepspeed::deepspeed_keys())
      if (one.key == path) row = &one;
    const bool opened =
        path == "optimizer" || path == "scheduler" || (row && row->rule == deepspeed::Rule::kBlock);
    if (value.is_null()) continue;
    if (opened)
      each_key(value, path + ".", leaf);
    else
      leaf(path, row);
  }
}

TEST(DeepSpeedPublic, NoKeyIsPassedOverWithoutAWord) {
  const std::set<std::string> read = {"optimizer.type", "optimizer.params", "scheduler.type",
                                      "scheduler.params"};
  const Json expected = expected_rows();
  for (const auto& [name, row] : expected.items()) {
    const std::string text = public_file(name);
    const DeepSpeedReading reading = translated(text, base_of(row, first_world(row)));
    std::set<std::string> named = keys_of(reading.notes);
    named.merge(keys_of(reading.refused));
    each_key(parse_deepspeed(text, name), "", [&, name = name](const std::string& path, const auto* key) {
      const bool becomes = key && key->rule == deepspeed::Rule::kRead;
      const bool off = key && key->rule == deepspeed::Rule::kOff && !named.contains(path);
      EXPECT_TRUE(named.contains(path) || becomes || off || read.contains(path)) << name << ": " << path;
    });
  }
}

TEST(DeepSpeedPublic, EveryFileIsInTheTableAndHasASource) {
  const Json expected = expected_rows();
  const std::string sources = read_file(kGoldens + "/README.md", 1 << 20);
  for (const auto& entry : fs::directory_iterator(kGoldens))
    if (entry.path().extension() == ".json") {
      const std::string name = entry.path().stem().string();
      EXPECT_TRUE(expected.contains(name)) << name;
      EXPECT_NE(sources.find("| `" + name + "` |"), std::string::npos) << name;
    }
}

}  // namespace
}  // namespace vitrail::testing
