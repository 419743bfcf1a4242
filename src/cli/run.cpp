#include "cli/run.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <new>
#include <optional>

#include "base/config_file.h"
#include "base/text.h"
#include "base/values.h"
#include "cli/commands.h"
#include "cli/device_choice.h"
#include "cli/environment.h"
#include "cli/help.h"
#include "cli/model_choice.h"
#include "cli/option_values.h"
#include "launch/rank_session.h"

namespace vitrail::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      predict_command(),    explain_command(),     train_command(),           launch_command(),
      eval_command(),       inspect_command(),     convert_command(),         verify_command(),
      plan_command(),       bench_infer_command(), bench_stream_command(),    bench_train_command(),
      bench_tune_command(), bench_dist_command(),  bench_calibrate_command(), profile_command(),
      data_check_command(), data_stats_command(),  data_show_command(),       data_pack_command(),
      scale_command(),      doctor_command(),
  };
  return all;
}

namespace {
// Indents every line after the first, so that a message of several lines stays one block. Names in a message
// may come from anywhere, so control characters are made printable.
std::string indented(const std::string& text, const std::string& space) {
  std::string out;
  for (const char c : printable(text)) {
    out += c;
    if (c == '\n') out += space;
  }
  return out;
}

std::vector<CommandSpec> command_specs() {
  std::vector<CommandSpec> specs;
  for (const Command& command : commands()) specs.push_back(command.spec);
  return specs;
}

// Returns the commands of two words whose first word is `word`.
std::vector<CommandSpec> group_of(const std::string& word) {
  std::vector<CommandSpec> group = command_specs();
  std::erase_if(group, [&](const CommandSpec& spec) { return !spec.name.starts_with(word + " "); });
  return group;
}

bool is_help(const std::string& word) {
  return word == "--help" || word == "-h";
}

[[noreturn]] void refuse_group_member(std::span<const std::string> arguments,
                                      const std::vector<CommandSpec>& group) {
  const std::string& word = arguments[0];
  std::vector<std::string> names, members;
  for (const CommandSpec& spec : group) {
    names.push_back(spec.name);
    members.push_back(spec.name.substr(word.size() + 1));
  }
  const std::string all = "one of: " + join(names, ", ");
  if (arguments.size() < 2 || arguments[1].starts_with("-"))
    throw Error(ErrorKind::kUsage, strf("'%s' needs one more word", word.c_str()), all);
  throw Error(ErrorKind::kUsage, strf("there is no command %s", quoted(word + " " + arguments[1]).c_str()),
              did_you_mean(arguments[1], members, "vitrail " + word + " ", all));
}

[[noreturn]] void refuse_command(std::span<const std::string> arguments) {
  const std::string& word = arguments[0];
  if (const std::vector<CommandSpec> group = group_of(word); !group.empty())
    refuse_group_member(arguments, group);
  if (word.starts_with("-"))
    throw Error(ErrorKind::kUsage, strf("expected a command before %s", quoted(word).c_str()),
                "options come after the command, as in: vitrail doctor --json");
  std::vector<std::string> names;
  for (const Command& command : commands()) names.push_back(command.spec.name);
  throw Error(ErrorKind::kUsage, strf("there is no command %s", quoted(word).c_str()),
              did_you_mean(word, names, "vitrail ", "vitrail --help lists the commands"));
}

// Returns whether a command has settings of its own under "section.".
bool declares_section(const CommandSpec& spec, const std::string& section) {
  return std::any_of(spec.options.begin(), spec.options.end(),
                     [&](const OptionSpec& option) { return option.name.starts_with(section); });
}

// Returns the settings of a config file without those under the name of another command; "bench" with nothing
// in it is a part of such a name.
std::vector<Setting> settings_for(const CommandSpec& own, const std::string& path) {
  std::vector<Setting> settings = read_config_file(path);
  std::erase_if(settings, [&](const Setting& setting) {
    const std::string key = setting.key + (setting.section ? "." : "");
    return std::any_of(commands().begin(), commands().end(), [&](const Command& other) {
      std::string section = other.spec.name + ".";
      std::replace(section.begin(), section.end(), ' ', '.');
      return other.spec.name != own.name &&
             (key.starts_with(section) || (setting.section && section.starts_with(key))) &&
             !declares_section(own, section);
    });
  });
  return settings;
}

// Checks the options that all commands share.
void check_common(const CommandSpec& spec, const Options& options) {
  const bool computes = std::any_of(spec.options.begin(), spec.options.end(),
                                    [](auto& o) { return o.name == "backend" || o.name == "device"; });
  for (const std::string& device : options.list("device")) {
    if (named_device(device, "--device").on_host) continue;
    if (!computes)
      throw Error(ErrorKind::kUsage, strf("vitrail %s runs on the CPU alone", spec.name.c_str()),
                  "leave out --device");
    device_here(device, 0, "");  // an absent GPU is refused before anything is read
  }
  if (spec.infers)
    check_precision(options.text("dtype"), options.text("device"), options.text("backend"), "--");
  const bool has_dtype =
      std::any_of(spec.options.begin(), spec.options.end(), [](auto& o) { return o.name == "dtype"; });
  if (!has_dtype && options.text("dtype") != "f32")
    throw Error(
        ErrorKind::kUsage,
        strf("vitrail %s computes in f32 only, not in %s", spec.name.c_str(), options.text("dtype").c_str()),
        "leave out --dtype; weights stored as f16 or bf16 are read as they are");
}

void run_command(const Command& command, std::span<const std::string> arguments, ConsoleSettings& settings) {
  const Options options = options_of(command, arguments);
  if (options.flag("help")) {
    Console page(settings);
    page.write(help_page(command.spec, std::min(settings.width, 100)));
    return page.flush();
  }
  settings.json = options.flag("json");
  settings.quiet = options.flag("quiet");
  settings.verbose = options.flag("verbose") || options.flag("debug");
  check_common(command.spec, options);
  Console console(settings);
  for (const std::string& warning : environment_warnings(environment_names(), command_specs()))
    console.say(warning);
  for (const std::string& line : options.former_names()) console.say(line);
  if (settings.verbose)
    if (const std::string note = chosen_kernels(options).note; !note.empty()) console.detail(note);
  try {
    command.run(options, console);
  } catch (const Error& error) {
    throw with_advice(error, all_options(command.spec), options);
  }
  console.flush();
}

// Puts "--" before the command that `vitrail launch` is to start: the options after it are that one's.
void set_apart(std::vector<std::string>& words) {
  if (words[0] != "launch") return;
  for (size_t i = 1; i < words.size() && words[i] != "--"; ++i)
    for (const Command& command : commands())
      if (words_of(command, std::span(words).subspan(i)) > 0) {
        words.insert(words.begin() + static_cast<std::ptrdiff_t>(i), "--");
        return;
      }
}

// Turns `vitrail help predict` into `vitrail predict --help`.
std::vector<std::string> help_last(std::span<const std::string> arguments) {
  std::vector<std::string> words(arguments.begin(), arguments.end());
  if (words.size() > 1 && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  return words;
}

// Shows a page that belongs to no command; false when the arguments request none.
bool show_page(std::span<const std::string> arguments, const ConsoleSettings& settings) {
  Console console(settings);
  const int width = std::min(settings.width, 100);
  const std::string& word = arguments[0];
  if (is_help(word) || word == "help") console.write(overview_page(command_specs(), width));
  if (word == "--version" || word == "-V") console.write(strf("vitrail %s\n", VITRAIL_VERSION));
  if (arguments.size() == 2 && is_help(arguments[1]))
    if (const std::vector<CommandSpec> group = group_of(word); !group.empty())
      console.write(group.size() == 1 ? help_page(group[0], width) : group_page(word, group, width));
  const bool shown = console.pending();
  console.flush();
  return shown;
}

void dispatch(std::span<const std::string> given, ConsoleSettings& settings) {
  if (given.empty()) {
    Console(settings).say(overview_page(command_specs(), std::min(settings.width, 100)));
    throw Error(ErrorKind::kUsage, "no command was given", "one of the commands above");
  }
  std::vector<std::string> arguments = help_last(given);
  set_apart(arguments);
  if (show_page(arguments, settings)) return;
  for (const Command& command : commands())
    if (const size_t words = words_of(command, arguments))
      return run_command(command, std::span(arguments).subspan(words), settings);
  refuse_command(arguments);
}

int show(const Error& error, const ConsoleSettings& settings, std::span<const std::string> arguments) {
  const bool debug = std::find(arguments.begin(), arguments.end(), "--debug") != arguments.end();
  Console(settings).error(format_error(error, settings.colour && settings.err_terminal, debug));
  return exit_code(error.kind());
}
}  // namespace

Options options_of(const Command& command, std::span<const std::string> arguments) {
  return parse_options(
      command.spec, arguments, [](const std::string& name) { return std::getenv(name.c_str()); },
      [&](const std::string& path) { return settings_for(command.spec, path); });
}

size_t words_of(const Command& command, std::span<const std::string> arguments) {
  const std::vector<std::string_view> words = split(command.spec.name, ' ');
  if (arguments.size() < words.size() || arguments[0] != words[0]) return 0;
  // A second word may look like an option: `vitrail bench --tune` is `vitrail bench tune`.
  for (size_t i = 1; i < words.size(); ++i)
    if (arguments[i] != words[i] && arguments[i] != "--" + std::string(words[i])) return 0;
  return words.size();
}

std::string format_error(const Error& error, bool colour, bool debug) {
  std::string text = (colour ? "\033[1;31merror:\033[0m " : "error: ") + indented(error.message(), "    ");
  const std::vector<std::string>& places = error.context();
  for (size_t i = 0; i < places.size(); ++i)
    if (i == 0 || places[i] != places[i - 1]) text += "\n  at: " + indented(places[i], "    ");
  if (!error.hint().empty()) text += "\n  try: " + indented(error.hint(), "    ");
  if (debug) text += strf("\n  kind: %s, exit code %d", to_string(error.kind()), exit_code(error.kind()));
  return text;
}

int run(std::span<const std::string> arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond ulimit -f then fails, and is told like any other
  ConsoleSettings settings = detect_console();
  try {
    dispatch(arguments, settings);
    return 0;
  } catch (const ClosedPipe&) {
    return 0;
  } catch (const EndProcess& end) {
    if (!end.last_line.empty()) Console(settings).error(indented(end.last_line, "    "));
    return end.code;
  } catch (const Error& error) {
    return show(error, settings, arguments);
  } catch (const std::bad_alloc&) {
    return show(Error(ErrorKind::kMemory, "out of memory", "use a smaller --batch, or free some memory"),
                settings, arguments);
  } catch (const std::exception& error) {
    return show(Error(ErrorKind::kInternal, error.what(),
                      "this is a fault in Vitrail; please report it with the command used"),
                settings, arguments);
  } catch (...) {
    return show(Error(ErrorKind::kInternal, "an unknown exception"), settings, arguments);
  }
}

}  // namespace vitrail::cli
