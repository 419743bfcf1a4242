// Finds the JSON files that describe weights: beside a single file, or in a model folder.
#include <filesystem>

#include "io/adapters.h"
#include "io/cards/card.h"
#include "io/config_json.h"
#include "io/sealed_folder.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxConfigBytes = size_t{16} << 20;

std::optional<Json> read_json(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  return with_context(path.string(), [&] {
    Json json = parse_json(read_sealed(path.string(), kMaxConfigBytes), path.filename().string());
    VT_REQUIRE(json.is_object(), ErrorKind::kConfig, "expected a JSON object");
    return std::optional(std::move(json));
  });
}

// Returns whether transformers or timm give their weights this name: such a file belongs with the config.json
// beside it.
bool is_standard_name(const std::string& name) {
  return name == "model.safetensors" || name == "pytorch_model.bin" ||
         name == "model.safetensors.index.json" || name == "pytorch_model.bin.index.json";
}

// Returns what says how images are prepared; transformers prefers what lies within the config of a processor
// of several kinds of input.
std::optional<Json> read_images(const fs::path& home) {
  if (const auto processor = read_json(home / "processor_config.json"))
    if (const Json* images = json_find(*processor, "image_processor"); images && images->is_object())
      return *images;
  return read_json(home / "preprocessor_config.json");
}

}  // namespace

CardFiles find_card_files(const std::string& path) {
  const fs::path at(path);
  std::error_code error;
  const bool folder = fs::is_directory(at, error);
  if (!folder)
    for (const fs::path& sidecar : {fs::path(path + ".json"), fs::path(at).replace_extension(".json")})
      if (sidecar != at)
        if (auto config = read_json(sidecar)) {
          require_own_weights(*config, sidecar.filename().string(), path);
          return {std::move(config), std::nullopt, sidecar.filename().string(), ""};
        }
  if (!folder && !is_standard_name(at.filename().string())) return {};
  const fs::path home = folder ? at : at.parent_path();
  require_present(home.empty() ? "." : home.string(),
                  {"config.json", "preprocessor_config.json", kAdaptersFile});
  CardFiles files{read_json(home / "config.json"), std::nullopt, "config.json", ""};
  if (fs::exists(home / kAdaptersFile, error)) files.adapters = (home / kAdaptersFile).string();
  if (files.config) files.preprocessor = read_images(home);
  return files;
}

}  // namespace vitrail
