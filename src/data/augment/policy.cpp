#include "data/augment/policy.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace vitrail {
namespace {

constexpr PolicyOp kRandOps[] = {
    PolicyOp::kAutoContrast, PolicyOp::kEqualize,   PolicyOp::kInvert,      PolicyOp::kRotate,
    PolicyOp::kPosterize,    PolicyOp::kSolarize,   PolicyOp::kSolarizeAdd, PolicyOp::kColor,
    PolicyOp::kContrast,     PolicyOp::kBrightness, PolicyOp::kSharpness,   PolicyOp::kShearX,
    PolicyOp::kShearY,       PolicyOp::kTranslateX, PolicyOp::kTranslateY,
};

// torchvision's operations, which include identity, but neither invert nor solarize_add.
constexpr PolicyOp kTorchvisionOps[] = {
    PolicyOp::kIdentity,     PolicyOp::kShearX,    PolicyOp::kShearY,     PolicyOp::kTranslateX,
    PolicyOp::kTranslateY,   PolicyOp::kRotate,    PolicyOp::kBrightness, PolicyOp::kColor,
    PolicyOp::kContrast,     PolicyOp::kSharpness, PolicyOp::kPosterize,  PolicyOp::kSolarize,
    PolicyOp::kAutoContrast, PolicyOp::kEqualize,
};

[[noreturn]] void refuse(std::string_view text, const std::string& reason) {
  throw Error(
      ErrorKind::kConfig, strf("augment.policy %s: %s", quoted(text).c_str(), reason.c_str()),
      "rand-m9-mstd0.5-inc1 (also n, p, mmax), torchvision-m9-n2, original, v0, cifar10, 3a, or nothing");
}

struct Section {
  std::string_view key;
  double value;
};

// Parses "mstd0.5" to {"mstd", 0.5}.
Section parse_section(std::string_view text, std::string_view section) {
  const size_t digits = section.find_first_of("0123456789");
  const std::string_view number = digits == section.npos ? "" : section.substr(digits);
  Section result{section.substr(0, std::min(digits, section.size())), 0};
  const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), result.value);
  if (fault != std::errc() || end != number.data() + number.size())
    refuse(text, strf("%s is not a letter code and a number", quoted(section).c_str()));
  return result;
}

double in_range(std::string_view text, const Section& section, double low, double high, bool whole) {
  const bool fits = section.value >= low && section.value <= high;
  if (!fits || (whole && section.value != static_cast<double>(static_cast<int64_t>(section.value))))
    refuse(text, strf("%s is %g, expected %s%g..%g", std::string(section.key).c_str(), section.value,
                      whole ? "a whole number in " : "", low, high));
  return section.value;
}

void apply_section(std::string_view text, const Section& section, bool most_given, Policy& policy) {
  const bool rand = policy.kind == Policy::Kind::kRand,
             timm = rand && policy.scale != LevelScale::kThirtySteps;
  if (section.key == "mstd")
    policy.magnitude_deviation = in_range(text, section, 0, 1e6, false);
  else if (rand && section.key == "m")
    policy.magnitude = in_range(text, section, 0, most_given ? 100 : policy.magnitude_most, false);
  else if (timm && section.key == "mmax")
    policy.magnitude_most = in_range(text, section, 1, 100, false);
  else if (rand && section.key == "n")
    policy.layers = static_cast<int64_t>(in_range(text, section, 1, 32, true));
  else if (rand && section.key == "p")
    policy.probability = in_range(text, section, 0, 1, false);
  else if (timm && section.key == "inc")
    policy.scale = in_range(text, section, 0, 1, true) == 1 ? LevelScale::kIncreasing : LevelScale::kPlain;
  else
    refuse(text, strf("%s is not known here", quoted(section.key).c_str()));
}

Policy named_policy(std::string_view text, std::string_view name) {
  Policy policy;
  if (name == "rand" || name == "torchvision") {
    policy.kind = Policy::Kind::kRand;
    policy.ops = kRandOps;
    if (name == "rand") return policy;
    policy.ops = kTorchvisionOps;
    policy.scale = LevelScale::kThirtySteps;
    policy.magnitude = 9;
    policy.magnitude_most = 30;
    policy.probability = 1;
    return policy;
  }
  for (const PolicyTable& table : policy_tables())
    if (name == table.name) {
      policy.kind = Policy::Kind::kTable;
      policy.scale = table.scale;
      policy.table = &table;
      return policy;
    }
  refuse(text, strf("no policy is called %s", quoted(name).c_str()));
}

double drawn_level(const Policy& policy, double level, Draw& draw) {
  if (policy.magnitude_deviation > 100)
    level = draw.uniform(0, level);
  else if (policy.magnitude_deviation > 0)
    level += policy.magnitude_deviation * draw.normal();
  return std::clamp(level, 0.0, policy.magnitude_most);
}

void draw_step(const Policy& policy, const PolicyStep& step, const PolicyLook& look, Size image, Draw& draw,
               std::vector<PolicyDraw>& drawn) {
  if (!draw.chance(step.probability)) return;
  const double level = drawn_level(policy, step.level, draw);
  const double argument = op_argument(step.op, policy.scale, level, image, draw);
  Interpolation interpolation = look.sampling.interpolation;
  if (look.random_interpolation)
    interpolation = draw.chance(0.5) ? Interpolation::kBilinear : Interpolation::kBicubic;
  drawn.push_back({step.op, argument, interpolation});
}

}  // namespace

Policy parse_policy(std::string_view text) {
  if (text.empty() || text == "none") return {};
  const std::vector<std::string_view> parts = split(text, '-');
  Policy policy = named_policy(text, parts[0]);
  const bool most_given = text.find("-mmax") != text.npos;
  for (size_t i = 1; i < parts.size(); ++i)
    apply_section(text, parse_section(text, parts[i]), most_given, policy);
  return policy;
}

std::vector<PolicyDraw> draw_policy(const Policy& policy, const PolicyLook& look, Size image, Draw& draw) {
  std::vector<PolicyDraw> drawn;
  if (policy.kind == Policy::Kind::kRand) {
    for (int64_t i = 0; i < policy.layers; ++i) {
      const PolicyOp op = policy.ops[static_cast<size_t>(draw.integer(0, std::ssize(policy.ops) - 1))];
      draw_step(policy, {op, policy.probability, policy.magnitude}, look, image, draw, drawn);
    }
  } else if (policy.kind == Policy::Kind::kTable) {
    const PolicyTable& table = *policy.table;
    const auto count = static_cast<int64_t>(table.entries.size() / table.steps);
    const auto chosen = static_cast<size_t>(draw.integer(0, count - 1));
    for (const PolicyStep& step : table.entries.subspan(chosen * table.steps, table.steps))
      draw_step(policy, step, look, image, draw, drawn);
  }
  return drawn;
}

void apply_policy(const Policy& policy, const PolicyLook& look, Draw& draw, Image& image) {
  for (const PolicyDraw& one : draw_policy(policy, look, {image.height, image.width}, draw))
    apply_op(one.op, one.argument, {one.interpolation, look.sampling.fill}, image);
}

}  // namespace vitrail
