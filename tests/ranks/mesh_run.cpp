#include "mesh_run.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "backend/cpu/kernels.h"
#include "backend/ref/kernels.h"
#include "base/rng.h"
#include "runtime/transfer.h"
#include "tensor/layout.h"
#include "train/model_setup.h"

namespace vitrail {

namespace {

float noise(uint64_t stream, uint64_t index) {
  return static_cast<float>(counter_hash(stream, index) >> 40) / static_cast<float>(1 << 23) - 1.0f;
}

void fill_by_name(const std::string& name, const Shape&, std::span<float> target) {
  const uint64_t stream = name_key(name);
  const bool one = name.find("norm") != std::string::npos && name.ends_with("weight");
  for (size_t i = 0; i < target.size(); ++i) target[i] = (one ? 1.0f : 0.0f) + 0.1f * noise(stream, i);
}

// One image as it would come from a dataset.
struct Sample {
  std::vector<float> image, target;
};
Sample sample_at(uint64_t position, const VitConfig& m) {
  Sample s;
  for (int64_t p = 0; p < m.channels * m.image_height * m.image_width; ++p)
    s.image.push_back(noise(position + 1, static_cast<uint64_t>(p)));
  const auto label = static_cast<int64_t>(counter_hash(7, position) % static_cast<uint64_t>(m.classes));
  for (int64_t k = 0; k < m.classes; ++k) s.target.push_back(k == label ? 0.9f : 0.1f / 9.0f);
  return s;
}

void mix_in(std::vector<float>& values, const std::vector<float>& others, float share) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = share * values[i] + (1 - share) * others[i];
}

// The samples of a micro-batch that one rank gets; each is mixed with the other of its pair.
struct Samples {
  std::vector<float> images, targets, weights;
};
Samples samples_of(int64_t first, int64_t count, int64_t batch, const StepConfig& config) {
  Samples s;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<uint64_t>(first + i);
    Sample one = sample_at(at, config.model);
    const Sample other = sample_at(at / kMixed * kMixed + (kMixed - 1 - at % kMixed), config.model);
    const float share = 0.5f + 0.4f * noise(11, at / kMixed);
    mix_in(one.image, other.image, share);
    mix_in(one.target, other.target, share);
    s.images.insert(s.images.end(), one.image.begin(), one.image.end());
    s.targets.insert(s.targets.end(), one.target.begin(), one.target.end());
    s.weights.push_back(1.0f / static_cast<float>(batch));
  }
  return s;
}

class RankRun {
 public:
  RankRun(const StepConfig& config, MeshCommunicators* ranks, int64_t accumulation, const Backend& backend,
          const MeshDevices& devices)
      : accumulation_(accumulation),
        rank_(devices.open ? RankContext(devices.info, devices.open()) : RankContext(cpu_device(1))),
        plan_(plan_step(config, backend, rank_.device)),
        step_((join(ranks, devices), plan_), rank_) {
    if (devices.node_by_node)
      for (Executor* program : {&step_.micro(), step_.last_micro(), &step_.update()})
        if (program) program->time_nodes(true);
    step_.start(fill_by_name);
  }

  double update(int64_t number) {
    Samples s;
    const auto batch_of = [&](int64_t micro, bool) { return micro_batch(number, micro, s); };
    if (plan_.pipelined)
      step_.run_pipeline(batch_of);
    else
      for (int64_t micro = 0; micro < accumulation_; ++micro) step_.run_micro(batch_of(micro, true));
    step_.run_update(1e-3);
    return step_.take_loss();
  }

  // The logits of the first images, of all ranks along dp.
  std::vector<float> evaluate(bool average) {
    const int64_t global = plan_.config.eval_batch;
    const Dim mine = rows_of(global, 1);
    const Samples s = samples_of(mine.offset, mine.local, global, plan_.config);
    const std::span<const float> logits = step_.evaluate(s.images, mine.local, average);
    return {logits.begin(), logits.end()};
  }

  int64_t first_evaluated() const { return rows_of(plan_.config.eval_batch, 1).offset; }

  // Reads every value whole on the first rank; the others give their parts.
  void store_in(std::map<std::string, std::vector<double>>& values) {
    WholeValues& whole = step_.whole();
    if (rank_.ranks->mesh().rank != 0) return whole.serve();
    for (const PersistentValue& value : whole.values()) {
      const bool average = value.name.starts_with("ema/") && !value.is_container;
      if (value.kind != ValueKind::kParameter && !average) continue;
      std::vector<std::byte> bytes(WholeValues::bytes_of(value));
      whole.read(value, bytes);
      std::vector<double>& doubles = values[value.name];
      doubles.resize(bytes.size() / size_of(value.desc.dtype));
      convert_floats(bytes.data(), value.desc.dtype, doubles.data(), DType::kF64, doubles.size());
    }
    whole.end_serving();
  }

  size_t locked() {
    size_t bytes = 0;
    for (Executor* program : {&step_.micro(), step_.last_micro(), &step_.update()})
      if (program) bytes += program->page_locked_bytes();
    return bytes;
  }
  size_t planned_locked() const {
    const Mesh& mesh = plan_.config.distribution.mesh;
    size_t bytes = staged_bytes(plan_.micro.program, mesh) + staged_bytes(plan_.update.program, mesh);
    return bytes + (plan_.last_micro ? staged_bytes(plan_.last_micro->program, mesh) : 0);
  }
  size_t recordings() { return (step_.last_micro() ? *step_.last_micro() : step_.micro()).recordings(); }

  size_t planned() const { return plan_.peak_bytes(); }
  size_t allocated() const { return step_.allocated_bytes(); }

 private:
  void join(MeshCommunicators* ranks, const MeshDevices& devices) {
    rank_.ranks = ranks;
    if (devices.join && ranks->mesh().world() > 1) devices.join(rank_, *ranks);
  }

  Dim rows_of(int64_t global, int64_t unit) const {
    Distribution how = plan_.config.distribution;
    how.batch_unit = unit;
    const Dim batch('B', global);
    return part_of(batch, cuts_of(batch, Axis::kData, how), how.mesh.coordinate(Axis::kData));
  }

  MicroBatch micro_batch(int64_t number, int64_t micro, Samples& s) const {
    const int64_t global = plan_.config.micro_batch, batch = accumulation_ * global;
    const Dim mine = rows_of(global, plan_.config.distribution.batch_unit);
    s = samples_of(number * batch + micro * global + mine.offset, mine.local, batch, plan_.config);
    return {.images = s.images,
            .targets = s.targets,
            .weights = s.weights,
            .teacher = {},
            .seed = 3,
            .step = number,
            .position = micro * global,
            .last = micro + 1 == accumulation_};
  }

  int64_t accumulation_;
  RankContext rank_;
  StepPlan plan_;
  TrainStep step_;
};

}  // namespace

StepConfig usual_step(DType master) {
  StepConfig step;
  VitConfig& m = step.model;
  m.image_height = m.image_width = 32;
  m.patch = 8;
  m.width = 48, m.depth = 2, m.heads = 12, m.mlp = 96, m.classes = 10;
  step.distribution.batch_unit = kMixed;
  step.eval_batch = 8;
  step.master = master;
  step.precision.compute = step.precision.residual = master;
  step.dropout = 0.1, step.drop_path = 0.1;
  step.optim.name = "adamw";
  step.optim.weight_decay = 0.05;
  step.optim.clip_norm = 1;
  step.optim.ema_decay = 0.9;
  return step;
}

void widen(StepConfig& step) {
  VitConfig& m = step.model;
  m.patch = 4;
  m.width = 192, m.depth = 4, m.mlp = 768;
}

void train_parameters(StepConfig& step) {
  const bool some = step.trained.size() == 1 && step.trained[0].name.ends_with('.');
  const std::string only = some ? step.trained[0].name : "";
  step.trained.clear();
  for (const ParamSpec& spec : step_params(step.model, step.lora)) {
    const bool adapts = spec.name.find(".lora_") != std::string::npos || spec.name.starts_with("head.");
    if ((step.lora.rank > 0 && !adapts) || !spec.name.starts_with(only)) continue;
    step.trained.push_back({spec.name, {step.master, spec.shape}, 1, spec.shape.rank() > 1 ? 0.05 : 0});
  }
}

MeshOutcome run_mesh(const MeshCase& c, DType master, int64_t updates, const MeshDevices& devices) {
  StepConfig config = usual_step(master);
  if (c.model.change) c.model.change(config);
  if (c.change) c.change(config);
  config.micro_batch = c.batch / c.accumulation;
  config.stages.micros = c.accumulation;
  train_parameters(config);
  const Mesh mesh{c.mesh};
  const auto size = static_cast<size_t>(mesh.world());
  const std::vector<size_t> by_rank(size);
  MeshOutcome outcome{
      std::vector<double>(static_cast<size_t>(updates)), {}, by_rank, by_rank, by_rank, by_rank};
  outcome.logits.resize(size), outcome.first_row.resize(size);
  const Backend& backend = devices.backend         ? *devices.backend
                           : master == DType::kF64 ? ref_backend()
                                                   : cpu_backend();
  std::vector<std::unique_ptr<Communicator>> communicators = thread_communicators(mesh.world());
  std::mutex mutex;
  const auto run_rank = [&](int rank) {
    StepConfig mine = config;
    mine.distribution.mesh = mesh.of_rank(rank);
    MeshCommunicators ranks(std::move(communicators[static_cast<size_t>(rank)]), mine.distribution.mesh);
    try {
      RankRun run(mine, &ranks, c.accumulation, backend, devices);
      const Mesh& place = mine.distribution.mesh;
      const bool counts = place.coordinate(Axis::kTensor) == 0 && place.coordinate(Axis::kSequence) == 0;
      for (int64_t i = 0; i < updates; ++i) {
        const double loss = run.update(i);
        const std::lock_guard lock(mutex);
        if (counts) outcome.losses[static_cast<size_t>(i)] += loss;
      }
      const std::vector<float> logits = run.evaluate(true);
      run.store_in(outcome.values);
      const std::lock_guard lock(mutex);
      outcome.planned[static_cast<size_t>(rank)] = run.planned();
      outcome.allocated[static_cast<size_t>(rank)] = run.allocated();
      outcome.planned_locked[static_cast<size_t>(rank)] = run.planned_locked();
      outcome.locked[static_cast<size_t>(rank)] = run.locked();
      outcome.logits[static_cast<size_t>(rank)] = logits;
      outcome.first_row[static_cast<size_t>(rank)] = run.first_evaluated();
      if (rank == 0) outcome.recordings = run.recordings();
    } catch (const std::exception& error) {
      ADD_FAILURE() << c.name << " rank " << rank << ": " << error.what();
      ranks.abort(error.what());
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(mesh.world()));
  for (int rank = 0; rank < mesh.world(); ++rank) threads.emplace_back(run_rank, rank);
  for (std::thread& thread : threads) thread.join();
  return outcome;
}

}  // namespace vitrail
