#include "passes/flat_groups.h"

#include <algorithm>

#include "base/checked.h"
#include "ops/flat.h"

namespace vitrail {

namespace {

// The room that a member takes in its group.
int64_t room_of(const TensorDesc& desc) {
  return static_cast<int64_t>(round_up(static_cast<uint64_t>(desc.elems()), kBucketStep));
}

}  // namespace

std::vector<size_t> FlatGroup::piece_counts() const {
  std::vector<size_t> counts;
  for (size_t r = 0; r + 1 < cuts.size(); ++r) counts.push_back(static_cast<size_t>(cuts[r + 1] - cuts[r]));
  return counts;
}

ZeroPlan::ZeroPlan(const std::vector<Bucket>& buckets, const std::vector<Bucket>& frozen, const Mesh& mesh,
                   ZeroOptions options)
    : options_(std::move(options)), rank_(mesh.coordinate(Axis::kData)), ranks_(mesh.size(Axis::kData)) {
  for (const LowCopy& copy : options_.copies) copies_[copy.master] = copy;
  if (!active()) return;
  for (size_t i = 0; i < buckets.size(); ++i) add_bucket(buckets[i], i, true);
  trained_groups_ = groups_.size();
  for (size_t i = 0; stage() == 3 && i < frozen.size(); ++i) add_bucket(frozen[i], i, false);
}

void ZeroPlan::add_bucket(const Bucket& bucket, size_t index, bool trained) {
  const std::string number = std::to_string(index), name = (trained ? "parameters/" : "frozen/") + number;
  const std::vector<int64_t> pieces = bucket.pieces(ranks_);
  const auto mine = static_cast<size_t>(rank_);
  FlatGroup plain{.name = name, .dtype = bucket.dtype, .whole = stage() < 3};
  std::map<std::string, FlatGroup> low;  // by the name of the copies' type
  FlatGroup averages{
      .name = "ema/" + number, .dtype = bucket.dtype, .category = Category::kOptimizer, .whole = false};
  for (const Bucket::Member& member : bucket.members) {
    const int64_t elems = member.desc.elems();
    const OwnRange window{std::clamp<int64_t>(pieces[mine] - member.offset, 0, elems),
                          std::clamp<int64_t>(pieces[mine + 1] - member.offset, 0, elems)};
    windows_[member.parameter] = window;
    const auto copy = copies_.find(member.parameter);
    const bool has_copy = copy != copies_.end();
    FlatGroup* group = &plain;
    if (has_copy) {
      const DType type = copy->second.dtype;
      const FlatGroup fresh{.name = low_copy_of(name, type).name, .dtype = type, .whole = stage() < 3};
      group = &low.try_emplace(to_string(type), fresh).first->second;
    }
    group->members.push_back(
        {has_copy ? copy->second.name : member.parameter, member.desc, member.offset, window});
    if (options_.averages && trained)
      averages.members.push_back({"ema/" + member.parameter, member.desc, member.offset, window});
  }
  add_group(bucket, std::move(plain));
  for (auto& [type, group] : low) add_group(bucket, std::move(group));
  add_group(bucket, std::move(averages));
}

// Offsets come as those in the bucket; the group leaves out the members it does not have.
void ZeroPlan::add_group(const Bucket& bucket, FlatGroup group) {
  if (group.members.empty()) return;
  for (const int64_t piece : bucket.pieces(ranks_)) {
    int64_t cut = 0;
    for (const FlatGroup::Member& member : group.members)
      cut += std::clamp<int64_t>(piece - member.offset, 0, room_of(member.desc));
    group.cuts.push_back(cut);
  }
  for (FlatGroup::Member& member : group.members) {
    member.offset = group.elems;
    member.desc.dtype = group.dtype;
    group.elems += room_of(member.desc);
  }
  groups_.push_back(std::move(group));
}

std::optional<OwnRange> ZeroPlan::window(const std::string& parameter) const {
  const auto found = windows_.find(parameter);
  return found == windows_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<ZeroPlan::Place> ZeroPlan::find(const std::string& value) const {
  for (const FlatGroup& group : groups_)
    for (const FlatGroup::Member& member : group.members)
      if (member.name == value) return Place{&group, &member};
  return std::nullopt;
}

Value group_value(const FlatGroup& group, int rank) {
  Dim dim(kFlat, group.elems);
  if (!group.whole) dim = part_of(dim, group.cuts, rank);
  return {group.name, {group.dtype, {dim}}, ValueKind::kState, group.category};
}

std::vector<Value> ZeroPlan::containers(const std::vector<Bucket>& buckets) const {
  std::vector<Value> values;
  for (const Bucket& bucket : buckets) {
    values.push_back(bucket_value(bucket));
    Shape& shape = values.back().desc.shape;
    if (shares_gradients()) shape = {part_of(shape[0], bucket.pieces(ranks_), rank_)};
  }
  for (const FlatGroup& group : groups_) values.push_back(group_value(group, rank_));
  for (size_t g = trained_groups_; g < groups_.size(); ++g)
    for (const FlatGroup::Member& member : groups_[g].members)
      if (windows_.contains(member.name)) values.push_back(range_of(groups_[g], member));
  return values;
}

// A parameter of which this rank has a piece of its group; low-precision copies are no parameters.
Value ZeroPlan::range_of(const FlatGroup& group, const FlatGroup::Member& member) const {
  Dim dim(kFlat, member.desc.elems());
  dim.local = member.window.size();
  dim.offset = member.window.size() > 0 ? member.window.begin : 0;
  Value value{member.name, {group.dtype, {dim}}, ValueKind::kParameter, group.category};
  value.container = group.name;
  if (member.window.size() > 0)
    value.container_offset = member.offset + member.window.begin - group.cuts[static_cast<size_t>(rank_)];
  value.logical = member.desc.shape;
  return value;
}

}  // namespace vitrail
