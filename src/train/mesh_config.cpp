#include "train/mesh_config.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/fields.h"
#include "base/text.h"
#include "base/values.h"
#include "train/balance.h"

namespace vitrail {

namespace {

constexpr int64_t kMostRanks = 1 << 22;  // of a mesh: as many devices as a simulated cluster may have
constexpr int64_t kMostShares = 1 << 16;

// A dp of 0 stands for what the others leave, and has no number to show.
std::string product_text(const MeshConfig& c) {
  std::string text = c.dp > 0 ? strf("mesh.dp %lld x ", static_cast<long long>(c.dp)) : "";
  text += strf("mesh.tp %lld x mesh.sp %lld", static_cast<long long>(c.tp), static_cast<long long>(c.sp));
  return c.pp > 1 ? text + strf(" x mesh.pp %lld", static_cast<long long>(c.pp)) : text;
}

// The number of ranks is an int everywhere; each factor was checked before, so no product here overflows.
void require_countable(const MeshConfig& c) {
  int64_t ranks = 1;
  for (const int64_t size : {std::max<int64_t>(1, c.dp), c.tp, c.sp, c.pp}) {
    ranks *= size;
    VT_REQUIRE(ranks <= kMostRanks, ErrorKind::kConfig, "%s are more than %lld ranks",
               product_text(c).c_str(), static_cast<long long>(kMostRanks));
  }
}

std::string sizes_text(int64_t dp, int64_t tp, int64_t sp, int64_t pp) {
  return strf("mesh.dp=%lld mesh.tp=%lld mesh.sp=%lld", static_cast<long long>(dp),
              static_cast<long long>(tp), static_cast<long long>(sp)) +
         (pp > 1 ? strf(" mesh.pp=%lld", static_cast<long long>(pp)) : std::string());
}

// The meshes of `world` ranks that differ least from what was asked for and cut the heads evenly.
std::string nearest_meshes(const MeshConfig& c, int64_t world, int64_t heads) {
  std::vector<std::pair<int64_t, std::string>> meshes;
  const auto add = [&](int64_t tp, int64_t sp, int64_t pp) {
    const int64_t model = tp * sp * pp;
    if (model > world || world % model != 0 || (c.pp == 1 && pp > 1)) return;
    if (heads % (tp * sp) != 0) return;
    const int64_t dp = world / model;
    const int64_t away = 4 * (std::abs(tp - c.tp) + std::abs(sp - c.sp) + std::abs(pp - c.pp)) +
                         (c.dp > 0 ? std::abs(dp - c.dp) : 0);
    meshes.emplace_back(away, sizes_text(dp, tp, sp, pp));
  };
  for (int64_t tp = 1; tp <= world; ++tp)
    for (int64_t sp = 1; world % tp == 0 && tp * sp <= world; ++sp)
      for (int64_t pp = 1; world % (tp * sp) == 0 && tp * sp * pp <= world; ++pp) add(tp, sp, pp);
  std::sort(meshes.begin(), meshes.end());
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(meshes.size(), 3); ++i)
    text += (i ? ", or " : "") + meshes[i].second;
  return text;
}

}  // namespace

void validate(const MeshConfig& c) {
  require_in_range("mesh.dp", c.dp, 0, kMostRanks);
  require_in_range("mesh.tp", c.tp, 1, kMostShares);
  require_in_range("mesh.sp", c.sp, 1, kMostShares);
  parse_balance(c.balance);
  require_in_range("mesh.pp", c.pp, 1, kMostShares);
  require_countable(c);
  require_in_range("mesh.virtual_stages", c.virtual_stages, 1, kMostShares);
  VT_REQUIRE(c.zero >= 0 && c.zero <= 3, ErrorKind::kConfig, "mesh.zero is %lld; expected 0, 1, 2 or 3",
             static_cast<long long>(c.zero));
  VT_REQUIRE(c.bucket_mb >= 0 && c.bucket_mb <= 1 << 20, ErrorKind::kConfig,
             "mesh.bucket_mb is %g; expected 0 (a quarter of the gradients, 25 at most) or more",
             c.bucket_mb);
  if (c.offload == Offload::kParameters && c.zero != 3)
    throw Error(
        ErrorKind::kConfig,
        strf("mesh.offload is parameters with mesh.zero %lld: they come to the device block by block, as "
             "ZeRO 3 brings them",
             static_cast<long long>(c.zero)),
        "mesh.zero=3, also on one rank, or mesh.offload=optimizer");
  if (c.offload != Offload::kNone && c.pp != 1)
    throw Error(
        ErrorKind::kConfig,
        strf("mesh.offload is %s with mesh.pp %lld: a pipeline runs on CPUs, whose memory is the host's",
             enum_name(c.offload), static_cast<long long>(c.pp)),
        "mesh.offload=none");
  VT_REQUIRE(c.verify_every >= 0, ErrorKind::kConfig,
             "mesh.verify_every is %lld; expected 0 (never) or a number of updates",
             static_cast<long long>(c.verify_every));
}

MeshConfig resolved(MeshConfig c, int world, const std::function<int64_t()>& heads) {
  validate(c);
  const int64_t model = c.tp * c.sp * c.pp;
  const int64_t dp = c.dp > 0 ? c.dp : world / model;
  if (dp * model != world || dp == 0)
    throw Error(ErrorKind::kConfig,
                product_text(c) +
                    strf(c.dp > 0 ? " does not make the %d ranks of this run"
                                  : " does not divide the %d ranks of this run (mesh.dp, not given, takes "
                                    "what is left)",
                         world),
                nearest_meshes(c, world, heads ? heads() : 0));
  c.dp = dp;
  return c;
}

Mesh mesh_of(const MeshConfig& c, int rank) {
  return {{static_cast<int>(c.dp), static_cast<int>(c.tp), static_cast<int>(c.sp), static_cast<int>(c.pp)},
          rank};
}

std::string mesh_text(const MeshConfig& config) {
  const std::string axes = to_string(mesh_of(config, 0));
  return (axes.empty() ? "dp=1" : axes) + (config.tokens_on_tp ? " tokens_on_tp" : "");
}

std::string needless_text(const MeshConfig& c) {
  std::vector<std::string> needless;
  if (c.verify_every > 0 && c.dp * c.tp * c.sp * c.pp == 1)
    needless.emplace_back("mesh.verify_every compares several ranks");
  if (c.tokens_on_tp && c.tp == 1) needless.emplace_back("mesh.tokens_on_tp needs mesh.tp above 1");
  if (c.accumulate == KeptSums::kWhole && (c.zero < 2 || c.dp == 1))
    needless.emplace_back("mesh.accumulate=whole needs mesh.zero 2 or 3 and mesh.dp above 1");
  return needless.empty() ? "" : "no effect here: " + join(needless, ", ");
}

// Ranks that make the whole update each wait for the memory that they share. Whoever compares replicas keeps
// them: pieces have none.
std::string update_advice(const MeshConfig& c, int sharing) {
  constexpr int kMany = 4;
  if (c.dp < kMany || sharing < kMany || c.zero > 0 || c.verify_every > 0 || c.offload != Offload::kNone)
    return {};
  return strf(
      "each of %lld ranks makes the whole update; mesh.zero=1 shares it out, which is faster where they "
      "share "
      "a host's memory",
      static_cast<long long>(c.dp));
}

namespace {

// Returns "mesh.stages=blocks.4,blocks.8" for three stages of twelve blocks.
std::string stages_example(int blocks, int stages) {
  std::string text;
  for (int i = 1; i < stages; ++i)
    text += strf("%sblocks.%d", i > 1 ? "," : "mesh.stages=", static_cast<int>(int64_t{i} * blocks / stages));
  return text;
}

// "blocks.3" is 3.
int block_named(const std::string& name, const std::string& example) {
  constexpr std::string_view kPrefix = "blocks.";
  const auto number =
      name.starts_with(kPrefix) ? parse_integer(name.substr(kPrefix.size())) : std::optional<int64_t>();
  if (!number || *number < 0 || *number > 1 << 16)
    throw Error(
        ErrorKind::kConfig,
        strf("mesh.stages names %s; expected the block at which a stage begins", quoted(name).c_str()),
        example + ": a block for each stage behind the first");
  return static_cast<int>(*number);
}

}  // namespace

StageOptions stages_of(const MeshConfig& c, int64_t accumulation, int64_t blocks) {
  StageOptions stages{c.schedule, static_cast<int>(c.virtual_stages), accumulation, {}};
  if (c.pp == 1) {
    VT_REQUIRE(c.stages.empty() && c.virtual_stages == 1, ErrorKind::kConfig,
               "mesh.stages and mesh.virtual_stages are of a pipeline, and mesh.pp is 1");
    return StageOptions{};
  }
  const auto depth = static_cast<int>(blocks), chunks = static_cast<int>(c.pp * c.virtual_stages);
  require_cuts({}, depth, chunks);
  for (const std::string& names : c.stages)
    for (const std::string_view name : split(names, ','))
      stages.begins.push_back(block_named(std::string(name), stages_example(depth, chunks)));
  require_cuts(stages.begins, depth, chunks);
  VT_REQUIRE(
      c.zero <= 1, ErrorKind::kConfig,
      "mesh.zero is %lld with mesh.pp %lld: a pipeline keeps its gradients and parameters whole until the "
      "update; mesh.zero=1 shares out the optimizer state",
      static_cast<long long>(c.zero), static_cast<long long>(c.pp));
  pipeline_turns(stages.shape(mesh_of(c, 0)));  // throws where the schedule does not fit
  return stages;
}

BatchShare share_of(int64_t global, const Mesh& mesh, int64_t unit, const char* what) {
  const int ranks = mesh.size(Axis::kData);
  const int64_t least = ranks * unit;
  const std::vector<int64_t> cuts = cut_points(global, ranks, unit);
  for (size_t r = 0; r + 1 < cuts.size(); ++r)
    if (cuts[r] == cuts[r + 1])
      throw Error(
          ErrorKind::kConfig,
          strf("%s of %lld images, in groups of %lld that are mixed together, leaves nothing for rank %zu "
               "of mesh.dp %d",
               what, static_cast<long long>(global), static_cast<long long>(unit), r, ranks),
          strf("a batch of at least %lld, or a smaller mesh.dp", static_cast<long long>(least)));
  return share_of(cuts, mesh);
}

BatchShare share_of(const std::vector<int64_t>& cuts, const Mesh& mesh) {
  const auto mine = static_cast<size_t>(mesh.coordinate(Axis::kData));
  return {cuts[mine], cuts[mine + 1] - cuts[mine], cuts.back()};
}

void take_mesh(const std::string& text, MeshConfig& mesh) {
  std::set<std::string> named;
  for (const std::string_view piece : split(text, ',')) {
    const std::string part(piece);
    const size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    const auto number =
        equals == std::string::npos ? std::optional<int64_t>(1) : parse_integer(part.substr(equals + 1));
    int64_t* field = key == "dp"     ? &mesh.dp
                     : key == "tp"   ? &mesh.tp
                     : key == "sp"   ? &mesh.sp
                     : key == "pp"   ? &mesh.pp
                     : key == "zero" ? &mesh.zero
                                     : nullptr;
    if (!named.insert(key).second)
      throw Error(ErrorKind::kUsage, strf("--mesh names %s twice", quoted(key).c_str()),
                  "leave one of them out");
    if (field && number && equals != std::string::npos)
      *field = *number;
    else if (key == "tokens_on_tp" && number)
      mesh.tokens_on_tp = *number != 0;
    else if (key == "bind" && number)
      mesh.bind = *number != 0;
    else
      throw Error(ErrorKind::kUsage, strf("--mesh holds %s", quoted(part).c_str()),
                  "--mesh dp=4,tp=2 with any of dp, tp, sp, pp, zero, tokens_on_tp and bind");
  }
}

}  // namespace vitrail
