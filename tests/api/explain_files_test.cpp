// What an explanation of a file says and writes: each method in its words, with classes and without.
#include "api/explain_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "source_root.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

const std::string kGoldenModels = VT_SOURCE_DIR "/tests/golden/models/";
const std::string kSmall = VT_SOURCE_DIR "/tests/golden/images/grey.jpg";

struct ToldFile {
  std::vector<std::string> lines, maps;
  Json json, written;
};

ToldFile explained(const std::string& path, const char* method, int64_t layer) {
  const TempFolder folder;
  const std::string out = (folder.path() / "out").string();
  const auto model = open_model(kGoldenModels + path);
  FileExplainer explainer(*model, {.threads = 1},
                          attention_request(method, layer, model->card().config, "--layer"), method, false);
  std::string note;
  const ExplainedFile found = explainer.explain(kSmall, out, note);
  EXPECT_EQ(note, "");
  ToldFile told{.json = Json::parse(found.json.dump())};
  std::istringstream text(found.text);
  for (std::string line; std::getline(text, line);) {
    if (const size_t at = line.find(out); at != std::string::npos) line.replace(at, out.size(), "OUT");
    told.lines.push_back(line);
  }
  told.written = parse_json(read_file(out + "/explain.json", 1 << 20), out);
  for (const Json& map : told.json.at("maps")) {
    told.maps.push_back(map.at("name"));
    EXPECT_TRUE(std::filesystem::exists(map.at("file").get<std::string>()));
  }
  EXPECT_TRUE(std::filesystem::exists(told.json.at("sheet").get<std::string>()));
  return told;
}

TEST(ExplainFiles, EachMethodInItsWords) {
  const struct {
    const char* method;
    int64_t layer;
    const char* says;
    size_t maps;
  } rows[] = {{"mean", 0, "  1 overlay of block 0: OUT/sheet.png", 1},
              {"heads", 1, "  4 overlays of block 1: OUT/sheet.png", 4},
              {"rollout", 1, "  overlay of the rollout: OUT/sheet.png", 1},
              {"all", 1, "  5 overlays of block 1 and the rollout: OUT/sheet.png", 6}};
  for (const auto& row : rows) {
    const ToldFile told = explained("hf_single", row.method, row.layer);
    EXPECT_EQ(told.lines.size(), 4u) << "three classes and the maps";
    EXPECT_EQ(told.lines.back(), row.says);
    EXPECT_EQ(told.maps.size(), row.maps) << row.method;
    const bool one_block = row.method != std::string("rollout");
    EXPECT_EQ(told.json.contains("layer"), one_block) << row.method;
    if (one_block) {
      EXPECT_EQ(told.json["layer"], row.layer);
    }
    EXPECT_EQ(told.json["top"].size(), 3u);
    EXPECT_EQ(told.json["image"], kSmall);
    EXPECT_FALSE(told.json.contains("settings")) << "those are in the file";
    EXPECT_EQ(told.written["settings"]["method"], row.method);
    EXPECT_EQ(told.written["settings"].contains("layer"), one_block);
    Json without = told.written;
    without.erase("settings");
    EXPECT_EQ(without, told.json);
  }
}

TEST(ExplainFiles, AModelWithoutClassesNamesNone) {
  const ToldFile told = explained("hf_base", "mean", 0);
  EXPECT_FALSE(told.json.contains("top"));
  EXPECT_FALSE(told.written.contains("top"));
  EXPECT_EQ(told.lines, std::vector<std::string>{"  1 overlay of block 0: OUT/sheet.png"});
}

}  // namespace
}  // namespace vitrail
