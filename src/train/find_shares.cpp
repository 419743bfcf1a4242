#include "train/find_shares.h"

#include <algorithm>
#include <map>

#include "base/values.h"
#include "train/micro_feed.h"
#include "train/step_times.h"
#include "train/teacher.h"

namespace vitrail {

namespace {

constexpr double kByChance = 1.05;  // times of a few updates differ so much

// Weights that no kernel is slow or undefined for: what is measured does not depend on them.
void fill_plainly(const std::string&, const Shape&, std::span<float> target) {
  for (size_t i = 0; i < target.size(); ++i) target[i] = 0.02f * (static_cast<float>(i % 7) - 3);
}

class Measuring {
 public:
  Measuring(RunSetup& setup, const Backend& backend, RankContext& rank, const Team& team)
      : setup_(setup),
        backend_(backend),
        rank_(rank),
        team_(team),
        mesh_(setup.step.distribution.mesh),
        timed_(static_cast<size_t>(mesh_.size(Axis::kData))),
        most_(timed_.size(), INT64_MAX) {}

  FoundShares run() {
    FoundShares best;
    std::map<std::vector<int64_t>, std::vector<double>> tried;
    std::vector<int64_t> shares = fitting(setup_.shares());
    while (tried.size() < kMeasuredRounds && !tried.contains(shares)) {
      take_shares(setup_, shares);
      const std::vector<double> seconds = by_place(time_update());
      for (size_t p = 0; p < seconds.size(); ++p) timed_[p].emplace_back(shares[p], seconds[p]);
      tried[shares] = seconds;
      if (best.shares.empty() || slowest(seconds) < slowest(best.seconds)) best = {shares, seconds};
      shares = fitting(decided());
    }
    // What the times lead back to is surer than one round that was fast by chance.
    if (const auto known = tried.find(shares);
        known != tried.end() && slowest(known->second) < kByChance * slowest(best.seconds))
      best = {known->first, known->second};
    take_shares(setup_, best.shares);
    return best;
  }

 private:
  static double slowest(const std::vector<double>& seconds) {
    return *std::max_element(seconds.begin(), seconds.end());
  }

  // Seconds of an update at the present shares, on this rank, without waiting for others or for data.
  double time_update() {
    const StepPlan plan = plan_step(setup_.step, backend_, rank_.device);
    TrainStep step(plan, rank_);
    step.start(fill_plainly);
    bring_images(setup_, step);
    const std::unique_ptr<Teacher> teacher = make_teacher();
    if (teacher) teacher->start(rank_);
    LoaderSettings loader = setup_.loader_settings(Purpose::kTrain);
    loader.memory = rank_.hardware->host_memory();
    loader.limits_bad = false;
    MicroFeed feed(make_train_loader(*setup_.data.train, loader), step, teacher.get(), setup_.config.train);
    feed.seek(0);
    StepTimes clock(1);
    std::vector<double> seconds;
    for (int64_t update = 0; update < kWarmUpdates + kMeasuredUpdates; ++update) {
      team_.wait();
      feed.take_wait_seconds();
      step.take_collective_times();
      clock.start();
      feed.run_update(update);
      step.run_update(0);
      const double waited = feed.take_wait_seconds();
      seconds.push_back(StepTimes::compute_of(clock.end_update(step.take_collective_times(), waited)));
    }
    std::nth_element(seconds.begin() + kWarmUpdates, seconds.begin() + kWarmUpdates + kMeasuredUpdates / 2,
                     seconds.end());
    return seconds[kWarmUpdates + kMeasuredUpdates / 2];
  }

  std::unique_ptr<Teacher> make_teacher() const {
    if (setup_.config.distill.kind == DistillKind::kNone) return nullptr;
    return std::make_unique<Teacher>(setup_.config.distill, setup_.model->card, setup_.train_share.rows,
                                     setup_.step.precision, backend_, rank_.device);
  }

  std::vector<double> by_place(double mine) const {
    return largest_by_place(mesh_, team_.gather({&mine, 1}));
  }

  // The first rank decides, so that no rank's arithmetic can differ.
  std::vector<int64_t> decided() const {
    std::vector<PlaceSpeed> places;
    for (size_t p = 0; p < timed_.size(); ++p) {
      places.push_back(timed_[p].empty() ? PlaceSpeed{} : fitted_speed(timed_[p]));
      places.back().most = most_[p];
    }
    std::vector<int64_t> shares =
        shares_by_speed(setup_.step.micro_batch, setup_.step.distribution.batch_unit, places);
    for (int64_t& share : shares) share = static_cast<int64_t>(team_.from_leader(static_cast<double>(share)));
    return shares;
  }

  // Returns the shares, or others where a rank's memory does not hold its own.
  std::vector<int64_t> fitting(const std::vector<int64_t>& shares) {
    const auto place = static_cast<size_t>(mesh_.coordinate(Axis::kData));
    const size_t room = rank_.available().bytes;
    const bool fits = room == 0 || needed(shares[place]) <= room;
    if (!team_.any(!fits)) return shares;
    const int64_t unit = setup_.step.distribution.batch_unit, all = setup_.step.micro_batch;
    double most = static_cast<double>(all);
    if (!fits) {
      int64_t units = shares[place] / unit;
      while (units > 1 && needed(units * unit) > room) units -= std::max<int64_t>(1, units / 8);
      most = static_cast<double>(units * unit);
    }
    const std::vector<double> negated = by_place(static_cast<double>(all) - most);
    for (size_t p = 0; p < most_.size(); ++p)
      most_[p] = std::min(most_[p], all - static_cast<int64_t>(negated[p]));
    return decided();
  }

  // Bytes of a run in which this place takes so many images.
  size_t needed(int64_t images) const {
    StepConfig config = setup_.step;
    const auto place = static_cast<size_t>(mesh_.coordinate(Axis::kData));
    std::vector<int64_t> cuts(most_.size() + 1, config.micro_batch);
    std::fill(cuts.begin(), cuts.begin() + static_cast<std::ptrdiff_t>(place) + 1, 0);
    cuts[place + 1] = place + 1 == most_.size() ? config.micro_batch : images;
    if (place + 1 == most_.size()) cuts[place] = config.micro_batch - images;
    config.distribution.cuts = {{Axis::kData, 'B', cuts}};
    const size_t bytes = plan_step(config, backend_, rank_.device).peak_bytes();
    if (!rank_.hardware->shares_host_memory()) return bytes;
    return bytes + setup_.loader_bytes(images) + setup_.decoding_bytes;
  }

  RunSetup& setup_;
  const Backend& backend_;
  RankContext& rank_;
  const Team& team_;
  Mesh mesh_;
  std::vector<std::vector<std::pair<int64_t, double>>> timed_;  // share and seconds, by place
  std::vector<int64_t> most_;                                   // images that fit, by place
};

}  // namespace

FoundShares find_shares(RunSetup& setup, const Backend& backend, RankContext& rank, const Team& team) {
  return Measuring(setup, backend, rank, team).run();
}

std::string measured_ranks(const RunSetup& setup, const DeviceInfo& device, const Team& team) {
  const std::vector<std::string> all =
      team.texts_of_all(strf("%s, %d threads", device.name.c_str(), device.threads));
  return strf("%s; %lld images in groups of %lld; ", to_string(setup.step.distribution.mesh).c_str(),
              static_cast<long long>(setup.step.micro_batch),
              static_cast<long long>(setup.step.distribution.batch_unit)) +
         join(all, "; ");
}

// A line through the newest point; its slope comes from the share that differs most from it, and is kept
// between half of what the point alone says and all of it: times of a few updates are rough.
PlaceSpeed fitted_speed(const std::vector<std::pair<int64_t, double>>& timed) {
  const auto [share, seconds] = timed.back();
  const double alone = seconds / static_cast<double>(share);
  double slope = alone;
  int64_t furthest = 0;
  for (const auto& [other, took] : timed) {
    const int64_t apart = std::abs(other - share);
    if (apart <= furthest || 4 * apart < share) continue;  // too near to tell a slope from noise
    furthest = apart;
    slope = (seconds - took) / static_cast<double>(share - other);
  }
  slope = std::clamp(slope, alone / 2, alone);
  return {.fixed_s = seconds - slope * static_cast<double>(share), .per_image_s = slope};
}

}  // namespace vitrail
