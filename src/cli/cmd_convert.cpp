#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/progress.h"
#include "io/convert.h"
#include "io/find_model.h"

namespace vitrail::cli {

namespace {
void run_convert(const Options& options, Console& console) {
  const std::string& target = options.positional(1);
  Conversion conversion({.source = find_model(options.positional(0), model_places()),
                         .target = target,
                         .dialect = options.text("to"),
                         .dtype = options.text("dtype"),
                         .arch = options.text("arch"),
                         .overwrite = options.flag("force")});
  const ModelCard& card = conversion.before().card();
  for (const std::string& note : card.notes) console.detail(note);
  for (const std::string& line : card.warnings) console.say("warning: " + line);
  const auto params = static_cast<int64_t>(vit_params(card.config).size());
  {
    Progress progress(console, "convert", "parameters", params);
    conversion.write([&] { progress.advance(1); });
  }
  const ParamComparison comparison = [&] {
    Progress progress(console, "verify", "parameters", params);
    return conversion.compare([&] { progress.advance(1); });
  }();
  console.print_json(to_json(conversion, comparison));
  console.print(to_text(conversion, comparison));
  if (!conversion.not_kept().empty())
    console.say("warning: Vitrail reads the new model as it was; another library will not: see \"not kept\"");
  require_close(conversion, comparison);
}
}  // namespace

Command convert_command() {
  return {
      {.name = "convert",
       .summary = "writes a model in another dialect: Hugging Face, timm, torchvision or google npz",
       .examples = {{"convert vit.npz vit_folder", "a google checkpoint becomes a Hugging Face folder"},
                    {"convert deit_tiny_patch16_224 deit.safetensors --dtype f16",
                     "one file under timm's names, half the size"},
                    {"convert vit.npz vit_timm --to timm", "a folder as timm publishes models"},
                    {"convert model.pth out.safetensors --arch deit_tiny_patch16_224",
                     "a bare file that could be several architectures needs the name"}},
       .options =
           {{.name = "to",
             .help = "the dialect to write; left out, .npz is google, .safetensors timm, a folder hf",
             .metavar = "DIALECT",
             .choices = {"hf", "timm", "torchvision", "google"}},
            {.name = "dtype",
             .help = "how numbers are stored",
             .metavar = "TYPE",
             .fallback = "same",
             .choices = {"same", "f32", "f16", "bf16"}},
            {.name = "arch",
             .help = "timm's name of the architecture, when the file leaves a choice",
             .metavar = "NAME"},
            {.name = "force", .help = "replace OUT if it exists", .kind = ValueKind::kFlag, .letter = 'f'}},
       .positionals = {{"IN", "a model: folder, file or bundled name", 1, 1},
                       {"OUT",
                        "a folder for hf and timm, *.safetensors for timm and torchvision, *.npz for google",
                        1, 1}}},
      run_convert};
}

}  // namespace vitrail::cli
