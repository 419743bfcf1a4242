#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "io/adapters.h"
#include "io/cards/claims.h"
#include "io/cards/hf_files.h"
#include "io/cards/timm_files.h"
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

constexpr const char* kFolderFiles[] = {"model.safetensors", "preprocessor_config.json", "config.json"};
// Beside a model and about it: a new model of the same folder leaves them.
constexpr const char* kCompanions[] = {"LICENSE", "README", "NOTICE", ".gitattributes"};

// Nothing but a model of ours may be replaced: other files would be taken for parts of the new one.
void refuse_foreign(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const auto is = [&](const char* file) { return name == file; };
    if (is(kAdaptersFile)) continue;
    const auto begins = [&](const char* start) { return name.starts_with(start); };
    if (std::none_of(std::begin(kFolderFiles), std::end(kFolderFiles), is) &&
        std::none_of(std::begin(kCompanions), std::end(kCompanions), begins))
      throw Error(ErrorKind::kWrite,
                  strf("%s already exists and holds %s, which is no part of a model that could be replaced",
                       folder.c_str(), quoted(name).c_str()),
                  "another path, or take that file away; --force does not delete it");
  }
}

void check_target(const std::string& path, bool overwrite, bool folder) {
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  if (!fs::exists(path, error) || (folder && is_folder && fs::is_empty(path, error))) return;
  if (folder && is_folder) refuse_foreign(path);
  VT_REQUIRE(folder == is_folder, ErrorKind::kWrite, "%s is a %s, and a %s is to be written there",
             path.c_str(), is_folder ? "folder" : "file", folder ? "folder" : "file");
  if (!overwrite) throw Error(ErrorKind::kWrite, path + " already exists", "--force replaces it");
}

// Takes away what a failed attempt has made, the deepest first; what was there before stays.
class MadePaths {
 public:
  ~MadePaths() {
    std::error_code ignored;
    for (; !done_ && !paths_.empty(); paths_.pop_back()) fs::remove(paths_.back(), ignored);
  }
  void will_make(const fs::path& path) {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) paths_.push_back(path);
  }
  void make_folders(const fs::path& path) {
    fs::path below;
    for (const fs::path& step : path) will_make(below /= step);
    std::error_code error;
    fs::create_directories(path, error);
    VT_REQUIRE(!error, ErrorKind::kWrite, "cannot create the folder %s: %s", path.c_str(),
               error.message().c_str());
  }
  void keep() { done_ = true; }

 private:
  std::vector<fs::path> paths_;
  bool done_ = false;
};

Json sidecar(const ModelCard& card) {
  Json json = {{"vitrail", vitrail_block(card)}};
  if (!card.labels.empty()) json["id2label"] = label_table(card.labels);
  return json;
}

void write_folder(const std::string& path, const ModelCard& card, const std::vector<TensorToWrite>& tensors,
                  const WriteOptions& options) {
  const fs::path home(path);
  MadePaths made;
  made.make_folders(home);
  for (const char* name : kFolderFiles) made.will_make(home / name);
  // The config comes last: without it a folder is not taken for a model.
  write_safetensors((home / "model.safetensors").string(), tensors, {{"format", "pt"}});
  // Adapters of the model that was there would be merged into the new one.
  std::error_code error;
  fs::remove(home / kAdaptersFile, error);
  VT_REQUIRE(!error, ErrorKind::kWrite, "cannot remove %s of the model before: %s", kAdaptersFile,
             error.message().c_str());
  write_file((home / "preprocessor_config.json").string(),
             hf_preprocessor_json(card.preprocess).dump(2) + "\n");
  Json config =
      options.dialect == Dialect::kHf ? hf_config_json(card, options.storage) : timm_config_json(card);
  config["vitrail"] = vitrail_block(card);
  write_file((home / "config.json").string(), config.dump(2) + "\n");
  made.keep();
}

void write_google(const std::string& path, const ModelCard& card, const std::vector<TensorToWrite>& tensors) {
  MadePaths made;
  for (const std::string& file : {path, path + ".json"}) made.will_make(file);
  write_npz(path, tensors);
  write_file(path + ".json", sidecar(card).dump(2) + "\n");
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
  check_target(path, options.overwrite, folder);
  if (options.dialect == Dialect::kGoogle) check_target(path + ".json", options.overwrite, false);
  const std::vector<TensorToWrite> tensors = list_tensors(card.config, options, read);
  if (folder) return write_folder(path, card, tensors, options);
  switch (options.dialect) {
    case Dialect::kHf:
      break;
    case Dialect::kGoogle:
      return write_google(path, card, tensors);
    case Dialect::kTimm:
    case Dialect::kTorchvision:
      return write_safetensors(path, tensors, {{"format", "pt"}, {"vitrail", sidecar(card).dump()}});
  }
}

Dialect folder_dialect(const VitConfig& config) {
  return can_express(Dialect::kHf, config) ? Dialect::kHf : Dialect::kTimm;
}

}  // namespace vitrail
