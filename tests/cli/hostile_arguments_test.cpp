// Whatever is typed, the parser answers with options or with an Error: never anything else.
#include <gtest/gtest.h>

#include <random>

#include "base/config_file.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/run.h"

namespace vitrail::cli {
namespace {

class Mutator {
 public:
  explicit Mutator(const CommandSpec& command) {
    for (const OptionSpec& spec : all_options(command)) {
      words_.push_back("--" + spec.name);
      words_.push_back("--" + spec.name + "=");
      if (spec.letter) words_.push_back({'-', spec.letter});
      words_.insert(words_.end(), spec.choices.begin(), spec.choices.end());
    }
    for (const char* word :
         {"-", "--", "---", "", "=", "--=x", "-=", "0", "-1", "1e309", "nan", "model.depth=2", "a.b=c",
          "\xff\xfe", "\033[2J", "x.png", "99999999999999999999999", "%s%n", "true"})
      words_.emplace_back(word);
    words_.emplace_back(100000, 'a');
  }

  std::vector<std::string> next() {
    std::vector<std::string> arguments(random_() % 7);
    for (std::string& word : arguments) {
      word = words_[random_() % words_.size()];
      if (random_() % 4 == 0 && !word.empty()) word[random_() % word.size()] = static_cast<char>(random_());
      if (random_() % 8 == 0) word += words_[random_() % words_.size()].substr(0, 40);
    }
    return arguments;
  }

 private:
  std::vector<std::string> words_;
  std::mt19937 random_{7};
};

TEST(HostileArguments, OptionsOrAnError) {
  for (const Command& command : commands()) {
    Mutator mutator(command.spec);
    size_t accepted = 0, refused = 0;
    for (int i = 0; i < 3000; ++i) {
      const std::vector<std::string> arguments = mutator.next();
      try {
        parse_options(
            command.spec, arguments, [](const std::string&) -> const char* { return nullptr; },
            [](const std::string&) { return std::vector<Setting>(); });
        ++accepted;
      } catch (const Error& error) {
        EXPECT_EQ(exit_code(error.kind()), 64) << error.what();
        EXPECT_FALSE(format_error(error, false, true).empty());
        ++refused;
      }
    }
    EXPECT_GT(accepted, 0u) << command.spec.name;
    EXPECT_GT(refused, 0u) << command.spec.name;
  }
}

TEST(HostileArguments, ConfigsAreSettingsOrAnError) {
  const std::string good = R"({"top-k": 5, "model": {"depth": [1, 2.5, "x"]}, // note
  "deep": {"a": {"b": {"c": true}}}})";
  std::mt19937 random(11);
  size_t accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (unsigned edits = random() % 4; edits > 0; --edits) {
      const size_t at = random() % text.size();
      if (random() % 3 == 0)
        text.erase(at, 1 + random() % 5);
      else
        text[at] = "{}[]\",:0-9e. \nx\x80"[random() % 16];
    }
    try {
      parse_config(text, "fuzz.json");
      ++accepted;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    }
  }
  EXPECT_GT(accepted, 1000u);
}

TEST(HostileArguments, HelpFitsAnyTerminal) {
  std::vector<CommandSpec> specs;
  for (const Command& command : commands()) {
    specs.push_back(command.spec);
    for (const int width : {0, 1, 40, 80, 100, 1000}) EXPECT_FALSE(help_page(command.spec, width).empty());
  }
  for (const int width : {0, 60, 160})
    EXPECT_NE(overview_page(specs, width).find("Commands:"), std::string::npos);
}

}  // namespace
}  // namespace vitrail::cli
