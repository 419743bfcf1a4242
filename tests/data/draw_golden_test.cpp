// Random draws are distributed as in timm and torchvision: every number an augmentation depends on, against
// the distribution of the library's own draws (tests/golden/augment/draws.json, policies.txt).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/enum_names.h"
#include "base/error.h"
#include "data/augment/colour.h"
#include "data/augment/mix.h"
#include "data/augment/policy.h"
#include "data/augment/windows.h"
#include "source_root.h"

namespace vitrail {
namespace {

using Json = nlohmann::json;
using Numbers = std::map<std::string, std::vector<double>>;

constexpr int64_t kGoldenDraws = 20000;
// The standard deviations allowed between two estimates: a correct draw fails once in some 10^6 comparisons.
constexpr double kDeviations = 5;

const Json& goldens() {
  static const Json json =
      Json::parse(std::ifstream(VT_SOURCE_DIR "/tests/golden/augment/draws.json", std::ios::binary));
  return json;
}

double share_of(const std::vector<double>& numbers, const std::function<bool(double)>& holds) {
  return static_cast<double>(std::count_if(numbers.begin(), numbers.end(), holds)) /
         static_cast<double>(numbers.size());
}

// How far two estimates of a share or a mean may lie apart.
double allowed(double deviation, double draws, double other_draws) {
  return kDeviations * deviation * std::sqrt(1 / draws + 1 / other_draws);
}

void expect_distributed(const std::string& name, const std::vector<double>& found, const Json& wanted) {
  SCOPED_TRACE(name);
  ASSERT_FALSE(found.empty());
  const auto mine = static_cast<double>(found.size());
  const double theirs = wanted.at("draws"), mean = wanted.at("mean"), deviation = wanted.at("deviation");
  double sum = 0;
  for (double x : found) sum += x;
  EXPECT_NEAR(sum / mine, mean, allowed(deviation, mine, theirs) + 1e-7 * (1 + std::abs(mean)));
  for (const Json& point : wanted.at("points")) {
    const double value = point.at(0), below = point.at(1), up_to = point.at(2);
    const double slack = 1e-7 * (1 + std::abs(value));  // of what the golden's digits leave open
    const auto near = [&](double share) {
      return allowed(std::sqrt(std::max(share * (1 - share), 1 / theirs)), mine, theirs);
    };
    EXPECT_NEAR(share_of(found, [&](double x) { return x < value - slack; }), below, near(below))
        << "below " << value;
    EXPECT_NEAR(share_of(found, [&](double x) { return x <= value + slack; }), up_to, near(up_to))
        << "up to " << value;
  }
}

void expect_all(const Numbers& found, const Json& wanted) {
  for (const auto& [name, distribution] : wanted.items()) {
    ASSERT_TRUE(found.contains(name)) << name;
    expect_distributed(name, found.at(name), distribution);
  }
  EXPECT_EQ(found.size(), wanted.size());
}

double real(int64_t x) {
  return static_cast<double>(x);
}

TEST(DrawGolden, ResizedCrops) {
  for (const Json& c : goldens().at("crops")) {
    const Size image{c.at("height"), c.at("width")};
    SCOPED_TRACE(
        strf("%lld x %lld", static_cast<long long>(image.height), static_cast<long long>(image.width)));
    AugmentConfig config;
    config.crop_scale = c.at("scale").get<std::vector<double>>();
    config.crop_ratio = c.at("ratio").get<std::vector<double>>();
    Numbers found;
    for (int64_t i = 0; i < kGoldenDraws; ++i) {
      Draw draw(1, 0, i, "crop");
      const Window w = resized_crop(image, config, draw);
      found["area"].push_back(real(w.height * w.width) / real(image.height * image.width));
      found["log_ratio"].push_back(std::log(real(w.width) / real(w.height)));
      found["height"].push_back(real(w.height));
      found["width"].push_back(real(w.width));
      found["top"].push_back(real(w.top));
      found["left"].push_back(real(w.left));
    }
    expect_all(found, c.at("drawn"));
  }
}

TEST(DrawGolden, MixesByKind) {
  for (const Json& c : goldens().at("mixes")) {
    AugmentConfig config;
    config.mixup = c.at("mixup"), config.cutmix = c.at("cutmix");
    config.mix_prob = c.at("prob"), config.mix_switch = c.at("switch");
    SCOPED_TRACE(strf("mixup %g cutmix %g", config.mixup, config.cutmix));
    const Size size{c.at("height"), c.at("width")};
    Numbers found;
    for (int64_t i = 0; i < kGoldenDraws; ++i) {
      Draw draw(1, 0, i, "mix");
      const Mix mix = draw_mix(config, size, draw);
      const bool mixed = mix.cut || mix.lambda != 1;
      found["mixed"].push_back(mixed);
      if (!mixed) continue;
      found["cut"].push_back(mix.cut);
      found[mix.cut ? "cut_lambda" : "blend_lambda"].push_back(mix.lambda);
      if (!mix.cut) continue;
      found["box_height"].push_back(real(mix.box.height));
      found["box_width"].push_back(real(mix.box.width));
    }
    expect_all(found, c.at("drawn"));
  }
}

TEST(DrawGolden, ErasedBoxes) {
  for (const Json& c : goldens().at("erasures")) {
    AugmentConfig config;
    config.erase = c.at("probability"), config.erase_count = c.at("count");
    config.erase_area = c.at("area").get<std::vector<double>>();
    const Size size{c.at("height"), c.at("width")};
    SCOPED_TRACE(config.erase_count);
    Numbers found;
    for (int64_t i = 0; i < kGoldenDraws; ++i) {
      std::vector<float> image(static_cast<size_t>(size.height * size.width), 1.0f);
      Draw draw(1, 0, i, "erase"), again = draw;
      random_erase(image, size, config, draw);
      const auto erased = real(std::count(image.begin(), image.end(), 0.0f));
      found["happens"].push_back(erased > 0);
      found["erased"].push_back(erased / real(size.height * size.width));
      if (config.erase_count > 1) continue;
      draw_erased(size, config, again, [&](const Window& box) {
        found["log_ratio"].push_back(std::log(real(box.width) / real(box.height)));
        found["height"].push_back(real(box.height));
        found["width"].push_back(real(box.width));
        found["top"].push_back(real(box.top));
        found["left"].push_back(real(box.left));
      });
    }
    expect_all(found, c.at("drawn"));
  }
}

TEST(DrawGolden, ColourJitter) {
  for (const Json& c : goldens().at("jitters")) {
    const auto strengths = c.at("strengths").get<std::vector<double>>();
    Numbers found;
    for (int64_t i = 0; i < kGoldenDraws; ++i) {
      Draw draw(1, 0, i, "jitter");
      const JitterDraw drawn = draw_jitter(strengths, draw);
      for (size_t k = 0; k < 4; ++k) {
        found["factor" + std::to_string(k)].push_back(drawn.factor[k]);
        found["place" + std::to_string(drawn.order[k])].push_back(static_cast<double>(k));
      }
    }
    expect_all(found, c.at("drawn"));
  }
}

// Compares which operations happen, how many per image, and with which arguments.
TEST(DrawGolden, PoliciesOfTimm) {
  for (const Json& c : goldens().at("policies")) {
    SCOPED_TRACE(c.at("policy").get<std::string>());
    const Policy policy = parse_policy(c.at("policy").get<std::string>());
    Numbers arguments, counts;
    for (int64_t i = 0; i < kGoldenDraws; ++i) {
      Draw draw(1, 0, i, "policy");
      const std::vector<PolicyDraw> drawn = draw_policy(policy, {}, {30, 40}, draw);
      counts["operations"].push_back(static_cast<double>(drawn.size()));
      for (const PolicyDraw& one : drawn) arguments[enum_name(one.op)].push_back(one.argument);
    }
    expect_all(counts, c.at("counts"));
    expect_all(arguments, c.at("arguments"));
    for (const auto& [op, share] : c.at("share").items()) {
      const double wanted = share, found = static_cast<double>(arguments[op].size()) / kGoldenDraws;
      EXPECT_NEAR(found, wanted, allowed(std::sqrt(wanted * (1 + wanted)), kGoldenDraws, c.at("draws")))
          << op;
    }
  }
}

// torchvision takes every operation at its level, each equally often.
TEST(DrawGolden, PolicyOfTorchvision) {
  const Policy policy = parse_policy("torchvision-m9-n2");
  std::map<PolicyOp, int64_t> counts;
  for (int64_t i = 0; i < kGoldenDraws; ++i) {
    Draw draw(1, 0, i, "policy");
    const std::vector<PolicyDraw> drawn = draw_policy(policy, {}, {30, 40}, draw);
    ASSERT_EQ(drawn.size(), 2u);
    for (const PolicyDraw& one : drawn) ++counts[one.op];
  }
  EXPECT_EQ(counts.size(), 14u);
  for (const auto& [op, count] : counts)
    EXPECT_NEAR(real(count), kGoldenDraws / 7.0, kDeviations * std::sqrt(kGoldenDraws / 7.0))
        << enum_name(op);
}

TEST(DrawGolden, PoliciesResampleEitherWayOrAsAsked) {
  const Policy policy = parse_policy("rand-m9-p1");
  int64_t bilinear = 0, bicubic = 0;
  for (int64_t i = 0; i < kGoldenDraws; ++i) {
    Draw draw(1, 0, i, "policy"), again = draw;
    for (const PolicyDraw& one :
         draw_policy(policy, {.random_interpolation = true, .sampling = {}}, {30, 40}, draw)) {
      bilinear += one.interpolation == Interpolation::kBilinear;
      bicubic += one.interpolation == Interpolation::kBicubic;
    }
    const PolicyLook fixed{.random_interpolation = false, .sampling = {Interpolation::kNearest, {}}};
    for (const PolicyDraw& one : draw_policy(policy, fixed, {30, 40}, again))
      EXPECT_EQ(one.interpolation, Interpolation::kNearest);
  }
  EXPECT_EQ(bilinear + bicubic, 2 * kGoldenDraws);
  EXPECT_NEAR(real(bilinear), kGoldenDraws, kDeviations * std::sqrt(kGoldenDraws / 2.0));
}

struct TableRow {
  int64_t sub_policy = 0;
  std::string op;
  double probability = -1, level = -1;
  bool operator==(const TableRow&) const = default;
  friend void PrintTo(const TableRow& row, std::ostream* out) {
    *out << row.sub_policy << " " << row.op << " " << row.probability << " " << row.level;
  }
};

std::map<std::string, std::vector<TableRow>> tables_of_the_libraries() {
  std::map<std::string, std::vector<TableRow>> tables;
  std::ifstream file(VT_SOURCE_DIR "/tests/golden/augment/policies.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::string name;
    TableRow row;
    fields >> name >> row.sub_policy >> row.op >> row.probability >> row.level;
    if (fields.fail()) row.probability = row.level = -1;
    tables[name].push_back(row);
  }
  return tables;
}

// Compares entry by entry.
TEST(DrawGolden, TablesAndListsAreTheLibraries) {
  const auto wanted = tables_of_the_libraries();
  std::map<std::string, std::vector<TableRow>> found;
  for (const PolicyTable& table : policy_tables())
    for (size_t i = 0; i < table.entries.size(); ++i)
      found[table.name].push_back({static_cast<int64_t>(i / table.steps), enum_name(table.entries[i].op),
                                   table.entries[i].probability, table.entries[i].level});
  for (const char* name : {"rand", "rand-inc1", "torchvision"})
    for (const PolicyOp op : parse_policy(name).ops)
      found[name].push_back({std::ssize(found[name]), enum_name(op), -1, -1});
  EXPECT_EQ(found.size(), wanted.size());
  for (const auto& [name, rows] : wanted) EXPECT_EQ(found[name], rows) << name;
}

}  // namespace
}  // namespace vitrail
