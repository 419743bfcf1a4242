#include "cli/verify_manifest.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/environment.h"
#include "io/find_model.h"
#include "io/sealed_folder.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;
namespace fs = std::filesystem;

// Returns the model folder that -m would find; the folder itself where it is a checkpoint without a model.
std::string folder_to_verify(const std::string& given) {
  std::error_code ignored;
  const std::string path =
      fs::exists(fs::path(given) / kManifestName, ignored) ? given : find_model(given, model_places());
  if (!fs::is_directory(path, ignored))
    throw Error(ErrorKind::kUsage, path + " is not a folder", "a manifest lies in a model's folder");
  return path;
}

std::string status_table(const Manifest& manifest, const std::vector<SealedFile>& files) {
  Table table({{"file"}, {"bytes", Align::kRight}, {""}});
  for (size_t i = 0; i < files.size(); ++i)
    table.row({files[i].name, format_integer(static_cast<int64_t>(manifest.files[i].bytes)),
               files[i].problem.empty() ? "as it was written" : files[i].problem});
  return table.text();
}
}  // namespace

void verify_manifest(const Options& options, Console& console) {
  const std::string folder = folder_to_verify(options.positional(0));
  if (options.flag("update")) {
    require_model(folder);
    seal_folder(folder);
    console.say(strf("%s/%s is written anew", folder.c_str(), kManifestName));
  }
  const Manifest manifest = require_manifest(folder);
  const std::vector<SealedFile> files = check_sealed(folder, manifest);
  const SealedFile* bad = nullptr;
  ordered_json json = {{"folder", folder}, {"same", true}, {"files", ordered_json::array()}};
  for (const SealedFile& file : files) {
    if (!bad && !file.problem.empty()) bad = &file;
    json["files"].push_back({{"name", file.name}, {"same", file.problem.empty()}, {"problem", file.problem}});
  }
  json["same"] = bad == nullptr;
  console.print_json(json);
  console.print(status_table(manifest, files));
  if (bad)
    throw Error(ErrorKind::kData, bad->problem,
                "take it from a good copy; --update accepts the files as they are now");
}

}  // namespace vitrail::cli
