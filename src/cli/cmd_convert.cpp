#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/model_card.h"
#include "cli/progress.h"
#include "io/cards/library_view.h"
#include "io/find_model.h"
#include "io/model_files.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;

// The float type most of the source's bytes are stored in.
DType usual_storage(const TensorSource& source) {
  uint64_t f16 = 0, bf16 = 0, other = 0;
  for (const TensorInfo& info : source.tensors()) {
    const auto elems = info.bytes / size_of(info.dtype);
    (info.dtype == DType::kF16 ? f16 : info.dtype == DType::kBF16 ? bf16 : other) += elems;
  }
  if (f16 > bf16 && f16 > other) return DType::kF16;
  return bf16 > other ? DType::kBF16 : DType::kF32;
}

// What rounding to nearest may change in `value`: half a unit in the last place.
double rounding_bound(DType storage, double value) {
  if (storage == DType::kF16) return std::max(std::fabs(value) * 0x1p-11, 0x1p-25);
  if (storage == DType::kBF16) return std::max(std::fabs(value) * 0x1p-8, 0x1p-134);
  return 0;
}

struct Comparison {
  int64_t params = 0, elems = 0, beyond = 0;  // beyond: changed by more than storing explains
  double max_difference = 0;
  std::string worst;
};

Comparison compare(const OpenedModel& before, const OpenedModel& after, DType storage, Console& console) {
  Comparison result;
  const std::vector<ParamSpec> specs = vit_params(before.card().config);
  Progress progress(console, "verify", "parameters", static_cast<int64_t>(specs.size()));
  std::vector<float> a, b;
  for (const ParamSpec& spec : specs) {
    a.resize(static_cast<size_t>(spec.shape.elems()));
    b.resize(a.size());
    before.read_param(spec, a);
    after.read_param(spec, b);
    for (size_t i = 0; i < a.size(); ++i) {
      const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
      const double difference = same ? 0 : std::fabs(static_cast<double>(a[i]) - b[i]);
      if (!(difference <= rounding_bound(storage, a[i]))) ++result.beyond;
      if (!(difference <= result.max_difference))
        result.max_difference = difference, result.worst = spec.name;
    }
    ++result.params;
    result.elems += static_cast<int64_t>(a.size());
    progress.advance(1);
  }
  return result;
}

struct Ending {
  Dialect dialect;
  const char* text;  // empty: a folder
};
// The first with an ending is the one that ending stands for.
constexpr Ending kEndings[] = {{Dialect::kGoogle, ".npz"},
                               {Dialect::kTimm, ".safetensors"},
                               {Dialect::kTorchvision, ".safetensors"},
                               {Dialect::kHf, ""},
                               {Dialect::kTimm, ""}};
constexpr const char* kOtherFiles[] = {".pth", ".pt", ".bin", ".onnx", ".h5", ".msgpack"};

// "" for a folder: an ending that is no weight file's belongs to its name ("vit-b.v2").
std::string ending_of(const std::string& target) {
  std::string ending = std::filesystem::path(target).extension().string();
  for (const char* other : kOtherFiles)
    if (ending == other)
      throw Error(ErrorKind::kUsage, strf("%s: %s files are not written", target.c_str(), other),
                  "OUT as .safetensors (timm, torchvision), as .npz (google), or as a folder (hf, timm)");
  for (const Ending& row : kEndings)
    if (ending == row.text) return ending;
  return "";
}

// The dialect OUT's ending stands for, or the one asked for when the ending allows it.
const Ending& choose_dialect(const std::string& asked, const std::string& target) {
  const std::string ending = ending_of(target);
  const Ending* first = nullptr;  // of the dialect asked for
  for (const Ending& row : kEndings) {
    if (!asked.empty() && asked != enum_name(row.dialect)) continue;
    if (ending == row.text) return row;
    if (!first) first = &row;
  }
  const std::string wanted = *first->text ? strf("a file named *%s", first->text) : "a folder";
  throw Error(ErrorKind::kUsage,
              strf("--to %s writes %s, but OUT is %s", asked.c_str(), wanted.c_str(), target.c_str()),
              *first->text ? strf("name it %s%s", std::filesystem::path(target).replace_extension().c_str(),
                                  first->text)
                           : strf("OUT without %s, or leave out --to", ending.c_str()));
}

void refuse_itself(const std::string& source, const std::string& target) {
  std::error_code ignored;
  if (std::filesystem::equivalent(source, target, ignored))
    throw Error(ErrorKind::kUsage, "IN and OUT are the same", "give OUT another name");
}

std::string verdict(const Comparison& c, DType storage) {
  if (c.max_difference == 0) return "every number is the same";
  const std::string largest = strf("largest difference %.3g (%s)", c.max_difference, c.worst.c_str());
  if (c.beyond == 0) return largest + ", as storing in " + to_string(storage) + " explains";
  return largest + strf("; %s differ by more than storing in %s explains", format_integer(c.beyond).c_str(),
                        to_string(storage));
}

constexpr const char* kNoBf16 = "numpy has no bf16, and neither timm nor vit_jax reads an npz that holds it";

// As the source is stored, or as asked for; an npz is then f32 in place of bf16.
DType chosen_storage(const std::string& asked, Dialect dialect, const OpenedModel& source,
                     std::vector<std::string>* notes) {
  const bool same = asked == "same";
  const DType storage = same ? usual_storage(source.source()) : parse_dtype(asked).value_or(DType::kF32);
  if (dialect != Dialect::kGoogle || storage != DType::kBF16) return storage;
  if (!same) throw Error(ErrorKind::kUsage, kNoBf16, "--dtype f32 keeps every number of it; f16 takes half");
  notes->push_back(strf("stored as f32: %s", kNoBf16));
  return DType::kF32;
}

struct Findings {
  std::vector<std::string> changed;   // as Vitrail reads the new model
  std::vector<std::string> not_kept;  // as the library of its dialect does
  std::vector<std::string> notes;
};

// What the library of the dialect will make of the new files.
void look_as_library(const ModelCard& card, const WriteOptions& write, Findings* findings) {
  const LibraryView view = library_view(card, write);
  findings->not_kept = not_kept(card, view);
  if (!view.preprocess)
    findings->notes.push_back(
        strf("the file tells %s nothing but the weights: preprocessing%s must be given there",
             view.library.c_str(), card.labels.empty() ? "" : " and labels"));
}

void refuse_unloadable(const ModelCard& card, const WriteOptions& write) {
  if (const std::string why = library_refuses(card, write); !why.empty())
    throw Error(ErrorKind::kUsage, why, "--to torchvision or --to google, which have that layer");
}

void report(const OpenedModel& before, const OpenedModel& after, const Comparison& c, DType storage,
            const Findings& found, Console& console) {
  const ModelCard& card = after.card();
  console.print_json({{"in", before.card().path},
                      {"out", card.path},
                      {"from", enum_name(before.card().dialect)},
                      {"to", enum_name(card.dialect)},
                      {"dtype", to_string(storage)},
                      {"params", c.elems},
                      {"tensors", c.params},
                      {"max_difference", c.max_difference},
                      {"kept", found.changed.empty() && found.not_kept.empty()},
                      {"changed", found.changed},
                      {"not_kept", found.not_kept},
                      {"notes", found.notes},
                      {"model", card_json(card)}});
  std::vector<std::pair<std::string, std::string>> pairs = {
      {"from", before.card().path + " (" + enum_name(before.card().dialect) + ")"},
      {"to", card.path + " (" + enum_name(card.dialect) + ", " + to_string(storage) + ")"},
      {"architecture", architecture_text(card.config)},
      {"numerics", numerics_text(card.config)},
      {"pictures", preprocess_text(card.preprocess)},
      {"labels", card.labels.empty() ? "none" : std::to_string(card.labels.size())},
      {"reopened",
       strf("%s parameters compared: %s", format_integer(c.elems).c_str(), verdict(c, storage).c_str())}};
  const auto add = [&](const char* title, const std::vector<std::string>& lines) {
    for (size_t i = 0; i < lines.size(); ++i) pairs.emplace_back(i == 0 ? title : "", lines[i]);
  };
  add("changed", found.changed);
  add("not kept", found.not_kept);
  add("note", found.notes);
  console.print(format_pairs(pairs));
}

void run_convert(const Options& options, Console& console) {
  const std::string source = find_model(options.positional(0), model_places());
  const std::string& target = options.positional(1);
  const Ending& ending = choose_dialect(options.text("to"), target);
  refuse_itself(source, target);
  const OpenOptions open{.arch = options.text("arch")};
  const std::unique_ptr<OpenedModel> before = open_model(source, open);
  for (const std::string& note : before->card().notes) console.detail(note);
  for (const std::string& line : before->card().warnings) console.say("warning: " + line);

  Findings found;
  const WriteOptions write{
      .dialect = ending.dialect,
      .storage = chosen_storage(options.text("dtype"), ending.dialect, *before, &found.notes),
      .overwrite = options.flag("force"),
      .folder = !*ending.text,
      .manifest = true};
  refuse_unloadable(before->card(), write);
  {
    Progress progress(console, "convert", "parameters",
                      static_cast<int64_t>(vit_params(before->card().config).size()));
    write_model(target, before->card(), write, [&](const ParamSpec& spec, std::span<float> values) {
      before->read_param(spec, values);
      progress.advance(1);
    });
  }
  const std::unique_ptr<OpenedModel> after = open_model(target);
  const Comparison comparison = compare(*before, *after, write.storage, console);
  found.changed = card_differences(before->card(), after->card());
  look_as_library(before->card(), write, &found);
  report(*before, *after, comparison, write.storage, found, console);
  if (!found.not_kept.empty())
    console.say("warning: Vitrail reads the new model as it was; another library will not: see \"not kept\"");
  if (comparison.beyond > 0)
    throw Error(
        ErrorKind::kCheck,
        strf("%s numbers of %s differ from the source by more than storing in %s explains",
             format_integer(comparison.beyond).c_str(), target.c_str(), to_string(write.storage)),
        write.storage == DType::kF16 ? "f16 holds nothing beyond 65504: use --dtype bf16 or f32" : "");
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
