#include "optim/param_groups.h"

#include <gtest/gtest.h>

#include "golden_json.h"

namespace vitrail {
namespace {

NamedParam param(const std::string& name, size_t rank) {
  std::vector<Dim> dims;
  for (size_t i = 0; i < rank; ++i) dims.emplace_back("DKCPQ"[i], 2);
  return {name, {DType::kF32, Shape(dims)}};
}

// Canonical ranks differ from timm's where it keeps tokens as [1, N, D] and biases flat.
size_t canonical_rank(const std::string& name) {
  if (name.ends_with("_token") || name.ends_with("pos_embed") || name.ends_with("latent")) return 2;
  if (name.ends_with("qkv.bias")) return 3;
  if (name.ends_with(".bias") || name.ends_with(".gamma") || name.find("norm") != std::string::npos) return 1;
  return 2;
}

class GroupGolden : public testing::TestWithParam<golden::NamedRow> {};

TEST_P(GroupGolden, ScalesAndDecaysAreTimms) {
  const Json& row = GetParam().row;
  std::vector<NamedParam> params;
  for (const auto& [name, group] : row.at("groups").items())
    params.push_back(param(name, canonical_rank(name)));
  const auto trained =
      group_params(params, {.layer_decay = row.at("layer_decay")}, row.at("weight_decay").get<double>());
  ASSERT_EQ(trained.size(), params.size());
  for (const TrainedParam& p : trained) {
    EXPECT_DOUBLE_EQ(p.lr_scale, row.at("groups").at(p.name).at(0)) << p.name;
    EXPECT_EQ(p.weight_decay, row.at("groups").at(p.name).at(1).get<double>()) << p.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GroupGolden, testing::ValuesIn(golden::rows("groups.json")),
                         golden::row_name);

TEST(Pattern, StarStandsForAnything) {
  struct Row {
    const char *name, *pattern;
    bool fits;
  };
  const Row rows[] = {{"head.weight", "head.weight", true},
                      {"head.weight", "head.*", true},
                      {"head_dist.weight", "head.*", false},
                      {"blocks.10.norm1.bias", "blocks.1.*", false},
                      {"blocks.1.norm1.bias", "blocks.1.*", true},
                      {"blocks.1.norm1.bias", "*.norm*.bias", true},
                      {"blocks.1.mlp.fc1.bias", "*.norm*.bias", false},
                      {"aab", "*ab", true},
                      {"aaab", "a*ab", true},
                      {"a", "", false},
                      {"", "*", true},
                      {"", "", true},
                      {"abc", "**", true},
                      {"abc", "*b", false},
                      {"abcb", "*b", true},
                      {"abc", "abcd", false}};
  for (const Row& row : rows)
    EXPECT_EQ(matches_pattern(row.name, row.pattern), row.fits) << row.name << row.pattern;
  const std::string long_name(20000, 'a');
  EXPECT_FALSE(matches_pattern(long_name, "*a*a*a*a*b")) << "and takes no time";
}

const std::vector<NamedParam> kParams = {param("cls_token", 2),
                                         param("patch_embed.proj.weight", 4),
                                         param("blocks.0.norm1.bias", 1),
                                         param("blocks.0.mlp.fc1.weight", 2),
                                         param("blocks.1.norm1.bias", 1),
                                         param("head.weight", 2),
                                         param("head.bias", 1)};

std::string names_of(const std::vector<TrainedParam>& trained) {
  std::string names;
  for (const TrainedParam& p : trained) names += (names.empty() ? "" : " ") + p.name;
  return names;
}

TEST(Freeze, TheLastMatchHolds) {
  struct Row {
    std::vector<std::string> freeze;
    const char* trained;
  };
  const Row rows[] = {
      {{"*", "!head.*"}, "head.weight head.bias"},
      {{"*", "!head.*", "head.bias"}, "head.weight"},
      {{"blocks.0.*", "cls_token", "patch_embed.*"}, "blocks.1.norm1.bias head.weight head.bias"},
      {{"!head.*", "*", "!blocks.*.norm1.*"}, "blocks.0.norm1.bias blocks.1.norm1.bias"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(names_of(group_params(kParams, {.freeze = row.freeze}, 0)), row.trained);
  EXPECT_EQ(names_of(group_params(kParams, {.linear_probe = true}, 0)), "head.weight head.bias");
  EXPECT_EQ(group_params(kParams, {}, 0).size(), kParams.size());
}

TEST(Freeze, RefusesPatternsThatFitNothingAndNothingToTrain) {
  for (const std::vector<std::string>& freeze :
       {std::vector<std::string>{"block.0.*"}, {"*", "!haed.*"}, {"*"}, {""}, {"!"}})
    EXPECT_THROW(group_params(kParams, {.freeze = freeze}, 0), Error) << freeze[0];
  EXPECT_THROW(validate(ParamGroupConfig{.freeze = {"*"}, .linear_probe = true}), Error);
  EXPECT_THROW(validate(ParamGroupConfig{.layer_decay = 0}), Error);
  // Everything is refused before names are known, unless something trains again behind it.
  for (const std::vector<std::string>& freeze :
       {std::vector<std::string>{"*"}, {"!head.*", "**"}, {"*", "head.bias"}})
    try {
      validate(ParamGroupConfig{.freeze = freeze});
      ADD_FAILURE() << freeze[0];
    } catch (const Error& error) {
      EXPECT_NE(error.hint().find("!head.*"), std::string::npos) << error.what();
    }
  validate(ParamGroupConfig{.freeze = {"*", "!head.*"}});
  validate(ParamGroupConfig{.freeze = {"*", "!head.*", "head.bias"}});
  EXPECT_THROW(validate(ParamGroupConfig{.layer_decay = 1.5}), Error);
}

TEST(Decay, CanBeGivenToVectorsAndTakenFromPatterns) {
  const auto decay_of = [](const ParamGroupConfig& config) {
    std::map<std::string, double> decay;
    for (const TrainedParam& p : group_params(kParams, config, 0.3)) decay[p.name] = p.weight_decay;
    return decay;
  };
  auto decay = decay_of({});
  EXPECT_EQ(decay["head.weight"], 0.3);
  EXPECT_EQ(decay["head.bias"], 0);
  EXPECT_EQ(decay["cls_token"], 0);
  decay = decay_of({.decay_vectors = true, .no_decay = {"head.*"}});
  EXPECT_EQ(decay["head.weight"], 0);
  EXPECT_EQ(decay["blocks.0.norm1.bias"], 0.3);
  EXPECT_EQ(decay["cls_token"], 0.3);
}

// The default names tokens that not every model has; what is given must fit, as with params.freeze.
TEST(Decay, RefusesPatternsThatFitNothing) {
  for (const std::vector<std::string>& no_decay :
       {std::vector<std::string>{"haed.*"}, {"cls_token", "!haed.*"}, {""}, {"!"}})
    try {
      group_params(kParams, {.no_decay = no_decay}, 0.3);
      ADD_FAILURE() << no_decay.back();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig);
      EXPECT_NE(error.message().find("params.no_decay has"), std::string::npos) << error.what();
    }
  EXPECT_EQ(group_params(kParams, {.no_decay = {"dist_token", "head.*"}}, 0.3).size(), kParams.size());
  EXPECT_EQ(group_params(kParams, {.linear_probe = true, .no_decay = {"blocks.*"}}, 0.3).size(), 2u)
      << "a pattern of what is frozen fits, too";
  EXPECT_EQ(group_params(kParams, {.no_decay = {}}, 0.3).front().weight_decay, 0.3);
}

}  // namespace
}  // namespace vitrail
