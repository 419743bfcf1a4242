// Gathers parameters of which a rank holds a piece (ZeRO), one block ahead of the first reader.
#include <algorithm>
#include <map>
#include <utility>

#include "ops/collective.h"
#include "ops/flat.h"
#include "passes/flat_groups.h"

namespace vitrail {

namespace {

class Gatherer {
 public:
  Gatherer(const Program& program, const ZeroPlan& plan, int rank)
      : source_(program), plan_(plan), rank_(rank), result_{program.values, {}, program.outputs} {
    for (Value& value : result_.values) place(value);
    find_uses();
    for (size_t i = 0; i < source_.nodes.size(); ++i) {
      for (const size_t use : uploaded_at_[i]) upload(uses_[use]);
      for (const size_t use : issued_at_[i]) start(uses_[use]);
      for (const size_t use : needed_at_[i]) finish(uses_[use]);
      Node node = source_.nodes[i];
      for (ValueId& in : node.ins)
        if (const auto found = views_.find({in, node.phase}); found != views_.end()) in = found->second;
      result_.nodes.push_back(std::move(node));
    }
    result_.validate();
  }

  Program take() { return std::move(result_); }

 private:
  // A group that a half of the program reads.
  struct Use {
    const FlatGroup* group;
    Phase phase;
    size_t first, last;  // the nodes that read it first and last
    std::map<ValueId, const FlatGroup::Member*> read;
    bool stays = false;            // until the backward half has read it
    bool gathered_before = false;  // by the forward half, where it stays
    ValueId on_host = -1;          // the piece, where it lies there
    ValueId piece = -1, gathered = -1;
  };

  void place(Value& value) const {
    const auto found = value.persistent() ? plan_.find(value.name) : std::nullopt;
    if (!found || !found->group->whole) return;
    value.container = found->group->name;
    value.container_offset = found->member->offset;
  }

  // Finds which groups are read where, and where each gather starts: at the first reader in the block before,
  // in the other half of the program, too. An upload starts a block ahead of that.
  void find_uses() {
    std::map<std::pair<const FlatGroup*, Phase>, size_t> known;
    for (size_t i = 0; i < source_.nodes.size(); ++i) {
      const Node& node = source_.nodes[i];
      for (const ValueId in : node.ins) {
        const Value& value = source_.values[in];
        const auto found = value.persistent() ? plan_.find(value.name) : std::nullopt;
        if (!found || found->group->whole) continue;
        const auto [use, fresh] = known.try_emplace({found->group, node.phase}, uses_.size());
        if (fresh) uses_.push_back({found->group, node.phase, i, i, {}});
        uses_[use->second].last = i;
        uses_[use->second].read.emplace(in, found->member);
      }
    }
    keep_between_halves();
    issued_at_.resize(source_.nodes.size());
    uploaded_at_.resize(source_.nodes.size());
    needed_at_.resize(source_.nodes.size());
    for (size_t u = 0; u < uses_.size(); ++u) {
      if (uses_[u].gathered_before) continue;
      const size_t gather = plan_.shared() ? a_block_before(u) : u;
      issued_at_[uses_[gather].first].push_back(u);
      if (plan_.on_host()) uploaded_at_[uses_[a_block_before(gather)].first].push_back(u);
      needed_at_[uses_[u].first].push_back(u);
    }
  }

  // What the last two blocks of the forward half have read stays for the backward half, which begins with
  // these: its room is that of a block and the one gathered ahead, which both halves need anyway.
  void keep_between_halves() {
    const auto is_back = [](const Use& use) { return use.phase == Phase::kBackward; };
    const auto back = static_cast<size_t>(std::ranges::find_if(uses_, is_back) - uses_.begin());
    if (back == 0) return;
    const size_t alive = uses_[a_block_before(back - 1)].first;
    for (size_t again = back; again < uses_.size(); ++again)
      for (size_t u = 0; u < back; ++u) {
        if (uses_[u].group != uses_[again].group || uses_[u].last < alive) continue;
        uses_[u].stays = uses_[again].gathered_before = true;
        uses_[u].read.merge(uses_[again].read);
      }
  }

  // The first use in the block before that of a use, or the first of all. A block may have a group for each
  // type.
  size_t a_block_before(size_t use) const {
    const auto place = [&](size_t u) {
      return std::pair(source_.nodes[uses_[u].first].block, uses_[u].phase);
    };
    const auto own = place(use);
    while (use > 0 && place(use) == own) --use;
    while (use > 0 && place(use - 1) == place(use)) --use;
    return use;
  }

  ValueId add_value(Value value) {
    result_.values.push_back(std::move(value));
    return static_cast<ValueId>(result_.values.size()) - 1;
  }

  // Appends a node that belongs to the first reader of a group; returns its output, if it has one.
  ValueId append(const Use& use, OpPtr op, std::vector<ValueId> ins, std::string name) {
    const Node& reader = source_.nodes[use.first];
    const std::vector<ValueId> outs = result_.append({.op = std::move(op),
                                                      .ins = std::move(ins),
                                                      .outs = {},
                                                      .name = std::move(name),
                                                      .phase = use.phase,
                                                      .block = reader.block,
                                                      .part = reader.part,
                                                      .where = reader.where});
    return outs.empty() ? -1 : outs[0];
  }

  std::string name_of(const Use& use, const char* what) const {
    return use.group->name + what + (use.phase == Phase::kBackward ? ".again" : "");
  }

  void upload(Use& use) {
    use.on_host = add_value(group_value(*use.group, rank_));
    use.piece = append(use, std::make_shared<UploadOp>(), {use.on_host}, name_of(use, ".upload"));
  }

  void await(const Use& use, ValueId from, ValueId to, const char* what) {
    append(use, std::make_shared<WaitOp>(), {from, to}, name_of(use, what));
  }

  void start(Use& use) {
    if (use.on_host >= 0)
      await(use, use.on_host, use.piece, ".uploaded");
    else
      use.piece = add_value(group_value(*use.group, rank_));
    use.gathered = use.piece;
    if (!plan_.shared()) return;
    const TensorDesc whole{use.group->dtype, {{kFlat, use.group->elems}}};
    use.gathered =
        append(use,
               std::make_shared<CollectiveOp>(CollectiveOp::Form{
                   CollectiveKind::kAllGather, Axis::kData, use.group->piece_counts(), whole, false, true}),
               {use.piece}, name_of(use, ".all_gather"));
  }

  void finish(const Use& use) {
    if (plan_.shared()) await(use, use.piece, use.gathered, ".wait");
    for (const auto& [id, member] : use.read) {
      const ValueId view = append(use, std::make_shared<ViewOp>(member->offset, member->desc.shape),
                                  {use.gathered}, name_of(use, ("." + member->name).c_str()));
      views_[{id, use.phase}] = view;
      if (use.stays) views_[{id, Phase::kBackward}] = view;
    }
  }

  const Program& source_;
  const ZeroPlan& plan_;
  int rank_;
  Program result_;
  std::vector<Use> uses_;
  std::vector<std::vector<size_t>> uploaded_at_, issued_at_, needed_at_;  // uses by node
  std::map<std::pair<ValueId, Phase>, ValueId> views_;
};

}  // namespace

Program gather_parameters(const Program& program, const ZeroPlan& plan, int rank) {
  return Gatherer(program, plan, rank).take();
}

}  // namespace vitrail
