#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "io/cards/claims.h"
#include "io/cards/hf_files.h"
#include "io/dialects/bind.h"
#include "io/dialects/express.h"
#include "io/dialects/layout.h"
#include "io/npz.h"
#include "io/safetensors.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;

// The parameter read last: its q, k and v may go to three tensors in a row.
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

// Every tensor of the model in the dialect's names and layouts.
std::vector<TensorToWrite> list_tensors(const VitConfig& config, const WriteOptions& options,
                                        const ParamReader& read) {
  const WrittenForm form = written_form(options.dialect, config);
  auto last = std::make_shared<LastParam>();
  std::vector<TensorToWrite> tensors;
  for (const ParamSpec& spec : vit_params(config)) {
    const auto rows = rows_for(form, spec.name);
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

void check_target(const std::string& path, bool overwrite) {
  std::error_code error;
  const bool empty_folder = fs::is_directory(path, error) && fs::is_empty(path, error);
  if (!overwrite && fs::exists(path, error) && !empty_folder)
    throw Error(ErrorKind::kWrite, path + " exists already", "another path, or allow overwriting");
}

Json sidecar(const ModelCard& card) {
  Json json = {{"vitrail", vitrail_block(card)}};
  if (!card.labels.empty()) json["id2label"] = label_table(card.labels);
  return json;
}

void write_folder(const std::string& path, const ModelCard& card, const std::vector<TensorToWrite>& tensors,
                  DType storage) {
  std::error_code error;
  fs::create_directories(path, error);
  VT_REQUIRE(!error, ErrorKind::kWrite, "cannot create the folder %s: %s", path.c_str(),
             error.message().c_str());
  const fs::path home(path);
  // The config comes last: without it a folder is not taken for a model.
  write_safetensors((home / "model.safetensors").string(), tensors, {{"format", "pt"}});
  write_file((home / "preprocessor_config.json").string(),
             hf_preprocessor_json(card.preprocess).dump(2) + "\n");
  Json config = hf_config_json(card, storage);
  config["vitrail"] = vitrail_block(card);
  write_file((home / "config.json").string(), config.dump(2) + "\n");
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
  check_target(path, options.overwrite);
  if (options.dialect == Dialect::kGoogle) check_target(path + ".json", options.overwrite);
  const std::vector<TensorToWrite> tensors = list_tensors(card.config, options, read);
  switch (options.dialect) {
    case Dialect::kHf:
      return write_folder(path, card, tensors, options.storage);
    case Dialect::kGoogle:
      write_npz(path, tensors);
      return write_file(path + ".json", sidecar(card).dump(2) + "\n");
    case Dialect::kTimm:
    case Dialect::kTorchvision:
      return write_safetensors(path, tensors, {{"format", "pt"}, {"vitrail", sidecar(card).dump()}});
  }
}

}  // namespace vitrail
