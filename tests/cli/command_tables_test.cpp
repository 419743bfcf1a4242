// The table of every command, whole: which options it has and in which order, every fact of each, and the
// page that --help makes of them. Then what the parser makes of their limits.
#include <algorithm>
#include <cmath>

#include "base/values.h"
#include "cli/help.h"
#include "in_process.h"
#include "stored_text.h"
#include "thrown.h"

namespace vitrail::cli {
namespace {

// What a help page does not tell stands here as well as what it tells.
std::string facts_of(const OptionSpec& spec) {
  static constexpr const char* kKinds[] = {"flag", "text", "integer", "number"};
  std::string text = spec.name + " " + kKinds[static_cast<int>(spec.kind)];
  const auto add = [&](const char* what, const std::string& value) {
    if (!value.empty()) text += std::string(", ") + what + value;
  };
  add("as ", spec.metavar);
  add("-", spec.letter ? std::string(1, spec.letter) : "");
  add("default ", spec.fallback);
  add("usually ", spec.usual);
  add("one of ", join(spec.choices, "|"));
  if (std::isfinite(spec.least)) add("least ", strf("%.15g", spec.least));
  if (std::isfinite(spec.most)) add("most ", strf("%.15g", spec.most));
  add("", spec.repeated ? "repeated" : "");
  add("alone ", spec.implied);
  add("formerly ", spec.former_name);
  for (const FormerName& former : spec.former_choices)
    add("formerly ", std::string(former.was) + " for " + former.now);
  return text;
}

// Settings of training stand in the tables of several commands, and are stored with one.
bool is_setting_of_training(const OptionSpec& spec) {
  static const std::vector<OptionSpec> all = train_command().spec.options;
  return spec.name.find('.') != std::string::npos &&
         std::any_of(all.begin(), all.end(), [&](const OptionSpec& known) {
           return known.name == spec.name && facts_of(known) == facts_of(spec) && known.help == spec.help;
         });
}

std::string section_of(const std::string& name) {
  return name.substr(0, name.find('.'));
}

std::string table_text(CommandSpec command) {
  std::string shared, last;
  if (command.name != "train")
    std::erase_if(command.options, [&](const OptionSpec& spec) {
      if (!is_setting_of_training(spec)) return false;
      shared += (section_of(spec.name) == last ? " " : "\n  ") + spec.name;
      last = section_of(spec.name);
      return true;
    });
  std::string text = help_page(command, 100) + "\nTable:\n";
  for (const OptionSpec& spec : all_options(command)) text += "  " + facts_of(spec) + "\n";
  for (const PositionalSpec& spec : command.positionals)
    text += strf("  %s: at least %zu%s\n", spec.metavar.c_str(), spec.least,
                 spec.most == SIZE_MAX ? "" : strf(", at most %zu", spec.most).c_str());
  return text + (shared.empty() ? "" : "\nAs train has them:" + shared + "\n");
}

class CommandTable : public testing::TestWithParam<std::string> {};
TEST_P(CommandTable, IsTheStoredOne) {
  const CommandSpec& spec = command_named(GetParam()).spec;
  std::string file = spec.name;
  std::replace(file.begin(), file.end(), ' ', '_');
  expect_stored("golden/told/commands/" + file + ".txt", table_text(spec));
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.push_back(command.spec.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Every, CommandTable, testing::ValuesIn(command_names()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

// The order of the overview, in which `vitrail --help` lists them.
TEST(CommandTables, AreInTheOrderOfTheOverview) {
  EXPECT_EQ(
      join(command_names(), ", "),
      "predict, explain, train, launch, eval, inspect, convert, verify, plan, bench infer, bench stream, "
      "bench train, bench tune, bench dist, bench calibrate, profile, data check, data stats, data show, "
      "data pack, scale, doctor");
}

std::vector<std::string> fewest_words(const CommandSpec& command) {
  size_t least = 0;
  for (const PositionalSpec& spec : command.positionals) least += spec.least;
  return std::vector<std::string>(least, "x");
}

std::string refusal_by(const CommandSpec& command, const std::vector<std::string>& arguments,
                       const std::string& variable = "", const std::string& value = "") {
  return thrown_by([&] {
    parse_options(
        command, arguments,
        [&](const std::string& name) { return name == variable ? value.c_str() : nullptr; },
        [](const std::string&) { return std::vector<Setting>(); });
  });
}

// What a flag, --set and the environment say to this text of an option, in this order; "nothing" where it is
// taken.
std::vector<std::string> refusals_of(const CommandSpec& command, const OptionSpec& spec,
                                     const std::string& text) {
  std::vector<std::string> flag = fewest_words(command), set = flag;
  const std::vector<std::string> words = flag;
  flag.push_back("--" + spec.name + "=" + text);
  set.insert(set.end(), {"--set", spec.name + "=" + text});
  return {refusal_by(command, flag), refusal_by(command, set),
          refusal_by(command, words, environment_name(spec.name), text)};
}

std::vector<std::string> refused_beyond(const OptionSpec& spec, const std::string& text) {
  const bool low = std::isfinite(spec.least), high = std::isfinite(spec.most);
  const std::string range = low && high ? strf("from %.15g to %.15g", spec.least, spec.most)
                            : low       ? strf("of at least %.15g", spec.least)
                                        : strf("of at most %.15g", spec.most);
  const std::string rule =
      strf(" expects %s %s, not '%s'", spec.kind == ValueKind::kInteger ? "a whole number" : "a number",
           range.c_str(), text.c_str());
  return {"usage: --" + spec.name + rule, "config: --set: " + spec.name + rule,
          "usage: " + environment_name(spec.name) + " (environment)" + rule};
}

// Exactly a limit is accepted; the next number beyond it is refused, with both limits told.
size_t check_limits(const CommandSpec& command, const OptionSpec& spec) {
  size_t checked = 0;
  for (const double side : {-1.0, 1.0}) {
    const double limit = side < 0 ? spec.least : spec.most;
    if (!std::isfinite(limit)) continue;
    const double beyond =
        spec.kind == ValueKind::kInteger ? limit + side : std::nextafter(limit, side * 1e300);
    const std::string at = strf("%.17g", limit), past = strf("%.17g", beyond);
    EXPECT_EQ(refusals_of(command, spec, at), std::vector<std::string>(3, "nothing"))
        << spec.name << " " << at;
    std::vector<std::string> told = refusals_of(command, spec, past);
    for (std::string& one : told) one = one.substr(0, one.find(" | "));
    EXPECT_EQ(told, refused_beyond(spec, past)) << spec.name;
    ++checked;
  }
  return checked;
}

TEST(CommandTables, NumbersReachTheirLimitsAndNoFurther) {
  size_t checked = 0;
  for (const Command& command : commands()) {
    SCOPED_TRACE(command.spec.name);
    for (const OptionSpec& spec : all_options(command.spec))
      if (spec.kind == ValueKind::kInteger || spec.kind == ValueKind::kNumber)
        checked += check_limits(command.spec, spec);
  }
  EXPECT_GT(checked, 150u);
}

TEST(CommandTables, WordsAreAsManyAsTheTableSays) {
  for (const Command& command : commands()) {
    SCOPED_TRACE(command.spec.name);
    size_t most = 0;
    std::string shape;
    for (const PositionalSpec& spec : command.spec.positionals) {
      most = spec.most > SIZE_MAX - most ? SIZE_MAX : most + spec.most;
      shape += " " + spec.metavar;
    }
    std::vector<std::string> words = fewest_words(command.spec);
    EXPECT_EQ(refusal_by(command.spec, words), "nothing");
    const std::string name = "usage: vitrail " + command.spec.name,
                      help = " | vitrail " + command.spec.name + " --help lists every option";
    if (!words.empty()) {
      words.pop_back();
      EXPECT_EQ(refusal_by(command.spec, words), name + " needs" + shape + help);
    }
    if (most == SIZE_MAX) continue;
    words.assign(most, "x");
    EXPECT_EQ(refusal_by(command.spec, words), "nothing");
    words.emplace_back("last");
    EXPECT_EQ(refusal_by(command.spec, words), name + " does not take 'last'" + help);
  }
}

}  // namespace
}  // namespace vitrail::cli
