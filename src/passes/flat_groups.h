// ZeRO: what the dp ranks share out besides the images, as flat groups. A rank owns piece r of every bucket:
// it keeps the optimizer state, averages and masters of that piece, with stage 2 the gradients, with stage 3
// the parameters. Groups follow their bucket's order, so that a rank's part of a parameter is the same range
// of elements in all of them.
#pragma once

#include <map>
#include <optional>

#include "passes/buckets.h"

namespace vitrail {

// A range of a parameter's elements, as this rank holds the parameter.
struct OwnRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

struct FlatGroup {
  struct Member {
    std::string name;  // of the value: a parameter, its low-precision copy or its average
    TensorDesc desc;   // as this rank would hold it whole
    int64_t offset = 0;
    OwnRange window;
  };
  std::string name;  // the value that holds the group, or this rank's piece of it
  DType dtype = DType::kF32;
  Category category = Category::kParameters;
  bool whole = true;  // this rank keeps all of it and owns a piece
  std::vector<Member> members;
  int64_t elems = 0;
  std::vector<int64_t> cuts;  // of the pieces, one a rank

  std::vector<size_t> piece_counts() const;
};

struct ZeroOptions {
  int stage = 0;
  std::vector<LowCopy> copies;
  bool averages = false;
  bool whole_sums = false;  // gradient sums stay whole until the end of an update
  bool on_host = false;     // with stage 3: a rank's pieces of the parameters lie in the host's memory
};

class ZeroPlan {
 public:
  ZeroPlan() = default;
  // `frozen` are shared out with stage 3, which shares out parameters.
  ZeroPlan(const std::vector<Bucket>& buckets, const std::vector<Bucket>& frozen, const Mesh& mesh,
           ZeroOptions options);

  bool active() const { return options_.stage > 0; }
  int stage() const { return options_.stage; }
  // Returns whether there are several ranks; one owns every group whole, which matters on the host alone.
  bool shared() const { return ranks_ > 1; }
  // Returns whether a rank keeps the gradient sums of its own piece alone.
  bool shares_gradients() const { return stage() >= 2 && !options_.whole_sums && shared(); }
  bool on_host() const { return options_.on_host; }
  const std::vector<FlatGroup>& groups() const { return groups_; }
  // The part of a parameter that this rank owns; nothing for one that is not shared out.
  std::optional<OwnRange> window(const std::string& parameter) const;
  bool has_copy(const std::string& parameter) const { return copies_.contains(parameter); }

  struct Place {
    const FlatGroup* group;
    const FlatGroup::Member* member;
  };
  // Returns where a value lies among the groups; nothing for any other value.
  std::optional<Place> find(const std::string& value) const;

  // The values that hold groups and buckets, to be placed before what lies in them, and this rank's ranges of
  // the frozen parameters, which no update names.
  std::vector<Value> containers(const std::vector<Bucket>& buckets) const;

 private:
  void add_bucket(const Bucket& bucket, size_t index, bool trained);
  void add_group(const Bucket& bucket, FlatGroup group);
  Value range_of(const FlatGroup& group, const FlatGroup::Member& member) const;

  ZeroOptions options_;
  int rank_ = 0, ranks_ = 1;
  std::map<std::string, LowCopy> copies_;  // by master
  std::map<std::string, OwnRange> windows_;
  std::vector<FlatGroup> groups_;
  size_t trained_groups_ = 0;  // the first ones
};

// The container of a group as a value of a program.
Value group_value(const FlatGroup& group, int rank);

// Lets the values of a program that lie in whole groups do so, and gathers those of which this rank has a
// piece one block ahead of their first reader: once in the forward and once in the backward half, but for
// what the forward half reads last, which stays. A piece that lies on the host comes to the device one block
// ahead of that; where one rank has all, nothing is gathered.
Program gather_parameters(const Program& program, const ZeroPlan& plan, int rank);

// Lets every micro-step hand its gradients to their owners (stage 2 and 3): the gradients of a bucket are
// joined, summed over ranks, and a rank adds its piece to what it keeps.
Program scatter_gradients(const Program& program, const std::vector<Bucket>& buckets, const Mesh& mesh);

// Rewrites a program that only changes persistent values (an optimizer's update, the refresh of copies) into
// that of one rank: every value becomes the rank's part of it, with ZeRO the range of elements that it owns,
// and what was updated in pieces is gathered at the end. The norm of all gradients counts each parameter
// once: a rank adds up the squares of what it alone owns, and of what several hold alike the first of them.
Program distribute_update(const Program& recorded, const Distribution& how,
                          const std::vector<Bucket>& buckets, const ZeroPlan& zero);

}  // namespace vitrail
