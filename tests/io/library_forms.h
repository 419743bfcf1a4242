// Model folders and files as other libraries leave them: written, then edited or renamed.
#pragma once

#include "io/dialect_files.h"
#include "source_root.h"

namespace vitrail {

inline const std::string kTimmHub = VT_SOURCE_DIR "/tests/golden/models/timm_hub";

class LibraryForms : public DialectTest {
 protected:
  // Makes a folder without Vitrail's own metadata.
  void write_folder(const ModelCard& card, Dialect dialect) {
    write_model(at("m"), card, {.dialect = dialect, .overwrite = true, .folder = true}, by_rule);
    edit([](Json& config) { config.erase("vitrail"); });
  }
  void edit(const std::function<void(Json&)>& change) {
    Json json = parse_json(read_file(at("m/config.json"), 1 << 20), "config.json");
    change(json);
    write_file(at("m/config.json"), json.dump());
  }
  void rename_tensors(const Rename& rename) {
    const std::string file = at("m/model.safetensors");
    const auto source = std::shared_ptr(open_tensors(file));
    write_safetensors(at("renamed"), renamed(source, rename), {});
    std::filesystem::rename(at("renamed"), file);
  }
  // A single file with its config in the metadata, its tensors renamed.
  std::string renamed_file(const ModelCard& card, Dialect dialect, const Rename& rename) {
    write_model(at("plain"), card, {.dialect = dialect, .overwrite = true}, by_rule);
    const auto source = std::shared_ptr(open_tensors(at("plain")));
    write_safetensors(at("file"), renamed(source, rename), source->metadata());
    return at("file");
  }
  static std::vector<float> rule_of(const std::string& name, const Shape& shape) {
    std::vector<float> expected(static_cast<size_t>(shape.elems()));
    fill_by_rule({name, shape}, expected);
    return expected;
  }
  VitConfig timm_config(const std::function<void(Json&)>& change) {
    std::filesystem::remove_all(at("m"));
    std::filesystem::copy(kTimmHub, at("m"));
    edit(change);
    return open_model(at("m"))->card().config;
  }
  std::string timm_refusal(const std::function<void(Json&)>& change) {
    std::filesystem::remove_all(at("m"));
    std::filesystem::copy(kTimmHub, at("m"));
    edit(change);
    return refusal(at("m"));
  }
};

}  // namespace vitrail
