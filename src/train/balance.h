// Decides how images of a micro-batch are shared out to dp ranks of unequal speed: by hand or measured times.
// Shares are data, cut in groups of images that are mixed together; knows no clock and no communicator.
#pragma once

#include <string>
#include <vector>

#include "passes/distribute.h"
#include "tensor/mesh.h"

namespace vitrail {

struct MeshConfig;
struct TrainConfig;

// mesh.balance: evenly where nothing is said, shares by hand, or shares that the run finds itself.
struct Balance {
  bool measured = false;
  std::vector<int64_t> shares = {};  // by place along dp; empty: not by hand

  bool even() const { return !measured && shares.empty(); }
  std::vector<std::string> texts() const;  // as parse_balance() reads them
};
// Each text is one share, or all there is to say ("auto", "24,24,16", "[24,24,16]"), which replaces what
// stood before it. Throws Error(kConfig) for any other.
Balance parse_balance(const std::vector<std::string>& texts);

// Throws Error(kConfig), with the nearest shares that would do, unless there is one for each of `ranks`, at
// least a group and in whole groups of `unit`, and they make up the micro-batch.
void require_shares(const std::vector<int64_t>& shares, int64_t images, int64_t ranks, int64_t unit);
std::vector<int64_t> nearest_shares(const std::vector<int64_t>& shares, int64_t images, int64_t ranks,
                                    int64_t unit);
std::string shares_text(const std::vector<int64_t>& shares);  // "[24,24,16]"

// Says how long a place along dp takes for an update, and how many images it can hold.
struct PlaceSpeed {
  double fixed_s = 0, per_image_s = 1;
  int64_t most = INT64_MAX;  // images of a micro-batch that fit its memory
};
// Shares of whole groups, at least one each, such that the slowest place takes as little time as can be; the
// last place owns the last group, which may be shorter. Memory gives way where not all images would fit.
std::vector<int64_t> shares_by_speed(int64_t images, int64_t unit, const std::vector<PlaceSpeed>& places);

// The largest of the ranks' numbers along tp, sp and pp, for each place along dp.
std::vector<double> largest_by_place(const Mesh& mesh, const std::vector<double>& of_ranks);

// The tables that cut micro-batches by these shares, and batches of an evaluation in the same proportion.
std::vector<CutTable> cuts_by_shares(const std::vector<int64_t>& shares, int64_t eval_batch);
std::vector<int64_t> shares_of_cuts(const std::vector<int64_t>& cuts);

// The ranks of `left` that a mesh of this config can use: a multiple of tp x sp x pp.
int usable_ranks(const MeshConfig& mesh, int left);
// Settings, "key=value" each, with which a run of `was` ranks goes on with `now`: the same images in every
// update, in the same groups, by more accumulation where ranks would have to compute more at once. Throws
// Error(kConfig) when no accumulation allows it.
std::vector<std::string> settings_for_fewer(const TrainConfig& given, int was, int now);

}  // namespace vitrail
