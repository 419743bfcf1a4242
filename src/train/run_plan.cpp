#include "train/run_plan.h"

#include <algorithm>
#include <set>

#include "models/zoo.h"
#include "plan/largest_batch.h"
#include "train/teacher.h"

namespace vitrail {

namespace {

VitConfig described_model(const ModelSettings& settings) {
  VitConfig config = !settings.init.empty()
                         ? open_model(settings.init, {.arch = settings.arch})->card().config
                     : settings.arch.empty() ? VitConfig()
                                             : find_architecture(settings.arch).config;
  if (settings.given.contains("channels")) config.channels = settings.fields.channels;
  if (settings.given.contains("classes")) config.classes = settings.fields.classes;
  return config;
}

bool opens(const DataConfig& data) {
  try {
    open_data(data);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Replaces the data by a synthetic dataset of as many classes: the plan does not depend on the images.
int64_t assume_data(std::optional<int64_t> asked, TrainConfig& config) {
  const VitConfig model = described_model(config.model);
  const auto named = static_cast<int64_t>(config.data.class_names.size());
  const int64_t classes = asked ? *asked : named > 0 ? named : model.classes;
  VT_REQUIRE(classes >= 1, ErrorKind::kUsage,
             "training needs classes, and the model has no head: model.classes says how many");
  config.data = DataConfig();
  config.data.train =
      strf("synthetic:%lldx8x8x%lldx%lld", static_cast<long long>(model.channels),
           static_cast<long long>(classes), static_cast<long long>(std::max<int64_t>(classes, 64)));
  return classes;
}

}  // namespace

namespace {
// The number of ranks that a mesh has by itself; a size that was left open counts one.
int ranks_of(const MeshConfig& mesh) {
  validate(mesh);
  return static_cast<int>(std::max<int64_t>(mesh.dp, 1) * mesh.tp * mesh.sp * mesh.pp);
}

// Returns whether a rank is the first or the last along every axis but that of the stages: the floor rule
// gives the last one the largest part.
bool at_a_corner(const Mesh& mesh) {
  return std::all_of(std::begin(kAxes), std::end(kAxes), [&](Axis axis) {
    return axis == Axis::kPipeline || mesh.coordinate(axis) == 0 ||
           mesh.coordinate(axis) == mesh.size(axis) - 1;
  });
}
}  // namespace

RunPlan::RunPlan(const TrainConfig& config, std::optional<int64_t> classes, const Backend& backend,
                 const DeviceInfo& device)
    : RunPlan(config, classes, backend, device, {0, ranks_of(config.mesh), ranks_of(config.mesh)}) {
  constexpr int kPlanAll = 8;
  const int world = ranks();
  const Mesh mesh = setup_.step.distribution.mesh;
  const std::vector<int64_t> shares = setup_.shares();
  const auto images_of = [&](int rank) {
    return shares[static_cast<size_t>(mesh.of_rank(rank).coordinate(Axis::kData))];
  };
  std::set<int64_t> seen = {shares[0]};
  NeededLeast least{0, peak_bytes()};
  std::vector<RankNeed> needs = {{0, shares[0], peak_bytes()}};
  std::vector<Stage> stages(step_.pipelined ? static_cast<size_t>(mesh.size(Axis::kPipeline)) : 0);
  note_stage(stages);
  for (int rank = 1; rank < world; ++rank) {
    if (world > kPlanAll && !at_a_corner(mesh.of_rank(rank)) && !seen.insert(images_of(rank)).second)
      continue;
    RunPlan other(config, classes, backend, device, {rank, world, world});
    needs.push_back({rank, images_of(rank), other.peak_bytes()});
    other.note_stage(stages);
    if (other.peak_bytes() < least.bytes) least = {rank, other.peak_bytes()};
    if (other.peak_bytes() > peak_bytes()) *this = std::move(other);
  }
  least_ = least;
  if (setup_.config.mesh.balance == std::vector<std::string>{"auto"})
    notes_.emplace_back("mesh.balance=auto is measured when a run starts; planned with even shares");
  if (!setup_.config.mesh.balance.empty()) needs_ = std::move(needs);
  stages_ = std::move(stages);
}

void RunPlan::note_stage(std::vector<Stage>& stages) const {
  if (stages.empty()) return;
  const int number = setup_.step.distribution.mesh.coordinate(Axis::kPipeline);
  Stage& stage = stages[static_cast<size_t>(number)];
  if (peak_bytes() <= stage.peak_bytes) return;
  stage = {rank(), peak_bytes(), most_in_flight(step_.turns(), number), update_flops(), 0};
  for (const CollectiveRow& row : collectives())
    if (row.is_send) stage.sent_bytes += row.bytes;
}

std::string RunPlan::blocks_of(int stage) const {
  const std::vector<int>& begins = step_.config.stages.begins;
  const int stages = setup_.step.distribution.mesh.size(Axis::kPipeline);
  std::string text;
  for (size_t chunk = static_cast<size_t>(stage); chunk <= begins.size();
       chunk += static_cast<size_t>(stages)) {
    const int first = chunk == 0 ? 0 : begins[chunk - 1];
    const int last =
        chunk == begins.size() ? static_cast<int>(setup_.step.model.depth) - 1 : begins[chunk] - 1;
    text += (text.empty() ? "" : ", ") + (first == last ? strf("%d", first) : strf("%d-%d", first, last));
  }
  return text;
}

RunPlan::RunPlan(TrainConfig config, std::optional<int64_t> classes, const Backend& backend,
                 DeviceInfo device, RankPlace place)
    : backend_(&backend), device_(std::move(device)) {
  set_up_run(std::move(config), classes, place);
  step_ = plan(setup_.step);
  teacher_bytes_ = teacher_bytes(setup_.train_share.rows);
}

std::vector<CollectiveRow> RunPlan::collectives() const {
  return collective_rows(step_, setup_.config.train.accumulation);
}

void RunPlan::set_up_run(TrainConfig config, std::optional<int64_t> asked, RankPlace place) {
  if (!config.data.train.empty() && !asked) {
    try {
      setup_ = set_up(config, device_, place);
      notes_ = setup_.notes;
      return;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData || opens(config.data)) throw;
      notes_.push_back(error.message());
    }
  }
  knows_data_ = false;
  const int64_t classes = assume_data(asked, config);
  // A dataset of unknown size is not kept on the GPU.
  if (!device_.shares_host_memory && config.loader.on_device == OnDevice::kAuto)
    config.loader.on_device = OnDevice::kImages;
  notes_.push_back(strf("no data: %lld classes assumed%s", static_cast<long long>(classes),
                        asked ? "" : ", the config's or the model's own; --classes gives another number"));
  setup_ = set_up(config, device_, place);
  if (const std::string text = needless_text(setup_.config.mesh); !text.empty()) notes_.push_back(text);
}

StepPlan RunPlan::plan(const StepConfig& config) const {
  return plan_step(config, *backend_, device_);
}

std::unique_ptr<Teacher> RunPlan::teacher(int64_t micro_batch) const {
  if (setup_.config.distill.kind == DistillKind::kNone) return nullptr;
  return std::make_unique<Teacher>(setup_.config.distill, setup_.model->card, micro_batch,
                                   setup_.step.precision, *backend_, device_);
}

size_t RunPlan::teacher_bytes(int64_t micro_batch) const {
  const std::unique_ptr<Teacher> planned = teacher(micro_batch);
  return planned ? planned->bytes() : 0;
}

int64_t RunPlan::total_steps() const {
  return knows_data_ || setup_.config.train.steps > 0 ? setup_.total_steps : 0;
}

NamedBytes RunPlan::memory_rows() const {
  NamedBytes beside;
  if (loaders_beside() > 0) beside.emplace_back("batches being loaded", loaders_beside());
  if (decoding_beside() > 0) beside.emplace_back(kDecodingRow, decoding_beside());
  if (teacher_bytes_ > 0) beside.emplace_back("teacher", teacher_bytes_);
  return step_.memory_rows(beside);
}

NamedBytes RunPlan::host_rows() const {
  NamedBytes rows = step_.host_rows();
  if (rows.empty() || device_.shares_host_memory) return {};
  rows.emplace_back("batches being loaded", setup_.loader_bytes());
  if (setup_.decoding_bytes > 0) rows.emplace_back(kDecodingRow, setup_.decoding_bytes);
  return rows;
}

std::optional<RunPlan::Offloaded> RunPlan::offload_that_fits(size_t available, bool with_recompute) const {
  if (device_.shares_host_memory || step_.pipelined) return std::nullopt;
  for (OffloadChoice& choice : offload_choices(setup_.step)) {
    if (choice.config.recompute.level != setup_.step.recompute.level && !with_recompute) continue;
    const StepPlan step = plan(choice.config);
    const size_t peak = step.peak_bytes() + other_bytes();
    if (peak <= available) return Offloaded{std::move(choice.settings), peak, step.host_bytes()};
  }
  return std::nullopt;
}

int64_t RunPlan::trained_params() const {
  int64_t count = 0;
  for (const TrainedParam& param : setup_.step.trained) count += param.desc.elems();
  return count;
}

namespace {
double flops_of(const StepPlan& step, int64_t accumulation) {
  double flops = step.micro.program.cost().flops * static_cast<double>(step.pipelined ? 1 : accumulation) +
                 step.update.program.cost().flops;
  for (size_t i = 0; step.offload && i < step.offload->trained; ++i)
    flops += step.offload->buckets[i].update->program.cost().flops;
  return flops;
}
}  // namespace

double RunPlan::update_flops() const {
  return flops_of(step_, setup_.config.train.accumulation);
}

double RunPlan::update_seconds(const DeviceFile& device) const {
  return step_.update_seconds(setup_.config.train.accumulation, device);
}

std::vector<RunPlan::Level> RunPlan::recompute_levels() const {
  std::vector<Level> levels;
  for (const Recompute level :
       {Recompute::kNone, Recompute::kNorms, Recompute::kCheap, Recompute::kMlp, Recompute::kBlock}) {
    StepConfig config = setup_.step;
    const bool own = level == config.recompute.level;
    config.recompute.level = level;
    const StepPlan step = own ? step_ : plan(config);
    levels.push_back(
        {level, step.peak_bytes() + other_bytes(), flops_of(step, setup_.config.train.accumulation)});
  }
  return levels;
}

std::vector<RunPlan::Sums> RunPlan::kept_sums() const {
  const int64_t accumulation = setup_.config.train.accumulation;
  if (setup_.step.zero < 2 || setup_.step.distribution.mesh.size(Axis::kData) < 2 || accumulation < 2)
    return {};
  std::vector<Sums> choices;
  for (const KeptSums kept : {KeptSums::kPiece, KeptSums::kWhole}) {
    StepConfig config = setup_.step;
    const bool own = config.whole_sums == (kept == KeptSums::kWhole);
    config.whole_sums = kept == KeptSums::kWhole;
    const StepPlan step = own ? step_ : plan(config);
    double sent = 0;
    for (const CollectiveRow& row : collective_rows(step, accumulation)) sent += row.bytes;
    choices.push_back({kept, step.peak_bytes() + other_bytes(), sent});
  }
  return choices;
}

size_t RunPlan::peak_at(int64_t micro_batch) const {
  const bool own_eval_batch = setup_.config.train.eval_batch != setup_.config.train.micro_batch;
  StepConfig config = setup_.step;
  LoaderSettings train = setup_.loader_settings(Purpose::kTrain),
                 eval = setup_.loader_settings(Purpose::kEval);
  const int64_t dp = setup_.config.mesh.dp;
  config.micro_batch = micro_batch * dp;
  train.micro_batch = micro_batch;
  if (!own_eval_batch) {
    config.eval_batch = micro_batch * dp;
    eval.micro_batch = micro_batch;
  }
  const size_t device_bytes = plan(config).peak_bytes() + teacher_bytes(micro_batch);
  if (loaders_beside() == 0) return device_bytes;
  return device_bytes + decoding_beside() + Loader::staging_bytes(train) +
         (setup_.data.val ? Loader::staging_bytes(eval) : 0);
}

int64_t RunPlan::largest_micro_batch(size_t bytes) const {
  const AugmentConfig& augment = setup_.config.augment;
  return largest_batch(augment.mixes() ? augment.mix_group : 1, bytes,
                       [&](int64_t micro_batch) { return peak_at(micro_batch); });
}

void take_micro_batch(int64_t images, bool batch_holds, bool accumulation_holds, RunConfig& train) {
  train.micro_batch = images;
  if (!accumulation_holds) train.accumulation = 0;
  const bool fits = !accumulation_holds && train.batch % images == 0;
  if (!fits && !batch_holds) train.batch = 0;
}

}  // namespace vitrail
