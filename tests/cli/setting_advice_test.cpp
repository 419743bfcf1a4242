// Every setting, given a wrong value: what the refusal reports.
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "base/config_file.h"
#include "cli/commands.h"
#include "cli/option_values.h"
#include "cli/train_settings.h"
#include "temp_folder.h"
#include "train/run_setup.h"

namespace vitrail::cli {
namespace {

// A run small enough to be set up for each wrong value, which overrides the default.
constexpr const char* kSmall[] = {"data.train=synthetic:3x16x16x4x32",
                                  "model.image=16",
                                  "model.patch=8",
                                  "model.width=24",
                                  "model.depth=1",
                                  "model.heads=3",
                                  "model.mlp=32",
                                  "train.batch=8"};

const std::vector<OptionSpec>& specs() {
  static const std::vector<OptionSpec> all = all_options(train_command().spec);
  return all;
}

using Assignments = std::map<std::string, std::string>;

Assignments small_run() {
  Assignments settings;
  for (const std::string setting : kSmall)
    settings[setting.substr(0, setting.find('='))] = setting.substr(setting.find('=') + 1);
  return settings;
}

// Returns the refusal of these settings as the program shows it; nothing when they are accepted.
std::optional<Error> refusal_of(const Assignments& settings) {
  std::vector<std::string> arguments;
  for (const auto& [key, value] : settings) arguments.insert(arguments.end(), {"--set", key + "=" + value});
  Options options;
  try {
    options = parse_options(
        train_command().spec, arguments, [](const std::string&) { return nullptr; }, read_config_file);
    set_up(read_train_config(options));
    return std::nullopt;
  } catch (const Error& error) {
    return with_advice(error, specs(), options);
  } catch (const std::exception& error) {
    return Error(ErrorKind::kInternal, std::string("ends in ") + error.what());
  }
}

std::optional<Error> refusal_of(const std::string& key, const std::string& value) {
  Assignments settings = small_run();
  settings[key] = value;
  return refusal_of(settings);
}

// Returns nothing when following the advice for these settings leads anywhere but to the same refusal;
// otherwise what is wrong with the advice.
std::string fault_of(const Error& refusal, Assignments settings) {
  std::smatch found;
  const std::string& hint = refusal.hint();
  if (std::regex_search(hint, found, std::regex("leave ([a-z_.]+) out"))) {
    if (!settings.erase(found[1])) return "nobody had given " + found[1].str();
  } else if (std::regex_search(hint, found, std::regex("([a-z_]+[.][a-z_]+)=([^ ,;:]+)"))) {
    settings[found[1]] = found[2];
  } else {
    return {};  // in words
  }
  const auto next = refusal_of(settings);
  return next && next->message() == refusal.message() ? "it leads to the same refusal" : "";
}

std::string last_part(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

// The values are of the wrong type, or beyond any range.
std::vector<std::string> wrong_values(const OptionSpec& spec) {
  if (spec.kind == ValueKind::kInteger) return {"seven", "1.5", "-7", "99999999999"};
  if (spec.kind == ValueKind::kNumber) return {"much", "nan", "-7", "1e30"};
  return {"nonsense", "\x1b[2J"};
}

TEST(SettingAdvice, EveryRefusalNamesKeyValueAndRemedy) {
  int refused = 0;
  std::string silent;
  for (const OptionSpec& spec : train_settings()) {
    bool any = false;
    for (const std::string& value : wrong_values(spec)) {
      const auto error = refusal_of(spec.name, value);
      if (!error) continue;
      any = true, ++refused;
      SCOPED_TRACE(spec.name + "=" + value + ": " + error->what());
      const std::string all = error->what();
      const bool place = error->kind() == ErrorKind::kData;  // a model or data that is not there
      EXPECT_TRUE(place || all.find(last_part(spec.name)) != std::string::npos) << "the key";
      EXPECT_FALSE(error->hint().empty()) << "what to try";
      Assignments settings = small_run();
      settings[spec.name] = value;
      EXPECT_EQ(fault_of(*error, settings), "");
      EXPECT_EQ(exit_code(error->kind()), place ? 65 : 64);
    }
    const bool free_text = spec.kind == ValueKind::kText && spec.choices.empty();
    EXPECT_TRUE(any || free_text) << spec.name << " takes anything";
  }
  EXPECT_GT(refused, 200);
}

// Settings that are right by themselves and wrong together: what is advised makes them right.
TEST(SettingAdvice, OfTwoThatDoNotFitTheOneThatWasGivenIsSpokenOf) {
  const std::string data = "synthetic:3x16x16x4x32";
  const struct {
    Assignments settings;
    const char* advice;
  } rows[] = {
      {{}, "data.train=FORMAT:PLACE"},
      {{{"model.image", "28"}}, "model.patch=14, or model.image=32"},
      {{{"model.image", "8"}}, "model.patch=8, or model.image=16"},
      {{{"model.width", "8"}}, "model.heads=8, or model.width=12"},
      {{{"model.pos", "sincos2d"}}, "model.pos_for_prefix=false"},
      {{{"model.image", "1000000"}}, "leave model.image out"},
      {{{"model.image_width", "1000000"}}, "leave model.image_width out"},
      {{{"distill.kind", "soft"}}, "distill.teacher=MODEL"},
      {{{"model.image", "16"}, {"model.image_height", "32"}}, "model.image for images as high as wide"}};
  for (const auto& row : rows) {
    Assignments settings = row.settings;
    if (!settings.empty()) settings["data.train"] = data;
    const auto error = refusal_of(settings);
    ASSERT_TRUE(error) << row.advice;
    EXPECT_NE(error->hint().find(row.advice), std::string::npos) << error->what();
    EXPECT_EQ(error->kind(), ErrorKind::kConfig) << error->what();
    if (error->hint().starts_with("model.")) {
      EXPECT_EQ(fault_of(*error, settings), "") << error->what();
    }
  }
}

TEST(SettingAdvice, OptionsAreAdvisedAsTheyAreWritten) {
  OptionSpec spec{.name = "batch", .help = "", .kind = ValueKind::kInteger, .fallback = "1"};
  EXPECT_EQ(advice_for(spec), "--batch 1, its default");
}

// What a config file says gives way to the command line; two of the same rank contradict each other.
TEST(SettingAdvice, TheSizeOfImagesIsSaidOnce) {
  const TempFolder folder;
  const std::string config = folder.file("c.json", R"({"model": {"image_height": 8, "image_width": 8}})");
  const auto read = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--set", "data.train=synthetic:3x16x16x4x32"});
    return read_train_config(parse_options(
                                 train_command().spec, arguments, [](const std::string&) { return nullptr; },
                                 read_config_file))
        .model.fields;
  };
  EXPECT_EQ(read({"--config", config, "--set", "model.image=16"}).image_height, 16);
  EXPECT_THROW(read({"--set", "model.image=8", "--set", "model.image_height=7"}), Error);
  EXPECT_EQ(read({"--set", "model.image=8", "--set", "model.image_height=8"}).image_width, 8);
}

TEST(SettingAdvice, TypesAndChoicesShowWhatWasFound) {
  for (const OptionSpec& spec : train_settings()) {
    if (spec.kind == ValueKind::kText && spec.choices.empty()) continue;
    const auto error = refusal_of(spec.name, "nonsense");
    ASSERT_TRUE(error) << spec.name;
    EXPECT_NE(error->message().find(spec.name), std::string::npos) << error->message();
    EXPECT_NE(error->message().find("'nonsense'"), std::string::npos) << error->message();
    EXPECT_NE(error->message().find("expects"), std::string::npos) << error->message();
    EXPECT_FALSE(error->hint().empty());
  }
}

TEST(SettingAdvice, TheDefaultTheChoicesOrWhatTheModelSays) {
  OptionSpec spec{.name = "optim.lr", .help = "how fast", .kind = ValueKind::kNumber};
  EXPECT_NE(advice_for(spec).find("leave optim.lr out"), std::string::npos);
  spec.usual = "0.001";
  EXPECT_EQ(advice_for(spec), "optim.lr=0.001, its default (how fast)");
  spec.choices = {"a", "b"};
  EXPECT_EQ(advice_for(spec), "one of a, b (how fast)");
}

// An option that is no setting has advice only where it was given.
TEST(SettingAdvice, OfAnOptionThatWasGiven) {
  const Error odd(ErrorKind::kConfig, "the dtype is odd");
  EXPECT_EQ(with_advice(odd, specs(), {}).hint(),
            "vitrail train --help lists every setting with its default");
  const Options given = parse_options(
      train_command().spec, std::vector<std::string>{"--dtype", "bf16"},
      [](const std::string&) { return nullptr; }, read_config_file);
  EXPECT_EQ(with_advice(odd, specs(), given).hint(),
            advice_for(*std::find_if(specs().begin(), specs().end(),
                                     [](const OptionSpec& spec) { return spec.name == "dtype"; })));
}

TEST(SettingAdvice, ConfigFilesOfTheWrongShape) {
  for (const char* text : {"[1]", "{\"a\": null}", "{\"a\": [[1]]}", "{\"a\": [{}]}"}) {
    try {
      parse_config(text, "f.json");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig);
      EXPECT_FALSE(error.hint().empty()) << error.what();
    }
  }
  EXPECT_EQ(parse_config("\xEF\xBB\xBF{\"a\": 1}", "f.json").at(0).key, "a") << "a byte order mark";
}

}  // namespace
}  // namespace vitrail::cli
