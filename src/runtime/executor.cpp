#include "runtime/executor.h"

#include <algorithm>

#include "base/checked.h"
#include "ops/collective.h"
#include "ops/empty_parts.h"
#include "ops/fused.h"
#include "ops/turn.h"
#include "runtime/check/check_node.h"

namespace vitrail {

Executor::Executor(const ExecutionPlan& plan, const PersistentStore& store, RankContext& rank,
                   const Buffer* shared, const Buffer* staging)
    : plan_(plan),
      store_(store),
      rank_(rank),
      own_(shared ? 0 : plan.memory.transient_bytes, Category::kTransient, rank.memory()),
      own_staging_(staging ? 0 : plan.memory.staging_bytes, Category::kStaging, rank.memory()),
      arena_(shared ? shared->data() : own_.data()),
      staging_(staging ? staging->data() : own_staging_.data()),
      times_(plan.program.nodes.size()),
      timed_(!rank.hardware->records()),
      collectives_(collective_runner(rank)),
      uploads_(rank) {
  for (const Node& node : plan.program.nodes) updates_ = updates_ || !node.op->updates().empty();
  VT_CHECK(!shared || shared->bytes() >= plan.memory.transient_bytes, "the shared arena is too small");
  VT_CHECK(!staging || staging->bytes() >= plan.memory.staging_bytes, "the shared staging is too small");
  for (size_t i = 0; i < plan.program.nodes.size(); ++i) {
    const Node& node = plan.program.nodes[i];
    steps_.push_back(bind(i));
    for (Step& step : steps_.back()) step.empty = is_empty(step);
    if (const auto* op = as_collective(*node.op)) {
      VT_CHECK(rank.ranks, "%s in a program of one rank", std::string(op->kind()).c_str());
      exchanges_ = true;
      const ValueId first = node.ins.empty() ? node.outs[0] : node.ins[0];  // what is received has no input
      const TensorView in = view(first), out = node.outs.empty() ? in : view(node.outs[0]);
      collectives_->add(i, {op, in, out, first});
    }
    if (is<UploadOp>(*node.op)) uploads_.add(i, node.ins[0], view(node.ins[0]), view(node.outs[0]));
    if (rank.pulse)
      names_.push_back(rank.pulse->keep(node.name.empty() ? node.op->kind() : std::string_view(node.name)));
  }
  collectives_->prepare();
}

TensorView Executor::view(ValueId id) const {
  const Placement& placement = plan_.memory.values[id];
  if (placement.persistent) return store_.view(plan_.program.values[id].name);
  return {(placement.staged ? staging_ : arena_) + placement.offset, plan_.program.values[id].desc};
}

// The first kernel may follow a program that updates parameters, so none are fixed for it.
uint64_t Executor::fixed_inputs(size_t node_index) const {
  const std::vector<ValueId>& ins = plan_.program.nodes[node_index].ins;
  const auto before = plan_.choices.begin() + static_cast<std::ptrdiff_t>(node_index);
  const bool first = std::all_of(plan_.choices.begin(), before,
                                 [](const NodeChoice& choice) { return choice.launches.empty(); });
  uint64_t fixed = 0;
  if (updates_ || first) return fixed;
  for (size_t i = 0; i < std::min<size_t>(ins.size(), 64); ++i)
    if (plan_.program.values[ins[i]].kind == ValueKind::kParameter) fixed |= uint64_t{1} << i;
  return fixed;
}

std::vector<Executor::Step> Executor::bind(size_t node_index) const {
  const Node& node = plan_.program.nodes[node_index];
  const NodeChoice& choice = plan_.choices[node_index];
  std::vector<Step> steps;
  if (choice.launches.empty()) return steps;
  if (choice.by_members) {
    bind_members(node_index, steps);
    return steps;
  }
  const Placement& scratch = plan_.memory.scratch[node_index];
  Step step{.kernel = &choice.launches[0].prepared,
            .op = node.op.get(),
            .ins = {},
            .outs = {},
            .scratch = {arena_ + scratch.offset, scratch.bytes},
            .fixed = fixed_inputs(node_index)};
  for (ValueId id : node.ins) step.ins.push_back(view(id));
  for (ValueId id : node.outs) step.outs.push_back(view(id));
  steps.push_back(std::move(step));
  return steps;
}

// Members pass their results on through the front part of the node's scratch; the last writes the outputs,
// and a kept result is one.
void Executor::bind_members(size_t node_index, std::vector<Step>& steps) const {
  const Node& node = plan_.program.nodes[node_index];
  const NodeChoice& choice = plan_.choices[node_index];
  const auto& fused = dynamic_cast<const FusedOp&>(*node.op);
  const std::vector<TensorDesc> outs = fused.member_outputs(plan_.program.descs(node.ins));
  std::byte* scratch = arena_ + plan_.memory.scratch[node_index].offset;
  std::byte* next = scratch;
  std::vector<TensorView> results;
  for (size_t m = 0; m < fused.members().size(); ++m) {
    const bool last = m + 1 == fused.members().size();
    Step step{.kernel = &choice.launches[m].prepared,
              .op = fused.members()[m].op.get(),
              .ins = {},
              .outs = {},
              .scratch = {scratch + choice.members_bytes, choice.launches[m].prepared.scratch_bytes}};
    for (const FusedOp::Source& source : fused.members()[m].sources)
      step.ins.push_back(source.is_input() ? view(node.ins[source.input()]) : results[source.member()]);
    if (last) {
      for (size_t o = 0; o < fused.outputs_of(m, outs).size(); ++o) step.outs.push_back(view(node.outs[o]));
    } else if (fused.is_kept(m)) {
      results.push_back(view(node.outs.back()));
      step.outs.push_back(results.back());
    } else {
      results.emplace_back(next, outs[m]);
      next += round_up(outs[m].bytes(), Buffer::kAlignment);
      step.outs.push_back(results.back());
    }
    steps.push_back(std::move(step));
  }
}

TensorView Executor::input(std::string_view name) const {
  for (size_t id = 0; id < plan_.program.values.size(); ++id)
    if (plan_.program.values[id].kind == ValueKind::kInput && plan_.program.values[id].name == name)
      return view(static_cast<ValueId>(id));
  throw Error(ErrorKind::kInternal, strf("the program has no input '%s'", std::string(name).c_str()));
}

TensorView Executor::output(std::string_view name) const {
  return view(plan_.program.output(name));
}

// What a turn reads is filled as it begins.
void Executor::begin_turn(const Node& node) {
  const auto& turn = dynamic_cast<const TurnOp&>(*node.op);
  VT_CHECK(on_turn_, "%s begins and nobody fills its inputs", node.name.c_str());
  std::vector<TensorView> inputs;
  for (const ValueId id : node.outs) inputs.push_back(view(id));
  on_turn_(turn, inputs);
}

// Runs what no kernel runs: turns, uploads and collectives. The memory of a collective is that of its first
// input and output.
void Executor::run_beside(size_t index) {
  const Node& node = plan_.program.nodes[index];
  if (is<TurnOp>(*node.op)) return begin_turn(node);
  if (is<UploadOp>(*node.op)) return uploads_.start(index);
  if (is<WaitOp>(*node.op) && uploads_.has(node.ins[0])) return uploads_.wait(node.ins[0]);
  const ReductionScope reducing(rank_.pulse);
  if (is<WaitOp>(*node.op)) return collectives_->wait(node.ins[0]);
  if (as_collective(*node.op)) collectives_->run(index);
}

bool Executor::is_empty(const Step& step) {
  const auto descs = [](std::span<const TensorView> views) {
    std::vector<TensorDesc> list;
    for (const TensorView& view : views) list.push_back(view.desc());
    return list;
  };
  return computes_nothing(*step.op, descs(step.ins), descs(step.outs));
}

void Executor::run_node(size_t node) {
  if (rank_.pulse) rank_.pulse->at_node(names_[node]);
  if (steps_[node].empty()) return run_beside(node);
  const LaunchContext context = rank_.launch_context();
  for (const Step& step : steps_[node]) {
    if (step.empty) {
      for (const TensorView& out : step.outs)
        if (out.desc().elems() > 0) rank_.hardware->clear(out.data(), out.desc().bytes());
      continue;
    }
    step.kernel->run({*step.op, step.ins, step.outs, step.scratch, context, step.fixed});
  }
  collectives_->poll();
}

void Executor::run_nodes() {
  for (size_t node = 0; node < steps_.size(); ++node) run_node(node);
}

void Executor::run_timed() {
  Device& device = *rank_.hardware;
  while (stamps_.size() <= steps_.size()) stamps_.push_back(device.create_timestamp());
  for (size_t node = 0; node < steps_.size(); ++node) {
    device.stamp(*stamps_[node]);
    run_node(node);
  }
  device.stamp(*stamps_.back());
  for (size_t node = 0; node < steps_.size(); ++node) {
    times_[node].seconds += awaited_seconds(device, *stamps_[node], *stamps_[node + 1]);
    ++times_[node].runs;
  }
}

void Executor::run() {
  collectives_->begin_run(!ran_);
  if (timed_)
    run_timed();
  else
    run_or_replay();
  collectives_->end_run();
  ran_ = true;
}

// The first run is not captured, because libraries initialise themselves in it.
void Executor::run_or_replay() {
  if (ran_ && !recorded_ && rank_.hardware->records()) try_to_record();
  if (recorded_)
    recorded_->replay([this](size_t node) { run_node(node); });
  else
    run_nodes();
}

namespace {
constexpr int kMostSpoilt = 100;
}

// A capture that another thread invalidated is repeated: by the next run, or by all ranks at once.
void Executor::try_to_record() {
  const bool whole = !exchanges_ || collectives_->records();
  auto pieces = std::make_unique<RecordedPieces>(steps_.size(),
                                                 [&](size_t node) { return !whole && steps_[node].empty(); });
  const auto try_once = [&] {
    return exchanges_ ? record_together(*pieces)
                      : pieces->record(*rank_.hardware, [this](size_t node) { run_node(node); });
  };
  bool done = try_once();
  for (; !done; done = try_once()) {
    VT_REQUIRE(++spoilt_ < kMostSpoilt, ErrorKind::kDevice, "%s could not record a program in %d attempts",
               rank_.device.name.c_str(), kMostSpoilt);
    if (!exchanges_) return;
  }
  recorded_ = std::move(pieces);
}

// Ranks may share a device, and making a graph of what was recorded allocates: a collective that waits for
// the rank which does so would stop it. So all ranks record while nothing runs, and go on together.
bool Executor::record_together(RecordedPieces& pieces) {
  Communicator& world = rank_.ranks->world();
  rank_.hardware->finish();
  world.barrier();
  int64_t lacking = pieces.record(*rank_.hardware, [this](size_t node) { run_node(node); }) ? 0 : 1;
  rank_.hardware->finish();
  world.run({.kind = Collective::Kind::kAllReduce,
             .dtype = DType::kI64,
             .in = &lacking,
             .out = &lacking,
             .counts = {1}});
  return lacking == 0;
}

void Executor::run_each(const AtNode& before, const AtNode& after) {
  collectives_->begin_run(!ran_);
  for (size_t i = 0; i < steps_.size(); ++i) {
    before(i);
    run_node(i);
    after(i);
  }
  collectives_->end_run();
}

void Executor::run_checked(const PersistentStore& plain_store) {
  std::optional<NodeCheck> check;
  const auto before = [&](size_t i) {
    const Node& node = plan_.program.nodes[i];
    check.emplace(node, plan_.program, rounding_of(plan_, i), rank_);
    for (ValueId id : node.ins)
      if (plan_.memory.values[id].persistent)
        check->add_persistent(plain_store.view(plan_.program.values[id].name), plain_store.rank());
      else
        check->add_input(view(id));
  };
  run_each(before, [&](size_t i) {
    const Node& node = plan_.program.nodes[i];
    std::vector<TensorView> results;
    for (ValueId id : node.outs) results.push_back(view(id));
    for (int input : node.op->updates()) results.push_back(view(node.ins[input]));
    check->compare(results);
  });
}

void Executor::reset_times() {
  times_.assign(times_.size(), {});
}

}  // namespace vitrail
