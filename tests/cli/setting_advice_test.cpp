// Every setting, given a wrong value: what the refusal says.
#include "cli/setting_advice.h"

#include <gtest/gtest.h>

#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/train_settings.h"
#include "temp_folder.h"
#include "train/run_setup.h"

namespace vitrail::cli {
namespace {

// A run small enough to be set up for each wrong value; the wrong one wins.
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

// The refusal of KEY=VALUE as the program shows it; nothing when it is accepted.
std::optional<Error> refusal_of(const std::string& key, const std::string& value) {
  std::vector<std::string> arguments;
  for (const std::string setting : kSmall)
    if (!setting.starts_with(key + "=")) arguments.insert(arguments.end(), {"--set", setting});
  arguments.insert(arguments.end(), {"--set", key + "=" + value});
  Options options;
  try {
    options = parse_options(
        train_command().spec, arguments, [](const std::string&) { return nullptr; }, read_config_file);
    set_up(read_train_config(options));
    return std::nullopt;
  } catch (const Error& error) {
    return with_advice(error, specs(), options);
  } catch (const std::exception& error) {
    return Error(ErrorKind::kInternal, key + "=" + value + " ends in " + error.what());
  }
}

std::string last_part(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

// Wrong for the type, or beyond any range.
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
      EXPECT_EQ(exit_code(error->kind()), place ? 65 : 64);
    }
    const bool free_text = spec.kind == ValueKind::kText && spec.choices.empty();
    EXPECT_TRUE(any || free_text) << spec.name << " takes anything";
  }
  EXPECT_GT(refused, 200);
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

TEST(SettingAdvice, OnlyWhatLacksAdviceGetsSome) {
  const Options none;
  const Error own(ErrorKind::kConfig, "optim.lr is -1", "its own"), data(ErrorKind::kData, "optim.lr is -1");
  EXPECT_EQ(with_advice(own, specs(), none).hint(), "its own");
  EXPECT_EQ(with_advice(data, specs(), none).hint(), "");
  Error placed = Error(ErrorKind::kConfig, "optim.lr is -1; expected a number above 0").at("inner");
  placed.at("outer");
  const Error better = with_advice(placed, specs(), none);
  EXPECT_NE(better.hint().find("optim.lr="), std::string::npos) << better.hint();
  EXPECT_EQ(better.context(), placed.context());
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
