#include "api/explain_files.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "data/decode.h"
#include "data/overlay.h"
#include "io/cards/card_text.h"
#include "io/checkpoint/durable.h"

namespace vitrail {

namespace {
namespace fs = std::filesystem;

// The file name without its extension. "." and ".." name existing folders, so they are replaced.
std::string folder_name(const std::string& path) {
  const std::string stem = fs::path(path).stem().string();
  return stem.find_first_not_of('.') == std::string::npos ? "image" : stem;
}

}  // namespace

std::vector<std::string> output_folders(const std::vector<std::string>& paths, const std::string& out,
                                        std::vector<std::string>& notes) {
  if (paths.size() == 1) return {out};
  std::vector<std::string> folders;
  std::set<std::string> taken;
  std::map<std::string, int> used;  // the last number given after each name
  for (const std::string& path : paths) {
    const std::string plain = folder_name(path);
    std::string name = plain;
    for (int& i = used.try_emplace(plain, 1).first->second; !taken.insert(name).second;)
      name = plain + "-" + std::to_string(++i);
    folders.push_back((fs::path(out) / name).string());
    if (name != plain)
      notes.push_back(strf("%s goes to %s: another image is named %s", shown(path).c_str(),
                           shown(folders.back()).c_str(), shown(plain).c_str()));
  }
  return folders;
}

std::vector<std::string> write_maps(const Image& image, const ModelCard& card,
                                    const std::vector<NamedMap>& maps, const std::string& folder) {
  make_folders(folder);
  std::vector<LabelledMap> labelled;
  labelled.reserve(maps.size());
  for (const NamedMap& one : maps) labelled.push_back({one.label, stretched(one.map)});
  const MapSheet drawn =
      draw_maps(image, card.preprocess, labelled, card.config.grid_height(), card.config.grid_width());
  std::vector<std::string> files;
  for (size_t i = 0; i < maps.size(); ++i) {
    files.push_back((fs::path(folder) / (maps[i].name + ".png")).string());
    write_png(files.back(), drawn.overlays[i]);
  }
  files.push_back((fs::path(folder) / "sheet.png").string());
  write_png(files.back(), drawn.sheet);
  return files;
}

nlohmann::ordered_json explain_settings(const ModelCard& card, const AttentionRequest& request,
                                        const std::string& method, const std::string& device) {
  const nlohmann::ordered_json facts = card_json(card);
  nlohmann::ordered_json json = {{"method", method}};
  if (request.one_block()) json["layer"] = request.layer;
  json["model"] = facts["config"];
  json["preprocess"] = facts["preprocess"];
  json["device"] = device;
  return json;
}

std::string maps_text(const AttentionRequest& request, size_t count) {
  if (!request.one_block()) return "overlay of the rollout";
  const size_t own = count - (request.rollout ? 1 : 0);
  return strf("%zu overlay%s of block %lld%s", own, own == 1 ? "" : "s",
              static_cast<long long>(request.layer), own < count ? " and the rollout" : "");
}

}  // namespace vitrail
