#include "cli/deepspeed_choice.h"

#include "base/text.h"

namespace vitrail::cli {

namespace {

// Flags that stand for a setting.
constexpr std::pair<std::string_view, std::string_view> kFlags[] = {{"train.dtype", "dtype"},
                                                                    {"train.seed", "seed"},
                                                                    {"train.recompute", "recompute"},
                                                                    {"train.micro_batch", "batch"},
                                                                    {"optim.name", "optimizer"}};

// Returns whether --mesh dp=2,zero=1 speaks of "mesh.zero".
bool in_mesh(const Options& options, std::string_view key) {
  if (!options.given_beyond("mesh", Origin::kConfig) || !key.starts_with("mesh.")) return false;
  for (const std::string_view part : split(options.text("mesh"), ','))
    if (part.substr(0, part.find('=')) == key.substr(5)) return true;
  return false;
}

GivenBy giver(const Options& options, const std::string& key) {
  for (const auto& [setting, flag] : kFlags)
    if (key == setting && options.given_beyond(flag, Origin::kConfig)) return GivenBy::kCommand;
  if (in_mesh(options, key)) return GivenBy::kCommand;
  if (options.given_beyond(key, Origin::kConfig)) return GivenBy::kCommand;
  return options.given_beyond(key, Origin::kDefault) ? GivenBy::kConfig : GivenBy::kDefault;
}

}  // namespace

bool given_on_command_line(const Options& options, const std::string& key) {
  return giver(options, key) == GivenBy::kCommand;
}

OptionSpec deepspeed_option() {
  return {.name = "deepspeed",
          .help =
              "take settings from a DeepSpeed JSON: they replace those of --config, and --set and flags "
              "replace them; keys that cannot be honoured are refused by name",
          .metavar = "FILE"};
}

DeepSpeedReading with_deepspeed(const Options& options, TrainConfig config, int ranks) {
  if (!options.declared("deepspeed") || !options.given("deepspeed")) return {std::move(config), {}, {}};
  return read_deepspeed(options.text("deepspeed"),
                        {.config = std::move(config),
                         .ranks = ranks,
                         .given_by = [&](const std::string& key) { return giver(options, key); }});
}

void say_notes(const DeepSpeedReading& reading, const Options& options, Console& console) {
  for (const DeepSpeedNote& note : reading.notes) console.say(options.text("deepspeed") + ": " + note.text);
}

}  // namespace vitrail::cli
