#include "models/vit_init.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/rng.h"
#include "source_root.h"

namespace vitrail {
namespace {

nlohmann::json golden_rule() {
  std::ifstream file(VT_SOURCE_DIR "/tests/golden/rule.json");
  return nlohmann::json::parse(file);
}

// One config that has every kind of parameter; distilled and map exclude each other, so two.
std::map<std::string, ParamSpec> all_specs() {
  VitConfig a;
  a.image_height = a.image_width = 32;
  a.patch = 8;
  a.width = 48;
  a.depth = 2;
  a.heads = 4;
  a.mlp = 96;
  a.classes = 10;
  a.registers = 2;
  a.pos_for_prefix = false;
  a.qk_norm = a.layer_scale = a.pre_logits = true;
  VitConfig b = a;
  a.distilled = true;
  a.pre_logits = false;
  b.class_token = false;
  b.pool = Pool::kMap;
  b.norm_place = NormPlace::kAfterPool;
  std::map<std::string, ParamSpec> specs;
  for (const VitConfig& config : {a, b})
    for (const ParamSpec& spec : vit_params(config)) specs.emplace(spec.name, spec);
  specs.emplace("input", ParamSpec{"input", {{'B', 1}, {'C', 3}, {'Y', 32}, {'X', 32}}});
  return specs;
}

TEST(RuleWeights, KeysAndHashesAreThoseOfPython) {
  const auto golden = golden_rule();
  ASSERT_FALSE(golden.at("hashes").empty());
  for (const auto& row : golden.at("hashes")) {
    const uint64_t key = name_key(row.at("name").get<std::string>());
    EXPECT_EQ(key, std::stoull(row.at("key").get<std::string>(), nullptr, 16)) << row.at("name");
    EXPECT_EQ(counter_hash(key, row.at("index").get<uint64_t>()),
              std::stoull(row.at("hash").get<std::string>(), nullptr, 16))
        << row.at("name");
  }
}

TEST(RuleWeights, ValuesAreThoseOfPythonToTheBit) {
  const auto specs = all_specs();
  const auto golden = golden_rule();
  for (const auto& row : golden.at("values")) {
    const std::string name = row.at("name");
    SCOPED_TRACE(name);
    ASSERT_TRUE(specs.count(name));
    const ParamSpec& spec = specs.at(name);
    std::vector<float> values(static_cast<size_t>(spec.shape.elems()));
    fill_by_rule(spec, values);
    ASSERT_EQ(spec.shape.elems(), row.at("elems").get<int64_t>());
    const auto first = row.at("first").get<std::vector<float>>();
    for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(values[i], first[i]) << "index " << i;
    EXPECT_EQ(values.back(), row.at("last").get<float>());
  }
  EXPECT_EQ(golden.at("values").size(), specs.size()) << "a kind of parameter is without a golden value";
}

TEST(RuleWeights, UniformFillsItsRangeEvenly) {
  double sum = 0, squares = 0;
  constexpr int kCount = 1 << 16;
  for (int i = 0; i < kCount; ++i) {
    const float u = counter_uniform(name_key("head.weight"), static_cast<uint64_t>(i));
    ASSERT_GE(u, -1.0f);
    ASSERT_LT(u, 1.0f);
    EXPECT_EQ(std::ldexp(u, 23), std::floor(std::ldexp(u, 23)));
    sum += u;
    squares += static_cast<double>(u) * u;
  }
  EXPECT_NEAR(sum / kCount, 0.0, 0.01);
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.01);
}

TEST(RuleWeights, RefusesAWrongSizeAndAnUnknownName) {
  std::vector<float> values(3);
  EXPECT_THROW(fill_by_rule({"norm.weight", {{'D', 4}}}, values), Error);
  EXPECT_THROW(fill_by_rule({"unheard_of", {{'D', 3}}}, values), Error);
}

}  // namespace
}  // namespace vitrail
