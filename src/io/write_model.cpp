// Writes a model in a dialect's names and layouts, as a folder or a single file.
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/half_written.h"
#include "base/json_text.h"
#include "io/cards/stated_config.h"
#include "io/cards/written_json.h"
#include "io/dialects/bind.h"
#include "io/dialects/express.h"
#include "io/dialects/layout.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "io/sealed_folder.h"
#include "io/write_target.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;

// A cache of the parameter read last, whose q, k and v may go to three tensors in a row.
struct LastParam {
  std::string name;
  std::vector<float> values;
};

void fill_tensor(const NameRow& row, const ParamSpec& spec, const ParamReader& read, DType storage,
                 LastParam* last, std::span<std::byte> target) {
  if (last->name != spec.name) {
    last->values.resize(static_cast<size_t>(spec.shape.elems()));
    read(spec, last->values);
    last->name = spec.name;
  }
  std::vector<float> stored(target.size() / size_of(storage));
  to_stored(row.layout, spec.shape, row.part, last->values, stored);
  convert_floats(stored.data(), DType::kF32, target.data(), storage, stored.size());
}

TensorInfo describe(const std::string& name, const NameRow& row, const ParamSpec& spec, DType storage) {
  TensorInfo info{.name = name, .dtype = storage, .shape = stored_shape(row.layout, spec.shape)};
  info.bytes = size_of(storage);
  for (int64_t extent : info.shape) info.bytes *= static_cast<size_t>(extent);
  return info;
}

// Lists every tensor of the model in the dialect's names and layouts.
std::vector<TensorToWrite> list_tensors(const VitConfig& config, const WriteOptions& options,
                                        const ParamReader& read) {
  const WrittenForm form = written_form(options.dialect, config);
  auto last = std::make_shared<LastParam>();
  std::vector<TensorToWrite> tensors;
  for (const ParamSpec& spec : vit_params(config)) {
    const auto rows = rows_for(form, spec);
    VT_CHECK(!rows.empty(), "%s has no name for %s", enum_name(options.dialect), spec.name.c_str());
    for (const auto& [name, row] : rows) {
      const DType storage = options.storage;
      tensors.push_back(
          {describe(name, *row, spec, storage), [=, row = row, &read](std::span<std::byte> target) {
             fill_tensor(*row, spec, read, storage, last.get(), target);
           }});
    }
  }
  return tensors;
}

Json sidecar(const ModelCard& card, const Json& facts) {
  Json json = facts;
  json["vitrail"] = vitrail_block(card);
  if (!card.labels.empty()) json["id2label"] = label_table(card.labels);
  return json;
}

// Fills an empty folder. The config is written last but for the manifest: a folder without it is no model.
void fill_folder(const fs::path& home, const ModelCard& card, const std::vector<TensorToWrite>& tensors,
                 const WriteOptions& options) {
  write_safetensors((home / kFolderFiles[0]).string(), tensors, {{"format", "pt"}});
  write_file((home / kFolderFiles[1]).string(), json_text(hf_preprocessor_json(card.preprocess), 2) + "\n");
  Json config =
      options.dialect == Dialect::kHf ? hf_config_json(card, options.storage) : timm_config_json(card);
  config["vitrail"] = vitrail_block(card);
  write_file((home / kFolderFiles[2]).string(), json_text(config, 2) + "\n");
  if (options.manifest) seal_folder(home.string(), options.facts);
}

void write_folder(const std::string& path, const ModelCard& card, const std::vector<TensorToWrite>& tensors,
                  const WriteOptions& options) {
  std::error_code error;
  if (!fs::exists(path, error) || fs::is_empty(path, error)) {
    MadePaths made;
    made.make_folders(path);
    for (const char* name : kFolderFiles) made.will_make(fs::path(path) / name);
    made.will_make(fs::path(path) / kManifestName);
    fill_folder(path, card, tensors, options);
    return made.keep();
  }
  FolderReplacement replacement(path);
  fill_folder(replacement.fresh(), card, tensors, options);
  replacement.commit();
}

void write_google(const std::string& path, const ModelCard& card, const std::vector<TensorToWrite>& tensors,
                  const Json& facts) {
  MadePaths made;
  for (const std::string& file : {path, path + ".json"}) made.will_make(file);
  remove_abandoned(path + ".json");
  write_npz(path, tensors);
  Json beside = sidecar(card, facts);
  beside[kWeightsMark] = weights_mark(path);
  write_file(path + ".json", json_text(beside, 2) + "\n");
  made.keep();
}

}  // namespace

void write_model(const std::string& path, const ModelCard& card, const WriteOptions& options,
                 const ParamReader& read) {
  validate(card.config);
  validate(card.preprocess, card.config);
  VT_REQUIRE(
      options.storage == DType::kF32 || options.storage == DType::kF16 || options.storage == DType::kBF16,
      ErrorKind::kUsage, "weights are stored as f32, f16 or bf16, not %s", to_string(options.storage));
  refuse_inexpressible(options.dialect, card.config);
  const bool folder =
      options.dialect == Dialect::kHf || (options.folder && options.dialect == Dialect::kTimm);
  if (folder) finish_folder_replacement(path);
  check_target(path, options.overwrite, folder);
  if (options.dialect == Dialect::kGoogle) check_target(path + ".json", options.overwrite, false);
  const std::vector<TensorToWrite> tensors = list_tensors(card.config, options, read);
  if (folder) return write_folder(path, card, tensors, options);
  switch (options.dialect) {
    case Dialect::kHf:
      break;
    case Dialect::kGoogle:
      return write_google(path, card, tensors, options.facts);
    case Dialect::kTimm:
    case Dialect::kTorchvision:
      return write_safetensors(path, tensors,
                               {{"format", "pt"}, {"vitrail", json_text(sidecar(card, options.facts))}});
  }
}

Dialect folder_dialect(const VitConfig& config) {
  return can_express(Dialect::kHf, config) ? Dialect::kHf : Dialect::kTimm;
}

}  // namespace vitrail
