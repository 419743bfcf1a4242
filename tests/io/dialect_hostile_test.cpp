#include <limits>

#include "io/dialect_files.h"

namespace vitrail {
namespace {

class HostileConfig : public DialectTest {
 protected:
  void SetUp() override {
    DialectTest::SetUp();
    write_model(at("m"), tiny(), {.dialect = Dialect::kHf}, by_rule);
    good_ = parse_json(read_file(at("m/config.json"), 1 << 20), "config.json");
    good_.erase("vitrail");
  }
  std::string open_with(const Json& config) { return open_text(config.dump()); }
  std::string open_text(const std::string& text) {
    write_file(at("m/config.json"), text);
    return refusal(at("m"));
  }
  Json good_;
};

struct Attack {
  const char* key;
  std::vector<Json> values;
};

std::vector<Attack> attacks() {
  const Json strange[] = {"16",
                          -1,
                          0,
                          1.5,
                          true,
                          Json::array(),
                          Json::object({{"a", 1}}),
                          1'000'000'000,
                          std::numeric_limits<int64_t>::max(),
                          std::numeric_limits<int64_t>::min(),
                          std::numeric_limits<uint64_t>::max(),
                          1e300,
                          1'000'001};
  std::vector<Attack> list;
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                          "patch_size", "num_channels", "image_size"})
    list.push_back({key, {std::begin(strange), std::end(strange)}});
  list.push_back({"num_attention_heads", {5, 7, 25, 48}});
  list.push_back({"hidden_size", {23, 25, 48}});
  list.push_back({"num_hidden_layers", {1, 3, 1024, 1025}});
  list.push_back(
      {"image_size", {31, 16, 64, 1'000'000, {32}, {32, 32, 32}, {32, "32"}, {32, -32}, {0, 32}, {64, 32}}});
  list.push_back({"patch_size", {4, 7, 33, 1024, {8, 4}}});
  list.push_back({"layer_norm_eps", {-1e-6, "1e-6", 2.0, 1e300, Json::array({1e-6}), true}});
  list.push_back({"hidden_act", {"prelu", "prelu", 3, "", "GELU", Json::array()}});
  list.push_back({"qkv_bias", {false, "true", 1, 0}});
  list.push_back({"model_type", {"clip", "dinov2", "beit", "swin", "bert", 3, ""}});
  list.push_back({"id2label",
                  {Json::array(),
                   {{"0", "a"}},
                   {{"0", "a"}, {"2", "b"}},
                   {{"0", 1}},
                   "x",
                   {{"0", "a"}, {"1", "b"}, {"2", "c"}, {"3", "d"}, {"4", "e"}, {"5", "f"}}}});
  return list;
}

TEST_F(HostileConfig, TwoHundredHuggingFaceConfigsAreRefusedWithTheReason) {
  ASSERT_EQ(open_with(good_), "");
  int refused = 0;
  for (const Attack& attack : attacks())
    for (const Json& value : attack.values) {
      Json config = good_;
      config[attack.key] = value;
      const std::string said = open_with(config);
      EXPECT_NE(said, "") << attack.key << " = " << value.dump() << " was accepted";
      refused += !said.empty();
    }
  for (int64_t layers : {0, -5, 1'000'000'000})
    for (int64_t heads : {0, 5, 1'000'000'007})
      for (int64_t patch : {0, 9, -8})
        for (int64_t image : {0, 1'000'000}) {
          Json config = good_;
          config["num_hidden_layers"] = layers;
          config["num_attention_heads"] = heads;
          config["patch_size"] = patch;
          config["image_size"] = image;
          const std::string said = open_with(config);
          EXPECT_SAYS(said, "model.");
          refused += !said.empty();
        }
  EXPECT_GE(refused, 200);
}

TEST_F(HostileConfig, TheRuleBrokenIsNamed) {
  const std::tuple<const char*, Json, const char*> rows[] = {
      {"num_hidden_layers", 1'000'000'000, "model.depth is 1000000000; it must be between 0 and 1024"},
      {"num_attention_heads", 5, "model.heads (5) does not divide model.width (24)"},
      {"patch_size", 0, "model.patch is 0"},
      {"image_size", 1'000'000, "model.image_height is 1000000"},
      {"hidden_size", "24", "hidden_size is \"24\"; expected an integer"},
      {"num_hidden_layers", 3, "config.json says depth is 3, but the tensors say 2"},
      {"image_size", 64, "the file has 17"},
      {"hidden_act", "prelu", "hidden_act is \"prelu\""},
      {"model_type", "clip", "CLIP"},
  };
  for (const auto& [key, value, reason] : rows) {
    Json config = good_;
    config[key] = value;
    EXPECT_SAYS(open_with(config), reason);
  }
}

TEST_F(HostileConfig, TextThatIsNoConfigIsRefused) {
  for (const char* text :
       {"", "{", "[]", "null", "{\"hidden_size\": NaN}", "{\"hidden_size\": 24, \"hidden_size\": 24}",
        "{\"vitrail\": 3}", "{\"vitrail\": {\"modell\": {}}}", "{\"vitrail\": {\"model\": {\"withd\": 3}}}",
        "{\"vitrail\": {\"model\": {\"gelu\": \"relu\"}}}", "{\"architecture\": 4}",
        "{\"architecture\": \"vit_base_patch14_dinov2\"}", "{\"architecture\": \"nothing\"}",
        "{\"pretrained_cfg\": {}}"})
    EXPECT_NE(open_text(text), "") << text;
  EXPECT_SAYS(open_text("{\"vitrail\": {\"model\": {\"withd\": 3}}}"), "width");
}

TEST_F(HostileConfig, ImageConfigsAreChecked) {
  write_file(at("m/config.json"), good_.dump());
  const Json good = parse_json(read_file(at("m/preprocessor_config.json"), 1 << 20), "p");
  const std::pair<const char*, Json> rows[] = {
      {"size", -1},
      {"size", {{"shortest_edge", 1'000'000'000}}},
      {"size", "large"},
      {"crop_size", 1'000'000},
      {"crop_size", {{"height", 16}, {"width", 16}}},
      {"resample", 9},
      {"resample", "bicubic"},
      {"image_mean", {0.5}},
      {"image_std", {0.5, 0.0, 0.5}},
      {"image_std", {0.5, -1.0, 0.5}},
      {"image_std", {0.5, 1e-320, 0.5}},
      {"image_std", {0.5, 1e300, 0.5}},
      {"image_mean", {0.5, 0.5, -1e30}},
      {"rescale_factor", 0},
      {"rescale_factor", "x"},
  };
  for (const auto& [key, value] : rows) {
    Json images = good;
    images[key] = value;
    write_file(at("m/preprocessor_config.json"), images.dump());
    const std::string said = refusal(at("m"));
    EXPECT_NE(said.find("preprocessor_config.json"), std::string::npos)
        << key << " = " << value.dump() << ": " << said;
  }
}

}  // namespace
}  // namespace vitrail
