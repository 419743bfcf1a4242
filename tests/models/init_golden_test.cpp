// Fresh weights are distributed as timm and Flax draw them (tests/golden/init.json), and are a function of
// seed, name and element alone.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "models/lora.h"
#include "models/vit_init.h"
#include "source_root.h"

namespace vitrail {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kSeeds = 24;
constexpr double kDeviations = 5;  // of an estimate: a right draw fails once in some 10^6 comparisons

template <typename T>
void assign(const Json& value, T& field) {
  if constexpr (std::is_enum_v<T>)
    field = enum_from_name<T>(value.get<std::string>()).value();
  else
    field = value.get<T>();
}

VitConfig config_of(const Json& json) {
  VitConfig config;
  size_t read = 0;
  visit_fields(config, [&](const char* name, auto& field, const char*) {
    if (json.contains(name)) assign(json.at(name), field), ++read;
  });
  EXPECT_EQ(read, json.size());
  return config;
}

std::vector<float> drawn(const VitConfig& config, const ParamSpec& spec, InitStyle style, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(spec.shape.elems()), NAN);
  init_param(config, spec, style, seed, values);
  return values;
}

struct Moments {
  double count = 0, mean = 0, deviation = 0, kurtosis = 0, largest = 0;
};

Moments moments_of(const VitConfig& config, const ParamSpec& spec, InitStyle style) {
  std::vector<double> all;
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    for (float value : drawn(config, spec, style, seed)) all.push_back(static_cast<double>(value));
  Moments m{.count = static_cast<double>(all.size())};
  for (double x : all) m.mean += x / m.count;
  double square = 0, fourth = 0;
  for (double x : all) {
    square += std::pow(x - m.mean, 2) / m.count;
    fourth += std::pow(x - m.mean, 4) / m.count;
    m.largest = std::max(m.largest, std::abs(x));
  }
  m.deviation = std::sqrt(square);
  if (square > 1e-20 && m.deviation > 1e-6 * std::abs(m.mean)) m.kurtosis = fourth / (square * square);
  return m;
}

// Both sides are estimates from as many values.
void expect_alike(const Moments& found, const Json& wanted) {
  const double deviation = wanted.at("deviation"), kurtosis = wanted.at("kurtosis"), mean = wanted.at("mean");
  EXPECT_EQ(found.count, wanted.at("count").get<double>());
  const double error = kDeviations * std::sqrt(2 / found.count);
  if (kurtosis == 0) {  // all the same
    EXPECT_NEAR(found.mean, mean, 1e-6 * std::abs(mean));
    EXPECT_NEAR(found.deviation, 0, 1e-6 * std::abs(mean));
    return;
  }
  EXPECT_NEAR(found.mean, mean, error * deviation);
  EXPECT_NEAR(found.deviation / deviation, 1, error * std::sqrt((kurtosis - 1) / 4));
  EXPECT_NEAR(found.kurtosis, kurtosis, error * std::sqrt(24.0) + 0.02);
  const bool bounded = kurtosis < 2.6;  // uniform 1.8, cut normal 2.37; a normal has 3
  if (bounded) {
    EXPECT_NEAR(found.largest / wanted.at("largest").get<double>(), 1, 0.02);
  }
}

struct InitCase {
  std::string name;
  Json json;
  friend void PrintTo(const InitCase& c, std::ostream* out) { *out << c.name; }
};

std::vector<InitCase> init_cases() {
  std::vector<InitCase> cases;
  for (const Json& json : Json::parse(std::ifstream(VT_SOURCE_DIR "/tests/golden/init.json")))
    cases.push_back({json.at("name"), json});
  return cases;
}

class InitGolden : public testing::TestWithParam<InitCase> {};

TEST_P(InitGolden, EveryParameterIsDrawnAsTheLibraryDoes) {
  const Json& json = GetParam().json;
  const VitConfig config = config_of(json.at("config"));
  validate(config);
  const InitStyle style = enum_from_name<InitStyle>(json.at("style").get<std::string>()).value();
  std::vector<ParamSpec> specs = vit_params(config);
  EXPECT_EQ(specs.size(), json.at("params").size());
  for (const ParamSpec& spec : specs) {
    SCOPED_TRACE(spec.name);
    ASSERT_TRUE(json.at("params").contains(spec.name));
    expect_alike(moments_of(config, spec, style), json.at("params").at(spec.name));
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, InitGolden, testing::ValuesIn(init_cases()),
                         [](const auto& test) { return test.param.name; });

// What the golden statistics are too coarse for: sqrt(6 / (1 + width)), as of a matrix with one input.
TEST(Init, TheLatentOfJaxHasAFanInOfOne) {
  VitConfig config;
  config.width = 2;
  const ParamSpec latent{"attn_pool.latent", {{'S', 1}, {'D', 4096}}, ParamPart::kTokens, ParamRole::kLatent};
  float largest = 0;
  for (const float value : drawn(config, latent, InitStyle::kJax, 3))
    largest = std::max(largest, std::abs(value));
  EXPECT_LE(largest, std::sqrt(6.0f / 3));
  EXPECT_GT(largest, 0.99f * std::sqrt(6.0f / 3));
}

TEST(Init, IsAFunctionOfSeedNameAndElement) {
  VitConfig config = config_of(init_cases().front().json.at("config"));
  const ParamSpec one{"blocks.0.mlp.fc1.weight", {{'F', 240}, {'D', 96}}, ParamPart::kMlp},
      other{"blocks.1.mlp.fc1.weight", {{'F', 240}, {'D', 96}}, ParamPart::kMlp},
      part{"blocks.0.mlp.fc1.weight", {{'F', 2}, {'D', 96}}, ParamPart::kMlp};
  for (InitStyle style : {InitStyle::kTimm, InitStyle::kJax}) {
    const std::vector<float> values = drawn(config, one, style, 7);
    EXPECT_EQ(drawn(config, one, style, 7), values);
    EXPECT_NE(drawn(config, one, style, 8), values);
    EXPECT_NE(drawn(config, other, style, 7), values);
    std::map<float, int> seen;
    for (float value : values) ++seen[value];
    EXPECT_GT(seen.size(), values.size() * 9 / 10) << "elements repeat";
  }
  const std::vector<float> whole = drawn(config, one, InitStyle::kTimm, 7),
                           first = drawn(config, part, InitStyle::kTimm, 7);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), whole.begin()));
}

// An adapter starts without effect: B is zero, A as torch's linear layer (Hu et al. 2021 as PEFT draws it).
TEST(Init, AdaptersStartAtNothing) {
  const VitConfig config = config_of(init_cases().front().json.at("config"));
  size_t a = 0, b = 0;
  for (const ParamSpec& spec : lora_params(config, {.rank = 4, .attention = true, .mlp = true})) {
    SCOPED_TRACE(spec.name);
    const Moments m = moments_of(config, spec, InitStyle::kTimm);
    if (spec.name.ends_with("lora_b.weight")) {
      EXPECT_EQ(m.largest, 0);
      ++b;
      continue;
    }
    const double inputs = spec.name.find("fc2") != std::string::npos ? 240 : 96;
    EXPECT_NEAR(m.largest, 1 / std::sqrt(inputs), 0.01 / std::sqrt(inputs));
    EXPECT_NEAR(m.deviation, 1 / std::sqrt(3 * inputs), 0.03 / std::sqrt(inputs));
    ++a;
  }
  EXPECT_EQ(a, 8u);
  EXPECT_EQ(b, 8u);
}

}  // namespace
}  // namespace vitrail
