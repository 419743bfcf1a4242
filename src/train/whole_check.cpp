#include "train/whole_check.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "ops/make_images.h"
#include "plan/devices.h"
#include "plan/tolerance.h"
#include "runtime/transfer.h"

namespace vitrail {

namespace {

// The program as it is before it is cut.
Program uncut(const StepConfig& config, const Backend& backend) {
  Program whole;
  record_micro(config, backend.traits(), [&](std::string_view pass, const Program& program) {
    if (pass == kPrecisionPass) whole = program;
  });
  return whole;
}

// Adds what the rounding of parts and of their sums may be off.
void add_roundings(Known& wanted, const Recombined& found) {
  if (wanted.noise.exact()) wanted.noise = {Values(wanted.values.size()), Values(wanted.values.size())};
  const double each = roundoff(found.desc.dtype) * static_cast<double>(found.summed);
  for (size_t i = 0; i < wanted.values.size(); ++i) wanted.noise.add_error(i, each * found.magnitude[i]);
}

}  // namespace

void require_whole_check(const StepPlan& plan, const MeshConfig& mesh, bool alone) {
  VT_REQUIRE(!alone, ErrorKind::kUsage,
             "--check whole compares the ranks of a run with one; this run has one rank alone");
  VT_REQUIRE(mesh.pp == 1, ErrorKind::kUsage,
             "--check whole does not know pipelines; mesh.pp is %lld, expected 1",
             static_cast<long long>(mesh.pp));
  VT_REQUIRE(!plan.offload, ErrorKind::kUsage,
             "--check whole reads the weights of the device, which with mesh.offload=%s are copies",
             enum_name(mesh.offload));
}

std::string checked_text(size_t nodes) {
  return strf("--check whole: %zu nodes of the sharded step agree with the whole one", nodes);
}

WholeCheck::WholeCheck(const TrainStep& step, Disturb disturb)
    : rank_(step.rank()),
      how_(step.plan().config.distribution),
      images_(step.plan().config.images),
      whole_(uncut(step.plan().config, *step.plan().micro.backend)),
      cut_(distribute(whole_, how_)),
      plan_(plan_execution(cut_.program, *step.plan().micro.backend, rank_.device, {.pack = false})),
      store_(plan_.memory.persistent, rank_),
      executor_(plan_, store_, rank_),
      recombiner_(rank_, how_),
      host_(processor_here(std::max(1, rank_.device.threads))),
      disturb_(std::move(disturb)),
      homes_(whole_.values.size(), -1),
      uses_(whole_.use_counts()) {
  VT_CHECK(plan_.program.nodes.size() == cut_.program.nodes.size(), "planning changed the program");
  take_weights(step);
}

// Gradient sums begin at zero, as in a step.
void WholeCheck::take_weights(const TrainStep& step) {
  for (const PersistentValue& value : store_.layout().values()) {
    if (value.category == Category::kGradients) continue;
    const PersistentValue& held = step.store().layout().at(value.name);
    const bool piece = held.logical.rank() > 0;
    VT_CHECK(piece || held.desc.bytes() == value.desc.bytes(), "%s is held in another form",
             value.name.c_str());
    std::vector<std::byte> bytes(value.desc.bytes());
    if (piece)
      gather_pieces(step.store(), held, bytes);
    else
      step.store().read(held, bytes);
    store_.write(value, bytes);
  }
}

// ZeRO 3: every rank along dp holds a range of the elements. All others are zero bytes, so that a sum of
// whole words, in which no byte is held twice, is what the ranks have together.
void WholeCheck::gather_pieces(const PersistentStore& store, const PersistentValue& held,
                               std::vector<std::byte>& bytes) {
  const auto first = static_cast<size_t>(held.desc.shape[0].offset) * size_of(held.desc.dtype);
  std::vector<int64_t> words(ceil_div(bytes.size(), sizeof(int64_t)));
  const auto own = std::as_writable_bytes(std::span(words)).first(bytes.size());
  store.read(held, own.subspan(first, held.desc.bytes()));
  rank_.ranks->over(Axis::kData)
      .run({.kind = Collective::Kind::kAllReduce,
            .dtype = DType::kI64,
            .in = words.data(),
            .out = words.data(),
            .counts = {words.size()}});
  std::ranges::copy(own, bytes.begin());
}

void WholeCheck::fill_inputs(const MicroBatch& batch) {
  const int64_t counters[] = {batch.seed, batch.step, batch.position};
  const std::map<std::string, std::span<const float>> floats = {{"images", batch.images},
                                                                {"targets", batch.targets},
                                                                {"weights", batch.weights},
                                                                {"teacher", batch.teacher}};
  const std::map<std::string, std::span<const std::byte>> bytes = {
      {"pixels", std::as_bytes(batch.pixels)},
      {"recipes", std::as_bytes(batch.recipes)},
      {"counters", std::as_bytes(std::span(counters))}};
  for (const Value& value : plan_.program.values) {
    if (value.kind != ValueKind::kInput) continue;
    if (const auto found = floats.find(value.name); found != floats.end())
      write_floats(rank_, executor_.input(value.name), found->second);
    else
      write_bytes(rank_, executor_.input(value.name), bytes.at(value.name));
  }
}

size_t WholeCheck::run(const MicroBatch& batch) {
  fill_inputs(batch);
  executor_.run_each([this](size_t node) { before(node); }, [this](size_t node) { after(node); });
  return compared_;
}

const Node& WholeCheck::whole_node(size_t node) const {
  return whole_.nodes[static_cast<size_t>(cut_.origins[node])];
}

Layout WholeCheck::layout_of(ValueId cut) const {
  const auto sum = cut_.gradients.find(cut_.program.values[cut].name);
  const bool is_sum = sum != cut_.gradients.end() && cut_.program.values[cut].persistent();
  return is_sum ? sum->second : cut_.layouts[static_cast<size_t>(cut)];
}

void WholeCheck::fail(size_t node, const std::string& what) const {
  const Node& failed = cut_.program.nodes[node];
  throw Error(ErrorKind::kCheck,
              strf("%s: %s\n  %s\n  recorded at %s:%d", failed.name.c_str(), what.c_str(),
                   to_string(failed, cut_.program).c_str(), failed.where.file, failed.where.line));
}

void WholeCheck::before(size_t node) {
  if (cut_.origins[node] < 0) return;
  const Node &mine = cut_.program.nodes[node], &whole = whole_node(node);
  for (size_t i = 0; i < whole.ins.size(); ++i) take_input(node, mine.ins[i], whole.ins[i]);
  if (!recombiner_.leads()) return;
  check_.emplace(whole, whole_, rounding_of(plan_, node), host_);
  const bool as_it_is = is<MakeImagesOp>(*whole.op);
  for (size_t i = 0; i < whole.ins.size(); ++i)
    check_->add_input(input_view(known_.at(whole.ins[i]).at(mine.ins[i]), as_it_is));
}

// Compares what a node reads that no node has made, or that was moved since it was compared.
void WholeCheck::take_input(size_t node, ValueId cut, ValueId whole) {
  ValueId& home = homes_[static_cast<size_t>(whole)];
  if (home == cut || (home >= 0 && !moved_.insert(cut).second)) return;
  Recombined found =
      recombiner_.collect(executor_.view(cut), layout_of(cut), whole_.values[whole].desc.shape);
  const bool fresh = home < 0;
  if (fresh) home = cut;
  if (!recombiner_.leads()) return;
  if (whole_.values[whole].name == "recipes") place_rows(found, layout_of(cut));
  if (fresh)
    judge_copies(node, whole, found);
  else
    judge_moved(node, cut, whole, found);
  known_[whole][cut] = std::move(found);
}

// A rank's recipes count rows of the batch, and of pixels that came with it, from its own first one.
void WholeCheck::place_rows(Recombined& recipes, const Layout& layout) const {
  std::map<int64_t, int64_t> parts;  // of the batch: first row and number
  for (int rank = 0; rank < how_.mesh.world(); ++rank) {
    Distribution of_rank = how_;
    of_rank.mesh = how_.mesh.of_rank(rank);
    const Dim rows = local_shape(recipes.desc.shape, layout, of_rank)[0];
    parts[rows.offset] = std::max(parts[rows.offset], rows.local);
  }
  for (const auto& [first, count] : parts)
    for (int64_t row = first; row < first + count; ++row) {
      std::byte* const place = recipes.raw.data() + static_cast<size_t>(row) * sizeof(ImageRecipe);
      ImageRecipe recipe;
      std::memcpy(&recipe, place, sizeof recipe);
      if (images_ == ImageForm::kPixels && recipe.source >= 0) recipe.source += static_cast<int32_t>(first);
      if (recipe.partner >= 0) recipe.partner += static_cast<int32_t>(first);
      std::memcpy(place, &recipe, sizeof recipe);
    }
}

// Copies of a weight or an input are the same.
void WholeCheck::judge_copies(size_t node, ValueId whole, const Recombined& found) const {
  for (size_t copy = 1; copy < found.copies.size(); ++copy)
    for (size_t i = 0; i < found.copies[copy].size(); ++i)
      if (found.copies[copy][i] != found.copies[0][i])
        fail(node,
             strf("%s is not the same on all ranks: element %zu is %.9g on %s, %.9g on %s",
                  whole_.values[whole].name.c_str(), i, found.copies[copy][i],
                  recombiner_.holders(found, layout_of(homes_[static_cast<size_t>(whole)]), copy, i).c_str(),
                  found.copies[0][i],
                  recombiner_.holders(found, layout_of(homes_[static_cast<size_t>(whole)]), 0, i).c_str()));
}

void WholeCheck::judge_moved(size_t node, ValueId cut, ValueId whole, const Recombined& found) {
  const auto maker = std::ranges::find_if(cut_.program.nodes, [&](const Node& candidate) {
    return std::ranges::find(candidate.outs, cut) != candidate.outs.end();
  });
  const Recombined& source = known_.at(whole).at(homes_[static_cast<size_t>(whole)]);
  if (!is_float(found.desc.dtype)) return;
  Known wanted{found.desc.shape, source.copies[0], {}};
  add_roundings(wanted, source);
  for (size_t copy = 0; copy < found.copies.size(); ++copy) {
    const Verdict verdict = judge(wanted, found.copies[copy]);
    if (verdict.share > 1)
      fail(maker == cut_.program.nodes.end() ? node : static_cast<size_t>(maker - cut_.program.nodes.begin()),
           strf("moving a value between ranks changed element %zu on %s, by %.3g times what roundings allow: "
                "%s",
                verdict.element, recombiner_.holders(found, layout_of(cut), copy, verdict.element).c_str(),
                verdict.share, verdict.where.c_str()));
  }
}

TensorView WholeCheck::input_view(Recombined& value, bool as_it_is) {
  if (as_it_is || !is_float(value.desc.dtype)) return {value.raw.data(), value.desc};
  return {value.copies[0].data(), {DType::kF64, value.desc.shape}};
}

void WholeCheck::after(size_t node) {
  const Node& mine = cut_.program.nodes[node];
  if (disturb_)
    for (const ValueId id : mine.outs) disturb_(mine.name, executor_.view(id));
  if (cut_.origins[node] < 0) return;
  const Node& whole = whole_node(node);
  std::vector<std::pair<ValueId, ValueId>> results;  // cut, whole
  for (size_t i = 0; i < mine.outs.size(); ++i) results.emplace_back(mine.outs[i], whole.outs[i]);
  for (const int i : mine.op->updates()) results.emplace_back(mine.ins[i], whole.ins[i]);
  std::vector<DType> types;
  types.reserve(results.size());
  for (const auto& [cut, id] : results) types.push_back(whole_.values[id].desc.dtype);
  const std::vector<Known> wanted = recombiner_.leads() ? check_->expected(types) : std::vector<Known>();
  for (size_t r = 0; r < results.size(); ++r)
    compare(node, recombiner_.leads() ? wanted[r] : Known{}, results[r].first, results[r].second);
  check_.reset();
  ++compared_;
  for (const ValueId id : whole.ins)
    if (--uses_[static_cast<size_t>(id)] == 0 && !whole_.values[id].persistent()) known_.erase(id);
}

void WholeCheck::compare(size_t node, const Known& wanted, ValueId cut, ValueId whole) {
  Recombined found =
      recombiner_.collect(executor_.view(cut), layout_of(cut), whole_.values[whole].desc.shape);
  homes_[static_cast<size_t>(whole)] = cut;
  if (!recombiner_.leads()) return;
  if (is_float(found.desc.dtype)) {
    Known allowed = wanted;
    add_roundings(allowed, found);
    for (size_t copy = 0; copy < found.copies.size(); ++copy) {
      const Verdict verdict = judge(allowed, found.copies[copy]);
      if (verdict.share > 1)
        fail(node,
             strf("element %zu, which %s computed, differs from the whole by %.3g times what its roundings "
                  "allow: %s",
                  verdict.element, recombiner_.holders(found, layout_of(cut), copy, verdict.element).c_str(),
                  verdict.share, verdict.where.c_str()));
    }
  }
  known_[whole][cut] = std::move(found);
}

}  // namespace vitrail
