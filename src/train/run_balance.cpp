#include "train/run_balance.h"

#include "telemetry/format.h"
#include "telemetry/table.h"
#include "train/find_shares.h"

namespace vitrail {

bool RunBalance::to_find() const {
  return asked() && setup_.step.distribution.mesh.size(Axis::kData) > 1 &&
         parse_balance(setup_.config.mesh.balance).measured;
}

// Returns what the first rank reads and tells to all.
std::vector<int64_t> RunBalance::from_checkpoint(CheckpointKeeper& keeper, const std::string& ranks) const {
  std::vector<int64_t> shares;
  if (team_.leads()) shares = keeper.measured_shares(ranks);
  const auto count = static_cast<size_t>(team_.from_leader(static_cast<double>(shares.size())));
  shares.resize(count);
  for (int64_t& share : shares) share = static_cast<int64_t>(team_.from_leader(static_cast<double>(share)));
  return shares;
}

std::string RunBalance::settle(CheckpointKeeper& keeper, bool resumed, const Backend& backend,
                               RankContext& rank) {
  const std::string ranks = measured_ranks(setup_, rank.device, team_);
  const std::vector<int64_t> known = resumed ? from_checkpoint(keeper, ranks) : std::vector<int64_t>();
  setup_.measured_on = ranks;
  if (!known.empty()) {
    const Distribution& how = setup_.step.distribution;
    require_shares(known, setup_.step.micro_batch, how.mesh.size(Axis::kData), how.batch_unit);
    take_shares(setup_, known);
    return "mesh.balance=auto: " + shares_text(known) + ", as the checkpoint has them from the same ranks";
  }
  const FoundShares found = find_shares(setup_, backend, rank, team_);
  expected_s_ = found.seconds;
  std::string text = strf("mesh.balance=auto: %s of %lld images, by updates of ",
                          shares_text(found.shares).c_str(), static_cast<long long>(setup_.step.micro_batch));
  for (size_t p = 0; p < found.seconds.size(); ++p)
    text += strf("%s%.0f", p == 0 ? "" : ", ", 1e3 * found.seconds[p]);
  text += " ms each";
  if (setup_.step.distribution.batch_unit > 1)
    text += strf("; the last group is that of dp=%zu", found.shares.size() - 1);
  return text;
}

void RunBalance::share_memory(size_t own_bytes) {
  const auto mine = static_cast<double>(own_bytes);
  memory_ = team_.gather({&mine, 1});
}

std::string RunBalance::table(const std::vector<double>& seconds) const {
  Table table({{"rank", Align::kRight},
               {"share", Align::kRight},
               {"img/s of its own", Align::kRight},
               {"memory", Align::kRight},
               {"predicted", Align::kRight},
               {"measured", Align::kRight}});
  const std::vector<int64_t> shares = setup_.shares();
  const auto ms = [](double s) { return strf("%.1f ms", 1e3 * s); };
  for (size_t r = 0; r < seconds.size(); ++r) {
    const Mesh mesh = setup_.step.distribution.mesh.of_rank(static_cast<int>(r));
    const auto place = static_cast<size_t>(mesh.coordinate(Axis::kData));
    const auto images = static_cast<double>(shares[place] * setup_.config.train.accumulation);
    table.row({std::to_string(r), format_integer(shares[place]), strf("%.1f", images / seconds[r]),
               r < memory_.size() ? format_bytes(static_cast<size_t>(memory_[r])) : "",
               place < expected_s_.size() ? ms(expected_s_[place]) : "", ms(seconds[r])});
  }
  std::string text = table.text(2);
  if (text.ends_with('\n')) text.pop_back();
  return "ranks and their own work in an update\n" + text;
}

}  // namespace vitrail
