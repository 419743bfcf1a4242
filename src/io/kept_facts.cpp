// Reads what stays with a model when it is written anew: from a manifest, metadata, or JSON beside a file.
#include <filesystem>

#include "base/error.h"
#include "io/config_json.h"
#include "io/model_files.h"
#include "io/sealed_folder.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxJson = size_t{16} << 20;  // bytes

// Returns the JSON that write_model puts beside a single file, or into it.
Json of_file(const std::string& path) {
  std::error_code ignored;
  if (fs::is_regular_file(path + ".json", ignored))
    return parse_json(read_sealed(path + ".json", kMaxJson), path + ".json");
  const std::unique_ptr<TensorSource> source = open_tensors(path);
  const auto at = source->metadata().find("vitrail");
  return at == source->metadata().end() ? Json::object() : parse_json(at->second, "metadata");
}

Json of_folder(const fs::path& folder) {
  const std::optional<Manifest> manifest = folder_manifest(folder.empty() ? "." : folder.string());
  return manifest ? manifest->facts : Json::object();
}

template <typename Read>
Json picked(Read&& read) try {
  const Json facts = read();
  const Json* learned = facts.is_object() ? json_find(facts, kLearnedFrom) : nullptr;
  return learned ? Json{{kLearnedFrom, *learned}} : Json::object();
} catch (const Error&) {
  return Json::object();
}

}  // namespace

Json kept_facts(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return picked([&] { return of_folder(path); });
  const Json own = picked([&] { return of_file(path); });
  return own.empty() ? picked([&] { return of_folder(fs::path(path).parent_path()); }) : own;
}

}  // namespace vitrail
