// Decides how a run goes on with fewer ranks.
#include <algorithm>

#include "base/error.h"
#include "tensor/layout.h"
#include "train/balance.h"
#include "train/train_config.h"

namespace vitrail {

namespace {

int64_t largest_share(int64_t images, int64_t ranks, int64_t unit) {
  const std::vector<int64_t> shares = shares_of_cuts(cut_points(images, static_cast<int>(ranks), unit));
  return *std::max_element(shares.begin(), shares.end());
}

// The least accumulation with which no rank computes more images at once than `most`; where none reaches
// that, the one that comes nearest. 0: none leaves a group for every rank.
int64_t fitting_accumulation(const RunConfig& run, int64_t ranks, int64_t unit, int64_t most) {
  int64_t nearest = 0;
  for (int64_t n = run.accumulation; n <= run.batch / (ranks * unit); ++n) {
    const int64_t images = run.batch / n;
    // Micro-batches begin where groups do, so that the same images are mixed.
    if (run.batch % n != 0 || (n != run.accumulation && images % unit != 0)) continue;
    nearest = n;
    if (largest_share(images, ranks, unit) <= most) break;
  }
  return nearest;
}

std::string setting(const char* key, int64_t value) {
  return strf("%s=%lld", key, static_cast<long long>(value));
}

}  // namespace

int usable_ranks(const MeshConfig& mesh, int left) {
  const auto model = static_cast<int>(mesh.tp * mesh.sp * mesh.pp);
  return left / model * model;
}

std::vector<std::string> settings_for_fewer(const TrainConfig& given, int was, int now) {
  const TrainConfig whole = resolved(given, was);
  const RunConfig& run = whole.train;
  const int64_t dp = now / (whole.mesh.tp * whole.mesh.sp * whole.mesh.pp);
  const int64_t unit = whole.augment.mixes() ? whole.augment.mix_group : 1;
  const int64_t before = largest_share(run.batch / run.accumulation, whole.mesh.dp, unit);
  const int64_t accumulation = fitting_accumulation(run, dp, unit, before);
  VT_REQUIRE(accumulation > 0, ErrorKind::kConfig,
             "%d ranks cannot go on with updates of %lld images in groups of %lld: not a group for each", now,
             static_cast<long long>(run.batch), static_cast<long long>(unit));
  std::vector<std::string> settings = {setting("mesh.dp", dp), setting("train.batch", run.batch),
                                       setting("train.micro_batch", 0),
                                       setting("train.accumulation", accumulation)};
  // Shares by hand were those of ranks that are gone.
  if (!whole.mesh.balance.empty()) settings.emplace_back("mesh.balance=auto");
  return settings;
}

}  // namespace vitrail
