// Every row of the zoo that carries a name of timm's is what timm builds under it, with timm's preprocessing
// (tests/golden/zoo.json).
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "models/zoo.h"
#include "source_root.h"

namespace vitrail {
namespace {

using Json = nlohmann::json;

const std::map<std::string, Json>& timm_rows() {
  static const std::map<std::string, Json> rows = [] {
    std::map<std::string, Json> list;
    for (const Json& row : Json::parse(std::ifstream(VT_SOURCE_DIR "/tests/golden/zoo.json")))
      list[row.at("name")] = row;
    return list;
  }();
  return rows;
}

template <typename T>
Json json_of(const T& field) {
  if constexpr (std::is_enum_v<T>)
    return enum_name(field);
  else
    return field;
}

TEST(ZooGolden, RowsAreWhatTimmBuilds) {
  int compared = 0;
  for (const ZooEntry& entry : zoo()) {
    const auto found = timm_rows().find(entry.config.arch);
    if (found == timm_rows().end()) continue;
    SCOPED_TRACE(entry.config.arch);
    Json wanted = found->second.at("config");
    // Without a class token both values mean the same for the table.
    if (entry.config.pos_prefix_rows() == 0 && !wanted.at("pos_for_prefix").get<bool>())
      wanted["pos_for_prefix"] = entry.config.pos_for_prefix;
    // timm's number of classes is that of its default weights; here a name stands for the usual 1,000.
    if (entry.config.classes > 0) wanted["classes"] = 1000;
    size_t read = 0;
    visit_fields(entry.config, [&](const char* name, const auto& field, const char*) {
      if (!wanted.contains(name)) return;
      EXPECT_EQ(json_of(field), wanted.at(name)) << name;
      ++read;
    });
    EXPECT_EQ(read, wanted.size());
    ++compared;
  }
  EXPECT_GE(compared, 110);
}

TEST(ZooGolden, ImagesArePreparedAsTimmDoes) {
  for (const ZooEntry& entry : zoo()) {
    const auto found = timm_rows().find(entry.config.arch);
    if (found == timm_rows().end()) continue;
    SCOPED_TRACE(entry.config.arch);
    const Json& wanted = found->second.at("preprocess");
    const PreprocessConfig& p = entry.preprocess;
    EXPECT_EQ(p.height, wanted.at("height").get<int64_t>());
    EXPECT_EQ(p.width, wanted.at("width").get<int64_t>());
    EXPECT_EQ(p.resize, wanted.at("resize").get<int64_t>());
    EXPECT_EQ(p.mean, wanted.at("mean").get<std::vector<double>>());
    EXPECT_EQ(p.std, wanted.at("std").get<std::vector<double>>());
    EXPECT_EQ(enum_name(p.interpolation), wanted.at("interpolation").get<std::string>());
    EXPECT_EQ(p.mode == ResizeMode::kStretchCrop, wanted.at("crop_mode") == "squash");
    EXPECT_EQ(p.resampler, Resampler::kPillow);
  }
}

}  // namespace
}  // namespace vitrail
