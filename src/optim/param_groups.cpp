#include "optim/param_groups.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace vitrail {

namespace {

using Patterns = std::vector<std::string>;

const Patterns kLinearProbe = {"*", "!head.*", "!head_dist.*"};
constexpr std::string_view kStem[] = {"cls_token", "dist_token", "reg_token", "pos_embed", "patch_embed."};
// timm treats a norm before the blocks like the last norm.
constexpr std::string_view kBlocks = "blocks.", kLastNorm = "norm";

bool negated(std::string_view pattern) {
  return pattern.starts_with('!');
}
std::string_view bare(std::string_view pattern) {
  return negated(pattern) ? pattern.substr(1) : pattern;
}

// Returns whether the last pattern that matches is a plain one, without negation.
bool selected(const std::string& name, const Patterns& patterns) {
  for (auto p = patterns.rbegin(); p != patterns.rend(); ++p)
    if (matches_pattern(name, bare(*p))) return !negated(*p);
  return false;
}

// Returns the block index of a parameter, or -1.
int64_t block_of(std::string_view name) {
  if (!name.starts_with(kBlocks)) return -1;
  int64_t block = -1;
  std::from_chars(name.data() + kBlocks.size(), name.data() + name.size(), block);
  return block;
}

// Refuses unused patterns, because a mistyped one would silently train what was to stay frozen, or let decay
// what was not to.
void require_used(const char* key, const Patterns& patterns, const std::vector<NamedParam>& params) {
  for (const std::string& pattern : patterns)
    VT_REQUIRE(std::any_of(params.begin(), params.end(),
                           [&](const NamedParam& p) { return matches_pattern(p.name, bare(pattern)); }),
               ErrorKind::kConfig, "%s has %s, which fits none of the %zu parameters (such as %s)", key,
               quoted(pattern).c_str(), params.size(), params.empty() ? "" : params.front().name.c_str());
}

// Returns the patterns that are not of the default, which names what not every model has.
Patterns beyond_default(Patterns no_decay) {
  const Patterns usual = ParamGroupConfig().no_decay;
  std::erase_if(no_decay,
                [&](const std::string& one) { return std::ranges::find(usual, one) != usual.end(); });
  return no_decay;
}

void require_names(const char* key, const Patterns& patterns) {
  for (const std::string& pattern : patterns)
    VT_REQUIRE(!bare(pattern).empty(), ErrorKind::kConfig,
               "%s has the empty pattern %s; expected a name, or !* for none", key, quoted(pattern).c_str());
}

bool is_vector(const NamedParam& param) {
  return param.desc.shape.rank() <= 1 || param.name.ends_with(".bias");
}

// Returns whether a pattern of everything comes last: then nothing trains again, whatever names a model has.
bool freezes_all(const Patterns& freeze) {
  bool all = false;
  for (const std::string& pattern : freeze)
    all = negated(pattern) ? false : all || pattern.find_first_not_of('*') == pattern.npos;
  return all;
}

[[noreturn]] void refuse_frozen(const std::string& what) {
  throw Error(
      ErrorKind::kConfig, what + ": nothing is left to train",
      "a pattern behind it that trains again, as !head.*, or params.linear_probe=true instead: the heads "
      "alone");
}

}  // namespace

void validate(const ParamGroupConfig& c) {
  VT_REQUIRE(c.layer_decay > 0 && c.layer_decay <= 1, ErrorKind::kConfig,
             "params.layer_decay is %g; expected a number above 0, at most 1", c.layer_decay);
  VT_REQUIRE(!c.linear_probe || c.freeze.empty(), ErrorKind::kConfig,
             "params.linear_probe is true and params.freeze has %zu patterns; expected one of the two",
             c.freeze.size());
  require_names("params.freeze", c.freeze);
  require_names("params.no_decay", c.no_decay);
  if (freezes_all(c.freeze)) refuse_frozen("params.freeze leaves every parameter as it is");
}

// Matches greedily with one point to backtrack to: the last `*` seen takes one character more whenever the
// rest fails.
bool matches_pattern(std::string_view name, std::string_view pattern) {
  size_t n = 0, p = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

int64_t layer_of(std::string_view name, int64_t depth) {
  if (std::any_of(std::begin(kStem), std::end(kStem), [&](auto stem) { return name.starts_with(stem); }))
    return 0;
  if (const int64_t block = block_of(name); block >= 0) return block + 1;
  return name.starts_with(kLastNorm) ? depth : depth + 1;
}

std::vector<TrainedParam> group_params(const std::vector<NamedParam>& params, const ParamGroupConfig& config,
                                       double weight_decay) {
  validate(config);
  const Patterns& freeze = config.linear_probe ? kLinearProbe : config.freeze;
  if (!config.linear_probe) require_used("params.freeze", freeze, params);
  require_used("params.no_decay", beyond_default(config.no_decay), params);
  int64_t depth = 0;
  for (const NamedParam& p : params) depth = std::max(depth, block_of(p.name) + 1);
  std::vector<TrainedParam> trained;
  for (const NamedParam& p : params) {
    if (selected(p.name, freeze)) continue;
    const bool decays = (config.decay_vectors || !is_vector(p)) && !selected(p.name, config.no_decay);
    const auto above = static_cast<double>(depth + 1 - layer_of(p.name, depth));
    trained.push_back({p.name, p.desc, std::pow(config.layer_decay, above), decays ? weight_decay : 0});
  }
  if (trained.empty()) refuse_frozen(strf("params.freeze fits all %zu parameters", params.size()));
  return trained;
}

}  // namespace vitrail
