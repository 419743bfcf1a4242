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

void refuse_overwriting(const std::string& source, const std::string& target, bool force) {
  std::error_code ignored;
  if (std::filesystem::equivalent(source, target, ignored))
    throw Error(ErrorKind::kUsage, "IN and OUT are the same", "give OUT another name");
  const bool empty_folder =
      std::filesystem::is_directory(target, ignored) && std::filesystem::is_empty(target, ignored);
  if (force || empty_folder || !std::filesystem::exists(target, ignored)) return;
  throw Error(ErrorKind::kWrite, strf("%s already exists", target.c_str()), "--force replaces it");
}

std::string verdict(const Comparison& c, DType storage) {
  if (c.max_difference == 0) return "every number is the same";
  return strf("largest difference %.3g (%s), as storing in %s explains", c.max_difference, c.worst.c_str(),
              to_string(storage));
}

void report(const OpenedModel& before, const OpenedModel& after, const Comparison& c, DType storage,
            const std::vector<std::string>& lost, Console& console) {
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
  console.print(format_pairs(pairs));
}

void run_convert(const Options& options, Console& console) {
  const std::string source = find_model(options.positional(0), model_places());
  const std::string& target = options.positional(1);
  refuse_overwriting(source, target, options.flag("force"));
  const OpenOptions open{.arch = options.text("arch")};
  const std::unique_ptr<OpenedModel> before = open_model(source, open);
  for (const std::string& note : before->card().notes) console.detail(note);

  WriteOptions write;
  write.overwrite = options.flag("force");
  write.dialect = *enum_from_name<Dialect>(options.text("to"));
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
  report(*before, *after, comparison, write.storage, lost, console);
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
       .examples = {{"convert vit.npz vit_folder --to hf",
                     "a google checkpoint becomes a Hugging Face folder"},
                    {"convert deit_tiny_patch16_224 deit.safetensors --to timm --dtype f16",
                     "one file under timm's names, half the size"},
                    {"convert model.pth out.safetensors --to timm --arch deit_tiny_patch16_224",
                     "a bare file that could be several architectures needs the name"}},
       .options =
           {{.name = "to",
             .help = "the dialect to write",
             .metavar = "DIALECT",
             .fallback = "hf",
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
                       {"OUT", "a folder for hf, else a file", 1, 1}}},
      run_convert};
}

}  // namespace vitrail::cli
