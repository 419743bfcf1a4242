#include "cli/help.h"

#include <algorithm>

#include "base/error.h"
#include "base/values.h"
#include "telemetry/format.h"

namespace vitrail::cli {

namespace {
constexpr size_t kTextColumn = 28;    // where helps begin
constexpr size_t kFirstExamples = 4;  // shown on the overview page

// Returns `text` broken at spaces, with every line but the first indented by `indent`.
std::string wrap(const std::string& text, size_t indent, size_t width) {
  std::string out;
  size_t column = indent;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (column > indent && column + 1 + display_width(word) > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    const std::string next = column > indent ? " " + word : word;
    out += next;
    column += display_width(next);
    at = end + 1;
  }
  return out;
}

std::string left_part(const OptionSpec& spec) {
  std::string text = spec.letter ? strf("  -%c, --", spec.letter) : "      --";
  text += spec.name;
  if (!spec.implied.empty()) return text + "[=" + spec.metavar + "]";
  return spec.metavar.empty() ? text : text + " " + spec.metavar;
}

// Returns the help of an option, with its choices unless the help names them already.
std::string right_part(const OptionSpec& spec) {
  std::string text = spec.help;
  const bool told = spec.metavar == "BOOL" ||
                    std::all_of(spec.choices.begin(), spec.choices.end(), [&](const std::string& choice) {
                      return text.find(choice) != std::string::npos;
                    });
  if (!told) text += ": " + join(spec.choices, ", ");
  const std::string& usual = spec.fallback.empty() ? spec.usual : spec.fallback;
  if (!usual.empty()) text += " (default: " + usual + ")";
  return text;
}

std::string two_columns(const std::string& left, const std::string& right, int width) {
  const size_t used = display_width(left);
  const std::string gap =
      used + 2 <= kTextColumn ? std::string(kTextColumn - used, ' ') : "\n" + std::string(kTextColumn, ' ');
  return left + gap + wrap(right, kTextColumn, static_cast<size_t>(std::max(width, 60))) + "\n";
}

std::string option_rows(std::span<const OptionSpec> options, int width, bool settings) {
  std::string text;
  for (const OptionSpec& spec : options) {
    const bool is_setting = spec.name.find('.') != std::string::npos;
    if (is_setting != settings) continue;
    text += two_columns(settings ? "  " + spec.name + "=" + spec.metavar : left_part(spec), right_part(spec),
                        width);
  }
  return text;
}
}  // namespace

std::string help_page(const CommandSpec& command, int width) {
  std::string page = strf("vitrail %s: %s\n\nUsage: vitrail %s [options]", command.name.c_str(),
                          command.summary.c_str(), command.name.c_str());
  for (const PositionalSpec& spec : command.positionals)
    page += spec.least > 0 ? " " + spec.metavar : " [" + spec.metavar + "]";
  page += "\n\nExamples:\n";
  for (const ExampleSpec& example : command.examples)
    page += "  vitrail " + example.command + "\n      " + wrap(example.does, 6, static_cast<size_t>(width)) +
            "\n";
  if (!command.positionals.empty()) page += "\nArguments:\n";
  for (const PositionalSpec& spec : command.positionals)
    page += two_columns("  " + spec.metavar, spec.help, width);

  const std::vector<OptionSpec> all = all_options(command);
  const std::span<const OptionSpec> rows(all);
  const std::string own = option_rows(rows.first(command.options.size()), width, false);
  if (!own.empty()) page += "\nOptions:\n" + own;
  const std::string settings = option_rows(rows, width, true);
  if (!settings.empty()) page += "\nSettings (--set KEY=VALUE, or in a config file):\n" + settings;
  page += "\nCommon options:\n" + option_rows(rows.subspan(command.options.size()), width, false);
  page += "\n" +
          wrap(
              "Every option may also be given as VITRAIL_<NAME> in the environment or in the --config file "
              "(flag > --set > environment > config > default).",
              0, static_cast<size_t>(width)) +
          "\n";
  return page;
}

std::string group_page(const std::string& word, std::span<const CommandSpec> commands, int width) {
  std::string page = strf("Usage: vitrail %s COMMAND [options]\n\nCommands:\n", word.c_str());
  for (const CommandSpec& command : commands)
    page += two_columns("  " + command.name, command.summary, width);
  return page +
         strf("\nvitrail %s --help shows a command's options and examples.\n", commands.front().name.c_str());
}

std::string overview_page(std::span<const CommandSpec> commands, int width) {
  std::string page =
      "Vitrail: Vision Transformers, native.\n\n"
      "Usage: vitrail COMMAND [options]\n\n"
      "Start here:\n";
  for (const CommandSpec& command : commands.first(std::min(commands.size(), kFirstExamples)))
    if (!command.examples.empty()) page += "  vitrail " + command.examples.front().command + "\n";
  page += "\nCommands:\n";
  for (const CommandSpec& command : commands)
    page += two_columns("  " + command.name, command.summary, width);
  return page +
         "\nvitrail COMMAND --help shows a command's options and examples; vitrail --version the version.\n";
}

}  // namespace vitrail::cli
