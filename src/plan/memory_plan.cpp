#include "plan/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "ops/collective.h"
#include "ops/flat.h"
#include "ops/turn.h"
#include "plan/occupancy.h"

namespace vitrail {

namespace {

size_t aligned(size_t bytes) {
  return round_up(bytes, Buffer::kAlignment);
}

// A span of bytes with a lifetime; several values that share storage are one block.
struct Block {
  size_t bytes = 0, offset = 0;
  int first = 0, last = 0;
  Category category = Category::kTransient;
  bool shared = false;  // other values lie inside it
};

class Planner {
 public:
  Planner(const Program& program, const std::vector<size_t>& scratch,
          std::shared_ptr<PersistentLayout> layout, bool stage_inputs, bool host)
      : program_(program),
        scratch_(scratch),
        layout_(std::move(layout)),
        stage_inputs_(stage_inputs),
        host_(host) {
    block_of_.assign(program.values.size(), -1);
    inner_.assign(program.values.size(), 0);
    find_last_uses();
  }

  MemoryPlan plan() {
    open_inputs();
    for (int i = 0; i < static_cast<int>(program_.nodes.size()); ++i) visit(i);
    place_blocks();
    return finish();
  }

 private:
  void find_last_uses() {
    const int end = static_cast<int>(program_.nodes.size());
    last_use_.assign(program_.values.size(), -1);
    for (int i = 0; i < end; ++i)
      for (ValueId id : program_.nodes[i].ins) last_use_[id] = i;
    for (const Output& out : program_.outputs) last_use_[out.value] = end;
  }

  void open_inputs() {
    if (stage_inputs_) return;
    for (size_t id = 0; id < program_.values.size(); ++id)
      if (program_.values[id].kind == ValueKind::kInput)
        open_block(static_cast<ValueId>(id), 0, Category::kStaging);
  }

  void open_block(ValueId id, int node, Category category) {
    block_of_[id] = static_cast<int>(blocks_.size());
    blocks_.push_back(
        {aligned(program_.values[id].desc.bytes()), 0, node, std::max(node, last_use_[id]), category});
  }

  // Returns whether the value is written by the forward pass and read again by the backward pass.
  bool is_saved(int writer, ValueId id) const {
    const int reader = last_use_[id];
    return program_.nodes[writer].phase == Phase::kForward && reader >= 0 &&
           reader < static_cast<int>(program_.nodes.size()) &&
           program_.nodes[reader].phase == Phase::kBackward;
  }

  // Returns the block that node i's first output may reuse, or -1.
  int reusable_block(int i) const {
    const Node& node = program_.nodes[i];
    const int input = node.op->in_place_input();
    if (input < 0) return -1;
    const ValueId id = node.ins[input];
    const bool dies_here = !node.outs.empty() && !is_shared(id) &&
                           program_.values[id].kind == ValueKind::kComputed && last_use_[id] == i &&
                           std::count(node.ins.begin(), node.ins.end(), id) == 1;
    const bool same_size =
        dies_here && program_.values[id].desc.bytes() == program_.values[node.outs[0]].desc.bytes();
    return same_size ? block_of_[id] : -1;
  }

  // Returns whether other values lie in the same block as parts of it.
  bool is_shared(ValueId id) const { return block_of_[id] >= 0 && blocks_[block_of_[id]].shared; }

  // Gives a view its place inside the block of its source.
  bool place_view(int i) {
    const Node& node = program_.nodes[i];
    const auto* view = dynamic_cast<const ViewOp*>(node.op.get());
    if (!view) return false;
    const ValueId from = node.ins[0], id = node.outs[0];
    block_of_[id] = block_of_[from];
    inner_[id] = inner_[from] + static_cast<size_t>(view->offset()) * size_of(program_.values[id].desc.dtype);
    Block& block = blocks_[block_of_[from]];
    block.last = std::max(block.last, last_use_[id]);
    block.shared = true;
    return true;
  }

  static Category category_of(const Op& op) {
    if (is<TurnOp, UploadOp>(op)) return Category::kStaging;
    const bool exchanged = as_collective(op) || is<PackOp, JoinOp>(op);
    return exchanged ? Category::kCommunication : Category::kTransient;
  }

  void visit(int i) {
    const Node& node = program_.nodes[i];
    if (place_view(i)) {
      scratch_block_.push_back(static_cast<int>(blocks_.size()));
      blocks_.push_back({0, 0, i, i, Category::kScratch});
      return;
    }
    for (size_t o = 0; o < node.outs.size(); ++o) {
      const ValueId id = node.outs[o];
      const int reused = o == 0 ? reusable_block(i) : -1;
      if (reused < 0) {
        open_block(id, i, is_saved(i, id) ? Category::kSaved : category_of(*node.op));
      } else {
        block_of_[id] = reused;
        blocks_[reused].last = std::max(i, last_use_[id]);
        if (is_saved(i, id)) blocks_[reused].category = Category::kSaved;
      }
    }
    scratch_block_.push_back(static_cast<int>(blocks_.size()));
    blocks_.push_back({aligned(scratch_[i]), 0, i, i, Category::kScratch});
  }

  // Places the largest block first, each at the lowest offset free during its whole life.
  void place_blocks() {
    std::vector<int> order(blocks_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return blocks_[a].bytes > blocks_[b].bytes; });
    Occupancy taken(static_cast<int>(program_.nodes.size()) + 1);
    for (int index : order) {
      Block& block = blocks_[index];
      if (block.bytes == 0) continue;
      block.offset = taken.lowest_free(block.first, block.last, block.bytes);
      taken.take(block.first, block.last, block.offset, block.offset + block.bytes);
    }
  }

  // What is staged on the host travels from there, or to there.
  Home home_of(const Value& value) const {
    return !host_ ? Home::kDevice : value.category == Category::kStaging ? Home::kLocked : Home::kHost;
  }

  MemoryPlan finish() const {
    MemoryPlan plan;
    for (size_t id = 0; id < program_.values.size(); ++id) {
      Placement placement{.bytes = program_.values[id].desc.bytes()};
      if (program_.values[id].persistent() && last_use_[id] >= 0) {
        const PersistentValue& value = layout_->place(program_.values[id], home_of(program_.values[id]));
        placement.persistent = true;
        placement.category = value.category;
        placement.offset = value.offset;
      } else if (stage_inputs_ && program_.values[id].kind == ValueKind::kInput) {
        placement.staged = true;
        placement.category = Category::kStaging;
        placement.offset = plan.staging_bytes;
        plan.staging_bytes += aligned(placement.bytes);
      } else if (block_of_[id] >= 0) {
        const Block& block = blocks_[block_of_[id]];
        placement.offset = block.offset + inner_[id];
        placement.first = block.first;
        placement.last = block.last;
        placement.category = block.category;
      } else {
        placement.bytes = 0;
      }
      plan.values.push_back(placement);
    }
    for (size_t i = 0; i < scratch_block_.size(); ++i) {
      const Block& block = blocks_[scratch_block_[i]];
      plan.scratch.push_back(
          {false, false, block.offset, scratch_[i], block.first, block.last, Category::kScratch});
    }
    plan.persistent = layout_;
    plan.persistent_bytes = layout_->bytes();
    measure(plan);
    return plan;
  }

  void measure(MemoryPlan& plan) const {
    for (const Block& block : blocks_)
      plan.transient_bytes = std::max(plan.transient_bytes, block.offset + block.bytes);
    // Collects the blocks whose life begins and ends at each moment.
    const size_t moments = program_.nodes.size() + 1;
    std::vector<std::array<size_t, kCategoryCount>> begins(moments), ends(moments + 1);
    for (const Block& block : blocks_) {
      begins[static_cast<size_t>(block.first)][static_cast<size_t>(block.category)] += block.bytes;
      ends[static_cast<size_t>(block.last) + 1][static_cast<size_t>(block.category)] += block.bytes;
    }
    std::array<size_t, kCategoryCount> alive{};
    for (size_t moment = 0; moment < moments; ++moment) {
      for (size_t c = 0; c < kCategoryCount; ++c) alive[c] += begins[moment][c] - ends[moment][c];
      const size_t total = std::accumulate(alive.begin(), alive.end(), size_t{0});
      if (total <= plan.lower_bound_bytes) continue;
      plan.lower_bound_bytes = total;
      plan.alive = alive;
    }
    for (size_t c = 0; c < kCategoryCount; ++c)
      plan.by_category[c] = plan.alive[c] + layout_->bytes(static_cast<Category>(c));
    plan.by_category[static_cast<size_t>(Category::kStaging)] += plan.staging_bytes;
  }

  const Program& program_;
  const std::vector<size_t>& scratch_;
  std::shared_ptr<PersistentLayout> layout_;
  bool stage_inputs_, host_;
  std::vector<int> last_use_, block_of_, scratch_block_;
  std::vector<size_t> inner_;  // by value: its bytes from the start of the block on
  std::vector<Block> blocks_;
};

}  // namespace

MemoryPlan plan_memory(const Program& program, const std::vector<size_t>& scratch_bytes,
                       std::shared_ptr<PersistentLayout> layout, bool stage_inputs, bool host) {
  VT_CHECK(scratch_bytes.size() == program.nodes.size(), "one scratch size per node is needed");
  if (!layout) layout = std::make_shared<PersistentLayout>();
  return Planner(program, scratch_bytes, std::move(layout), stage_inputs, host).plan();
}

}  // namespace vitrail
