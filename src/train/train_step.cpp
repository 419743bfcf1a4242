#include "train/train_step.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ops/turn.h"
#include "runtime/transfer.h"
#include "tensor/layout.h"

namespace vitrail {

namespace {

bool has_input(const ExecutionPlan& plan, std::string_view name) {
  return std::any_of(plan.program.values.begin(), plan.program.values.end(), [&](const Value& value) {
    return value.kind == ValueKind::kInput && value.name == name;
  });
}

Shape part_shape(const PersistentValue& value) {
  return value.logical.rank() > 0 ? value.logical : value.desc.shape;
}

std::unique_ptr<Executor> make_executor(const std::optional<ExecutionPlan>& plan,
                                        const PersistentStore& store, RankContext& rank, const Buffer* arena,
                                        const Buffer* staging = nullptr) {
  if (!plan) return nullptr;
  return std::make_unique<Executor>(*plan, store, rank, arena, staging);
}

}  // namespace

TrainStep::TrainStep(const StepPlan& plan, RankContext& rank)
    : plan_(plan),
      rank_(rank),
      store_(plan.layout, rank),
      whole_(store_, rank.ranks),
      arena_(plan.transient_bytes(), Category::kTransient, rank.memory()),
      staging_(plan.image_staging_bytes(), Category::kStaging, rank.memory()),
      prefetch_(plan.prefetch_bytes, rank),
      micro_(plan.micro, store_, rank, &arena_, &staging_),
      update_(plan.update, store_, rank, &arena_),
      eval_(plan.eval, store_, rank, &arena_, &staging_),
      last_micro_(make_executor(plan.last_micro, store_, rank, &arena_, &staging_)),
      eval_average_(make_executor(plan.eval_average, store_, rank, &arena_, &staging_)),
      refresh_(make_executor(plan.refresh, store_, rank, &arena_)),
      gather_(plan.offload ? make_executor(plan.offload->gather, store_, rank, &arena_) : nullptr),
      offload_(plan.offload ? std::make_unique<OffloadRun>(*plan.offload, store_, rank) : nullptr),
      filled_(rank.hardware->create_event()) {}

size_t TrainStep::allocated_bytes() const {
  return store_.bytes() + arena_.bytes() + staging_.bytes() + prefetch_.bytes() + update_.staging_bytes() +
         (refresh_ ? refresh_->staging_bytes() : 0) +
         (plan_.micro.device.shares_host_memory ? host_allocated_bytes() : 0);
}

size_t TrainStep::host_allocated_bytes() const {
  return store_.host_bytes() + (offload_ ? offload_->bytes() : 0);
}

void TrainStep::start(const ParamFiller& fill) {
  for (const PersistentValue& value : store_.layout().values())
    if (value.kind != ValueKind::kParameter && value.category != Category::kStaging && !value.contained)
      store_.clear(value);  // staged values are data
  for (const PersistentValue& value : store_.layout().values())
    if (value.kind == ValueKind::kParameter) start_parameter(value, fill);
  const double scale[] = {plan_.config.loss_scale.initial};
  write_bytes(rank_, store_.view(kLossScaleState), std::as_bytes(std::span(scale)));
  refresh();
}

// A file or an initialisation gives whole parameters, which averages start from, too.
void TrainStep::start_parameter(const PersistentValue& value, const ParamFiller& fill) {
  const Shape whole = whole_of(part_shape(value));
  std::vector<float> values(static_cast<size_t>(whole.elems()));
  fill(value.name, whole, values);
  write_own_part(value, values);
  if (store_.layout().has(ema_name(value.name)))
    write_own_part(store_.layout().at(ema_name(value.name)), values);
}

// Writes what this rank keeps of a whole value; with ZeRO that is a range of its part's elements.
void TrainStep::write_own_part(const PersistentValue& value, std::span<const float> whole) {
  const Shape part = part_shape(value);
  std::vector<float> mine(static_cast<size_t>(part.elems()));
  copy_out_part(part, sizeof(float), whole.data(), mine.data());
  const size_t first = value.logical.rank() > 0 ? static_cast<size_t>(value.desc.shape[0].offset) : 0;
  store_.write_floats(value, std::span(mine).subspan(first, static_cast<size_t>(value.desc.elems())));
}

void TrainStep::refresh() {
  if (refresh_) refresh_->run();
  averaged_ = true;
  compute_with(false);
}

void TrainStep::fill(const TensorView& target, std::span<const float> values) {
  VT_CHECK(static_cast<size_t>(target.desc().elems()) == values.size(), "%zu floats for %s", values.size(),
           to_string(target.desc()).c_str());
  write_floats(rank_, target, values);
}

void TrainStep::fill_bytes(const TensorView& target, std::span<const std::byte> bytes) {
  VT_CHECK(target.desc().bytes() == bytes.size(), "%zu bytes for %s", bytes.size(),
           to_string(target.desc()).c_str());
  write_bytes(rank_, target, bytes);
}

// Recipes are checked here, since kernels do not check them.
void TrainStep::check_recipes(const MicroBatch& batch, int32_t batch_rows) const {
  const int64_t rows = plan_.config.images == ImageForm::kStored ? plan_.config.stored_images : batch_rows;
  for (const ImageRecipe& r : batch.recipes)
    VT_CHECK(r.source < rows && r.erased >= 0 && r.erased <= ImageRecipe::kMostErased &&
                 (r.mix == ImageMix::kNone || (r.partner >= 0 && r.partner < batch_rows)),
             "a recipe for row %d of %lld, mixed with %d", r.source, static_cast<long long>(rows), r.partner);
}

void TrainStep::fill_images(const MicroBatch& batch) {
  const ImageForm form = plan_.config.images;
  Executor& program = program_of(batch);
  if (form == ImageForm::kFloats) {
    if (!use_prefetched("images", batch)) fill(program.input("images"), batch.images);
    return;
  }
  check_recipes(batch, static_cast<int32_t>(program.input("recipes").shape().local('B')));
  fill_bytes(program.input("recipes"), std::as_bytes(batch.recipes));
  if (form == ImageForm::kPixels && !use_prefetched("pixels", batch))
    fill_bytes(program.input("pixels"), std::as_bytes(batch.pixels));
}

void TrainStep::prefetch(int64_t index, std::span<const std::byte> images) {
  if (!prefetches()) return;
  prefetch_.send(images);
  prefetched_ = index;
}

bool TrainStep::use_prefetched(const char* input, const MicroBatch& batch) {
  if (batch.index < 0 || batch.index != prefetched_) return false;
  const TensorView target = program_of(batch).input(input);
  VT_CHECK(prefetch_.bytes() <= target.desc().bytes(), "%zu bytes for %s", prefetch_.bytes(), input);
  prefetch_.take(target.data());
  prefetched_ = -1;
  return true;
}

void TrainStep::drop_prefetched() {
  if (prefetched_ >= 0) rank_.hardware->finish();
  prefetched_ = -1;
}

void TrainStep::run_micro(const MicroBatch& batch) {
  Executor& program = program_of(batch);
  fill_images(batch);
  fill(program.input("targets"), batch.targets);
  fill(program.input("weights"), batch.weights);
  if (has_input(plan_.micro, "teacher")) fill(program.input("teacher"), batch.teacher);
  rank_.hardware->stream().record(*filled_);
  run_micro_again(batch);
}

void TrainStep::run_micro_again(const MicroBatch& batch) {
  compute_with(false);
  Executor& program = program_of(batch);
  if (has_input(plan_.micro, "counters")) fill_counters(program.input("counters"), batch);
  program.run();
  ran_ = &program;
}

void TrainStep::fill_counters(const TensorView& target, const MicroBatch& batch) {
  const int64_t counters[] = {batch.seed, batch.step, batch.position};
  write_bytes(rank_, target, std::as_bytes(std::span(counters)));
}

void TrainStep::run_pipeline(const BatchOf& batch_of) {
  VT_CHECK(plan_.pipelined, "the step is no stage of a pipeline");
  compute_with(false);
  micro_.on_turn([&](const TurnOp& turn, std::span<const TensorView> inputs) {
    if (!inputs.empty()) begin_turn(turn, inputs, batch_of);
  });
  micro_.run();
  micro_.on_turn({});
}

void TrainStep::begin_turn(const TurnOp& turn, std::span<const TensorView> inputs, const BatchOf& batch_of) {
  const std::vector<std::string>& names = turn.form().names;
  const bool data =
      std::any_of(names.begin(), names.end(), [](const auto& name) { return name != "counters"; });
  const MicroBatch batch = batch_of(turn.form().micro, data);
  for (size_t i = 0; i < names.size(); ++i) {
    const TensorView& target = inputs[i];
    if (names[i] == "counters") fill_counters(target, batch);
    if (names[i] == "images") fill(target, batch.images);
    if (names[i] == "pixels") fill_bytes(target, std::as_bytes(batch.pixels));
    if (names[i] == "targets") fill(target, batch.targets);
    if (names[i] == "weights") fill(target, batch.weights);
    if (names[i] != "recipes") continue;
    check_recipes(batch, static_cast<int32_t>(target.shape().local('B')));
    fill_bytes(target, std::as_bytes(batch.recipes));
  }
}

std::span<const float> TrainStep::floats(const TensorView& view, std::vector<float>& copy) const {
  const auto count = static_cast<size_t>(view.desc().elems());
  if (view.dtype() == DType::kF32 && rank_.hardware->shares_host_memory()) return {view.as<float>(), count};
  copy.resize(count);
  read_floats(rank_, view, copy);
  return copy;
}

std::span<const float> TrainStep::losses() const {
  return floats(ran_->output("loss"), losses_);
}
std::span<const float> TrainStep::logits() const {
  return floats(ran_->output("logits"), logits_);
}

double TrainStep::take_loss() {
  if (!store_.layout().has(kLossSums)) return 0;  // the last stage of a pipeline has them
  const TensorView sums = store_.view(kLossSums);
  std::vector<double> places(static_cast<size_t>(sums.desc().elems()));
  read_doubles(rank_, sums, places);
  rank_.hardware->clear(sums.data(), sums.desc().bytes());
  return std::accumulate(places.begin(), places.end(), 0.0);
}

CollectiveTimes TrainStep::take_collective_times() {
  CollectiveTimes all;
  for (Executor* program : {&micro_, last_micro_.get(), &update_, gather_.get()})
    if (program) all.add(std::exchange(program->collective_times(), {}));
  return all;
}

std::span<const float> TrainStep::evaluate(std::span<const float> images, int64_t count, bool average) {
  compute_with(average);
  Executor& executor = average && eval_average_ ? *eval_average_ : eval_;
  const bool reads = has_input(executor.plan(), "images");  // only the first stage of a pipeline does
  const int64_t batch = executor.output("logits").shape().local('B');
  VT_CHECK(count >= 1 && count <= batch, "%lld images for a batch of %lld", static_cast<long long>(count),
           static_cast<long long>(batch));
  if (reads) write_floats(rank_, executor.input("images"), images);
  executor.run();
  const auto logits = floats(executor.output("logits"), logits_);
  return logits.first(logits.size() / static_cast<size_t>(batch) * static_cast<size_t>(count));
}

}  // namespace vitrail
