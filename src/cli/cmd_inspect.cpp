#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/progress.h"
#include "io/cards/card_text.h"
#include "io/find_model.h"
#include "io/inspect.h"

namespace vitrail::cli {

namespace {
void run_inspect(const Options& options, Console& console) {
  if (options.flag("architectures")) {
    console.print_json(zoo_json());
    return console.print(zoo_text());
  }
  if (options.positionals().empty())
    throw Error(ErrorKind::kUsage, "vitrail inspect needs FILE",
                "a weight file, a model folder or a bundled model's name");
  std::optional<Progress> progress;
  const ModelContents report =
      inspect_model({.path = find_model(options.positional(0), model_places()),
                     .arch = options.text("arch"),
                     .filter = options.text("filter"),
                     .stats = options.flag("stats"),
                     .progress = [&](size_t, size_t total) {
                       if (!progress)
                         progress.emplace(console, "inspect", "tensors", static_cast<int64_t>(total));
                       progress->advance(1);
                     }});
  progress.reset();
  console.print_json(to_json(report));
  console.print(console.bold(report.path) + " (" + report.format + ")\n");
  if (report.card) console.print(card_text(*report.card, 2));
  if (!report.card) console.print("  no model card: " + report.not_a_model + "\n");
  for (const auto& [key, value] : report.metadata)
    console.print("  metadata " + shown(key) + ": " + quoted(value) + "\n");
  if (!options.flag("summary")) console.print("\n" + tensor_table(report, options.flag("stats")));
  for (const std::string& line : warnings_of(report, options.text("filter"))) console.say("warning: " + line);
}
}  // namespace

Command inspect_command() {
  return {
      {.name = "inspect",
       .summary = "what a weight file or model folder holds: card, tensors, totals",
       .examples = {{"inspect deit_tiny_patch16_224",
                     "the bundled model: architecture, numerics, every tensor"},
                    {"inspect model.safetensors --stats", "also min, max, mean, and a search for NaN"},
                    {"inspect weights.npz --filter '*attn*'", "only tensors whose name matches"},
                    {"inspect checkpoint.pth --json", "one JSON object; nothing in the file is executed"},
                    {"inspect --architectures", "every name that --arch and --model take"}},
       .options =
           {{.name = "stats", .help = "read every tensor: min, max, mean, NaN", .kind = ValueKind::kFlag},
            {.name = "summary", .help = "leave out the tensor table", .kind = ValueKind::kFlag},
            {.name = "filter", .help = "only tensors whose name matches (* and ?)", .metavar = "PATTERN"},
            {.name = "arch",
             .help = "timm's name of the architecture, when the file leaves a choice",
             .metavar = "NAME"},
            {.name = "architectures", .help = "list the known ones instead", .kind = ValueKind::kFlag}},
       .positionals = {{"FILE", "safetensors, npz, pth or bin file, model folder, or a bundled model's name",
                        0, 1}}},
      run_inspect};
}

}  // namespace vitrail::cli
