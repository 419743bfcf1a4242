#include "io/convert.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/cards/card_text.h"
#include "io/cards/library_view.h"
#include "io/sealed_folder.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {

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

// Returns what rounding to nearest may change in `value`: half a unit in the last place.
double rounding_bound(DType storage, double value) {
  if (storage == DType::kF16) return std::max(std::fabs(value) * 0x1p-11, 0x1p-25);
  if (storage == DType::kBF16) return std::max(std::fabs(value) * 0x1p-8, 0x1p-134);
  return 0;
}

ParamComparison compare_params(const OpenedModel& before, const OpenedModel& after, DType storage,
                               const Conversion::Advance& advance) {
  ParamComparison result;
  const std::vector<ParamSpec> specs = vit_params(before.card().config);
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
      if (!(difference <= result.max_difference)) {
        result.max_difference = difference;
        result.worst = spec.name;
      }
    }
    ++result.params;
    result.elems += static_cast<int64_t>(a.size());
    if (advance) advance();
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

constexpr const char* kNoBf16 = "numpy has no bf16, and neither timm nor vit_jax reads an npz that holds it";

// Returns the type that the source is stored in, or the one asked for; an npz is then f32 in place of bf16.
DType chosen_storage(const std::string& asked, Dialect dialect, const OpenedModel& source,
                     std::vector<std::string>* notes) {
  const bool same = asked == "same";
  const DType storage = same ? usual_storage(source.source()) : parse_dtype(asked).value_or(DType::kF32);
  if (dialect != Dialect::kGoogle || storage != DType::kBF16) return storage;
  if (!same) throw Error(ErrorKind::kUsage, kNoBf16, "--dtype f32 keeps every number of it; f16 takes half");
  notes->push_back(strf("stored as f32: %s", kNoBf16));
  return DType::kF32;
}

void refuse_unloadable(const ModelCard& card, const WriteOptions& write) {
  if (const std::string why = library_refuses(card, write); !why.empty())
    throw Error(ErrorKind::kUsage, why, "--to torchvision or --to google, which have that layer");
}

}  // namespace

std::string verdict(const ParamComparison& c, DType storage) {
  if (c.max_difference == 0) return "every number is the same";
  const std::string largest = strf("largest difference %.3g (%s)", c.max_difference, c.worst.c_str());
  if (c.beyond == 0) return largest + ", as storing in " + to_string(storage) + " explains";
  return largest + strf("; %s differ by more than storing in %s explains", format_integer(c.beyond).c_str(),
                        to_string(storage));
}

Conversion::Conversion(const ConvertRequest& request) : target_(request.target) {
  const Ending& ending = choose_dialect(request.dialect, target_);
  refuse_itself(request.source, target_);
  before_ = open_model(request.source, {.arch = request.arch});
  how_ = {.dialect = ending.dialect,
          .storage = chosen_storage(request.dtype, ending.dialect, *before_, &notes_),
          .overwrite = request.overwrite,
          .folder = !*ending.text,
          .manifest = true,
          .facts = kept_facts(request.source)};
  refuse_unloadable(before_->card(), how_);
}

void Conversion::write(const Advance& advance) {
  write_model(target_, before_->card(), how_, [&](const ParamSpec& spec, std::span<float> values) {
    before_->read_param(spec, values);
    if (advance) advance();
  });
}

ParamComparison Conversion::compare(const Advance& advance) {
  after_ = open_model(target_);
  ParamComparison comparison = compare_params(*before_, *after_, how_.storage, advance);
  changed_ = card_differences(before_->card(), after_->card());
  look_as_library();
  return comparison;
}

// Finds what the library of the dialect will make of the new files.
void Conversion::look_as_library() {
  const ModelCard& card = before_->card();
  const LibraryView view = library_view(card, how_);
  not_kept_ = vitrail::not_kept(card, view);
  if (!view.preprocess)
    notes_.push_back(strf("the file tells %s nothing but the weights: preprocessing%s must be given there",
                          view.library.c_str(), card.labels.empty() ? "" : " and labels"));
}

nlohmann::ordered_json to_json(const Conversion& conversion, const ParamComparison& c) {
  const OpenedModel& before = conversion.before();
  const DType storage = conversion.how().storage;
  const ModelCard& card = conversion.after().card();
  return {{"in", before.card().path},
          {"out", card.path},
          {"from", enum_name(before.card().dialect)},
          {"to", enum_name(card.dialect)},
          {"dtype", to_string(storage)},
          {"params", c.elems},
          {"tensors", c.params},
          {"max_difference", c.max_difference},
          {"kept", conversion.changed().empty() && conversion.not_kept().empty()},
          {"changed", conversion.changed()},
          {"not_kept", conversion.not_kept()},
          {"notes", conversion.notes()},
          {"model", card_json(card)}};
}

std::string to_text(const Conversion& conversion, const ParamComparison& c) {
  const OpenedModel& before = conversion.before();
  const DType storage = conversion.how().storage;
  const ModelCard& card = conversion.after().card();
  std::vector<std::pair<std::string, std::string>> pairs = {
      {"from", before.card().path + " (" + enum_name(before.card().dialect) + ")"},
      {"to", card.path + " (" + enum_name(card.dialect) + ", " + to_string(storage) + ")"},
      {"architecture", architecture_text(card.config)},
      {"numerics", numerics_text(card.config)},
      {"images", preprocess_text(card.preprocess)},
      {"labels", card.labels.empty() ? "none" : std::to_string(card.labels.size())},
      {"reopened",
       strf("%s parameters compared: %s", format_integer(c.elems).c_str(), verdict(c, storage).c_str())}};
  const auto add = [&](const char* title, const std::vector<std::string>& lines) {
    for (size_t i = 0; i < lines.size(); ++i) pairs.emplace_back(i == 0 ? title : "", lines[i]);
  };
  add("changed", conversion.changed());
  add("not kept", conversion.not_kept());
  add("note", conversion.notes());
  return format_pairs(pairs);
}

void require_close(const Conversion& conversion, const ParamComparison& comparison) {
  const DType storage = conversion.how().storage;
  if (comparison.beyond > 0)
    throw Error(
        ErrorKind::kCheck,
        strf("%s numbers of %s differ from the source by more than storing in %s explains",
             format_integer(comparison.beyond).c_str(), conversion.target().c_str(), to_string(storage)),
        storage == DType::kF16 ? "f16 holds nothing beyond 65504: use --dtype bf16 or f32" : "");
}

}  // namespace vitrail
