#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/model_choice.h"
#include "io/find_model.h"
#include "io/sealed_folder.h"
#include "measure/compare_models.h"

namespace vitrail::cli {

namespace {
namespace fs = std::filesystem;

// Returns the model folder that -m would find; the folder itself where it is a checkpoint without a model.
std::string folder_to_verify(const std::string& given) {
  std::error_code ignored;
  std::string path =
      fs::exists(fs::path(given) / kManifestName, ignored) ? given : find_model(given, model_places());
  if (!fs::is_directory(path, ignored))
    throw Error(ErrorKind::kUsage, path + " is not a folder", "a manifest lies in a model's folder");
  return path;
}

// Throws Error(kData) naming the first file that differs from its checksum; with --update, writes the
// manifest anew.
void verify_manifest(const Options& options, Console& console) {
  const std::string folder = folder_to_verify(options.positional(0));
  if (options.flag("update")) {
    require_model(folder);
    seal_folder(folder);
    console.say(strf("%s/%s is written anew", folder.c_str(), kManifestName));
  }
  const Manifest manifest = require_manifest(folder);
  const std::vector<SealedFile> files = check_sealed(folder, manifest);
  console.print_json(sealed_json(folder, files));
  console.print(sealed_table(manifest, files));
  for (const SealedFile& file : files)
    if (!file.problem.empty())
      throw Error(ErrorKind::kData, file.problem,
                  "take it from a good copy; --update accepts the files as they are now");
}

ModelTrace trace(const Options& options, size_t which, const std::vector<float>* input, Console& console) {
  ModelTrace result = trace_model({.path = find_model(options.positional(which), model_places()),
                                   .open = read_open_options(options),
                                   .engine = read_engine_options(options),
                                   .image = options.text("image-file"),
                                   .input = input});
  say_checked(options, result.nodes, console);
  return result;
}

void run_verify(const Options& options, Console& console) {
  if (options.flag("manifest")) {
    if (options.positionals().size() > 1)
      throw Error(ErrorKind::kUsage, "verify --manifest takes one folder", "leave out B or --manifest");
    return verify_manifest(options, console);
  }
  if (options.positionals().size() < 2 || options.flag("update"))
    throw Error(
        ErrorKind::kUsage,
        options.flag("update") ? "--update goes with --manifest" : "verify compares two models: B is missing",
        "verify A B, or verify --manifest FOLDER");
  const double tolerance = options.number("tolerance");
  const ModelTrace a = trace(options, 0, nullptr, console);
  const ModelTrace b = trace(options, 1, options.flag("same-input") ? &a.layers[0].second : nullptr, console);
  const ModelComparison found = compare_models(a, b, tolerance);
  const std::string verdict = verdict_of(found, tolerance);
  nlohmann::ordered_json json = {{"a", a.card.path}, {"b", b.card.path}};
  json.update(to_json(found, tolerance));
  console.print_json(json);
  for (const std::string& fact : found.facts) console.print("A and B differ in " + fact + "\n");
  console.print(layer_table(found.layers, tolerance) + verdict + "\n");
  if (!found.first.empty())
    throw Error(ErrorKind::kCheck, verdict,
                found.first == "images" ? "--same-input leaves the preprocessing of B out of it" : "");
}
}  // namespace

Command verify_command() {
  std::vector<OptionSpec> shared = model_options() + engine_options(1);
  std::erase_if(shared, [](const OptionSpec& spec) { return spec.name == "batch" || spec.name == "model"; });
  const std::vector<OptionSpec> own = {
      {.name = "image-file",
       .help = "an image to run; a fixed pattern unless given",
       .metavar = "FILE",
       .letter = 'i',
       .former_name = "picture"},
      {.name = "manifest",
       .help = "hold the files of one model folder or checkpoint against its manifest.json instead",
       .kind = ValueKind::kFlag},
      {.name = "update",
       .help = "with --manifest: accept the files as they are (edited by hand), and write manifest.json anew",
       .kind = ValueKind::kFlag},
      {.name = "same-input", .help = "B sees the image as A prepared it", .kind = ValueKind::kFlag},
      {.name = "tolerance",
       .help = "what counts as a difference, relative to a layer's largest value",
       .kind = ValueKind::kNumber,
       .metavar = "X",
       .fallback = "1e-4",
       .least = 0}};
  return {
      {.name = "verify",
       .summary = "runs two models on one image and names the first layer that differs; checks a manifest",
       .examples = {{"verify vit.npz vit_folder", "a conversion against its source"},
                    {"verify a.safetensors b.safetensors --image-file cat.jpg",
                     "on an image, each with its own preprocessing"},
                    {"verify a b --tolerance 1e-2", "models stored in f16 or bf16"},
                    {"verify --manifest runs/pets", "whether any bit of the files has changed"}},
       .options = own + shared,
       .positionals = {{"A", "a model: folder, file or bundled name", 1, 1},
                       {"B", "the other one; not with --manifest", 0, 1}},
       .infers = true},
      run_verify};
}

}  // namespace vitrail::cli
