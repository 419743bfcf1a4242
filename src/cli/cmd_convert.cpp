#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/model_card.h"
#include "cli/model_path.h"
#include "cli/progress.h"
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
                               {Dialect::kHf, ""}};
constexpr const char* kOtherFiles[] = {".pth", ".pt", ".bin", ".onnx", ".h5", ".msgpack"};

// "" for a folder: an ending that is no weight file's belongs to its name ("vit-b.v2").
std::string ending_of(const std::string& target) {
  std::string ending = std::filesystem::path(target).extension().string();
  for (const char* other : kOtherFiles)
    if (ending == other)
      throw Error(ErrorKind::kUsage, strf("%s: %s files are not written", target.c_str(), other),
                  "OUT as .safetensors (timm, torchvision), as .npz (google), or as a folder (hf)");
  for (const Ending& row : kEndings)
    if (ending == row.text) return ending;
  return "";
}

// The dialect OUT's ending stands for, or the one asked for when the ending allows it.
Dialect choose_dialect(const std::string& asked, const std::string& target) {
  const std::string ending = ending_of(target);
  for (const Ending& row : kEndings) {
    if (asked.empty() ? ending != row.text : asked != enum_name(row.dialect)) continue;
    if (ending == row.text) return row.dialect;
    const std::string wanted = *row.text ? strf("a file named *%s", row.text) : "a folder";
    throw Error(
        ErrorKind::kUsage,
        strf("--to %s writes %s, but OUT is %s", asked.c_str(), wanted.c_str(), target.c_str()),
        *row.text ? strf("name it %s%s", std::filesystem::path(target).replace_extension().c_str(), row.text)
                  : strf("OUT without %s, or leave out --to", ending.c_str()));
  }
  throw Error(ErrorKind::kInternal, "a dialect has no ending");
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

// What readers of the new file should know.
std::vector<std::string> remarks(const WriteOptions& write) {
  if (write.dialect == Dialect::kGoogle && write.storage == DType::kBF16)
    return {"numpy has no bf16: it reads the arrays as raw two-byte values (|V2), to be viewed as bfloat16"};
  return {};
}

void report(const OpenedModel& before, const OpenedModel& after, const Comparison& c, DType storage,
            const std::vector<std::string>& lost, const std::vector<std::string>& notes, Console& console) {
  const ModelCard& card = after.card();
  console.print_json({{"in", before.card().path},
                      {"out", card.path},
                      {"from", enum_name(before.card().dialect)},
                      {"to", enum_name(card.dialect)},
                      {"dtype", to_string(storage)},
                      {"params", c.elems},
                      {"tensors", c.params},
                      {"max_difference", c.max_difference},
                      {"kept", lost.empty()},
                      {"changed", lost},
                      {"notes", notes},
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
  for (size_t i = 0; i < lost.size(); ++i) pairs.emplace_back(i == 0 ? "changed" : "", lost[i]);
  for (const std::string& note : notes) pairs.emplace_back("note", note);
  console.print(format_pairs(pairs));
}

void run_convert(const Options& options, Console& console) {
  const std::string source = find_model(options.positional(0), model_places());
  const std::string& target = options.positional(1);
  const Dialect dialect = choose_dialect(options.text("to"), target);
  refuse_itself(source, target);
  const OpenOptions open{.arch = options.text("arch")};
  const std::unique_ptr<OpenedModel> before = open_model(source, open);
  for (const std::string& note : before->card().notes) console.detail(note);
  for (const std::string& line : before->card().warnings) console.say("warning: " + line);

  WriteOptions write;
  write.overwrite = options.flag("force");
  write.dialect = dialect;
  write.storage = options.text("dtype") == "same" ? usual_storage(before->source())
                                                  : parse_dtype(options.text("dtype")).value_or(DType::kF32);
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
  const std::vector<std::string> lost = card_differences(before->card(), after->card());
  report(*before, *after, comparison, write.storage, lost, remarks(write), console);
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
                       {"OUT", "a folder for hf, *.safetensors for timm and torchvision, *.npz for google", 1,
                        1}}},
      run_convert};
}

}  // namespace vitrail::cli
