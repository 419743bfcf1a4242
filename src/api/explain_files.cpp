#include "api/explain_files.h"

#include <filesystem>
#include <map>
#include <set>

#include "api/classify.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/text.h"
#include "data/decode.h"
#include "data/image_list.h"
#include "data/overlay.h"
#include "io/cards/card_text.h"
#include "io/checkpoint/durable.h"
#include "plan/devices.h"

namespace vitrail {

namespace {
namespace fs = std::filesystem;

constexpr int64_t kClassesTold = 3;

// The file name without its extension. "." and ".." name existing folders, so they are replaced.
std::string folder_name(const std::string& path) {
  const std::string stem = fs::path(path).stem().string();
  return stem.find_first_not_of('.') == std::string::npos ? "image" : stem;
}

// Returns "3 overlays of block 11 and the rollout".
std::string maps_text(const AttentionRequest& request, size_t count) {
  if (!request.one_block()) return "overlay of the rollout";
  const size_t own = count - (request.rollout ? 1 : 0);
  return strf("%zu overlay%s of block %lld%s", own, own == 1 ? "" : "s",
              static_cast<long long>(request.layer), own < count ? " and the rollout" : "");
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

FileExplainer::FileExplainer(const OpenedModel& model, const EngineOptions& options,
                             const AttentionRequest& request, std::string method, bool upright)
    : request_(request),
      method_(std::move(method)),
      upright_(upright),
      predictor_(model, options_for(request, options), {tasks_of(model.card()).front()}) {}

ExplainedFile FileExplainer::explain(const std::string& path, const std::string& folder, std::string& note) {
  ExplainedFile result;
  const Image image = load_listed_image(path, upright_, note);
  const Explanation seen = with_context(path, [&] {
    Explanation given = predictor_.explain(image, request_);
    require_finite(given.logits, "logits");
    return given;
  });
  const std::vector<std::string> files = write_maps(image, seen.maps, folder);
  nlohmann::ordered_json json = image_json(path);
  json["model"] = predictor_.card().path;
  if (request_.one_block()) json["layer"] = request_.layer;
  if (predictor_.card().config.classes > 0) {
    const std::vector<TopClass> top = top_classes(seen.scores, predictor_.labels(), kClassesTold);
    json["top"] = top_classes_json(top);
    result.text = top_classes_text(top, 2);
  }
  json["maps"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < seen.maps.size(); ++i)
    json["maps"].push_back(
        {{"name", seen.maps[i].name}, {"file", files[i]}, {"spread", evenness(seen.maps[i].map)}});
  json["sheet"] = files.back();
  result.text += "  " + maps_text(request_, seen.maps.size()) + ": " + shown(files.back()) + "\n";
  result.json = json;
  json["settings"] = settings();
  write_file(folder + "/explain.json", json_text(json, 2) + "\n");
  return result;
}

// Returns the paths of the overlays and, last, of the sheet.
std::vector<std::string> FileExplainer::write_maps(const Image& image, const std::vector<NamedMap>& maps,
                                                   const std::string& folder) const {
  const ModelCard& card = predictor_.card();
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

nlohmann::ordered_json FileExplainer::settings() const {
  const nlohmann::ordered_json facts = card_json(predictor_.card());
  nlohmann::ordered_json json = {{"method", method_}};
  if (request_.one_block()) json["layer"] = request_.layer;
  json["model"] = facts["config"];
  json["preprocess"] = facts["preprocess"];
  json["device"] = device_text(plan());
  return json;
}

}  // namespace vitrail
