// What a config file may hold for a command: sections that some command has, numbers and booleans without
// quotes.
#include <gtest/gtest.h>

#include "cli/run.h"
#include "tiny_training.h"

namespace vitrail::cli {
namespace {

// The error that a command has with a config file of this text; empty where it takes it.
std::string refused_config(const std::string& command, const std::string& config) {
  const TempFolder folder;
  std::vector<std::string> arguments = {"--config", folder.file("c.json", config)};
  if (command == "predict") arguments.push_back("cat.png");
  try {
    options_of(command_named(command), arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_FALSE(error.hint().empty()) << error.what();
    return error.message() + " / " + error.hint();
  }
  return "";
}

struct ConfigRow {
  const char *command, *config;
  std::vector<const char*> says = {};
};

void expect_configs_refused(const std::vector<ConfigRow>& rows) {
  for (const ConfigRow& row : rows) {
    const std::string said = refused_config(row.command, row.config);
    for (const char* part : row.says) EXPECT_NE(said.find(part), std::string::npos) << row.config << said;
  }
}

TEST(ConfigOptions, AnEmptySectionIsRefusedLikeAnUnknownKey) {
  expect_configs_refused(
      {{"train", R"({"trian": {}})", {"c.json: vitrail train has no key 'trian'", "did you mean train?"}},
       {"train", R"({"train": {"optim": {}, "modle": {}}})", {"no key 'train.modle'"}},
       {"train", R"({"model": {"depth": {}}})", {"model.depth takes one value, not an object"}},
       {"predict", R"({"batch": {}})", {"batch takes one value, not an object", "batch"}},
       {"predict", R"({"pineapple": {}})", {"no key 'pineapple'", "predict --help"}},
       {"bench infer", R"({"bench": {"infre": {}}})", {"no key 'bench.infre'"}}});
}

TEST(ConfigOptions, EmptySectionsOfAnyCommandAreTaken) {
  const ConfigRow rows[] = {
      {"train", R"({"train": {}, "model": {}, "augment": {}, "predict": {}, "data": {}, "scale": {}})"},
      {"train", R"({"bench": {}, "train": {"model": {}}})"},
      {"predict", R"({"bench": {"infer": {}}, "data": {"pack": {"anything": {}}}})"},
      {"bench infer", R"({"bench": {"infer": {"model": {}}}})"},
      {"bench infer", R"({"bench": {"train": {}}})"},
      {"bench infer", R"({"bench": {}})"}};
  for (const ConfigRow& row : rows) EXPECT_EQ(refused_config(row.command, row.config), "") << row.config;
}

TEST(ConfigOptions, NumbersAndBooleansStandWithoutQuotes) {
  expect_configs_refused(
      {{"predict",
        R"({"batch": "8"})",
        {"c.json: batch expects a whole number", "not the text \"8\"", "without quotes"}},
       {"predict", R"({"batch": ["8"]})", {"not the text \"8\""}},
       {"predict", R"({"json": "true"})", {"json expects true or false, not the text \"true\""}},
       {"train", R"({"train": {"batch": "8"}})", {"train.batch expects a whole number, not the text \"8\""}},
       {"train",
        R"({"optim": {"lr": "1e-3"}})",
        {"optim.lr expects a number, not the text \"1e-3\"", "optim.lr=0.001"}},
       {"train", R"({"train": {"tensorboard": "true"}})", {"train.tensorboard expects true or false"}}});
}

// Texts, choices and lists are as they were, and what is no file has no quotes.
TEST(ConfigOptions, TextsMayBeNumbersAndListsMayHoldThem) {
  for (const char* config :
       {R"({"data": {"train": "12"}})", R"({"params": {"freeze": ["1"]}})",
        R"({"loader": {"on_device": "off"}})", R"({"augment": {"crop_scale": ["0.1", "1"]}})",
        R"({"train": {"batch": 8, "tensorboard": false}})"})
    EXPECT_EQ(refused_config("train", config), "") << config;
  EXPECT_EQ(options_of("train", {"--set", "train.batch=8"}).integer("train.batch"), 8);
}

TEST(ConfigFile, SaysWhatWasQuotedAndWhichSectionsAreEmpty) {
  std::map<std::string, Setting> found;
  for (const Setting& one :
       parse_config(R"({"a": {"b": {}}, "c": "1", "d": 1, "e": [1, "1"], "f": []})", "f"))
    found[one.key] = one;
  EXPECT_EQ(found.size(), 5u);
  EXPECT_TRUE(found["a.b"].section && found["a.b"].values.empty());
  EXPECT_TRUE(found["c"].quoted && found["e"].quoted);
  EXPECT_FALSE(found["d"].quoted || found["d"].section || found["f"].section);
}

}  // namespace
}  // namespace vitrail::cli
