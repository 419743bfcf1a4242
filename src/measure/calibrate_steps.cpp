#include "measure/calibrate_steps.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "api/precision.h"
#include "base/error.h"
#include "base/timing.h"
#include "measure/synthetic_steps.h"
#include "measure/timing.h"
#include "models/zoo.h"
#include "plan/node_times.h"

namespace vitrail {

namespace {
// One model at the batches that matter.
struct Row {
  const char* arch;
  int64_t image, depth;
  std::vector<int64_t> batches;
  bool brief = false;  // one of a short list
};

// With few images all weights of a network pass the caches in every run, so there are as many blocks here as
// outgrow them; with many images it is the activations that do, and two blocks are enough. The last block
// computes its attention and its MLP for the class token alone, so that one block would have neither.
const std::vector<Row>& processor_rows() {
  static const std::vector<Row> all = {
      {"vit_tiny_patch16_224", 224, 12, {1, 8}, true}, {"vit_tiny_patch16_224", 224, 2, {64}},
      {"vit_tiny_patch16_224", 224, 2, {256}},         {"vit_tiny_patch16_224", 512, 3, {1, 6}},
      {"vit_tiny_patch16_224", 1024, 2, {1}},          {"vit_small_patch16_224", 224, 12, {1, 4}},
      {"vit_small_patch16_224", 224, 2, {24}},         {"vit_small_patch16_224", 224, 2, {96}},
      {"vit_small_patch16_224", 1024, 2, {1}},         {"vit_base_patch32_224", 224, 6, {1, 16}},
      {"vit_base_patch16_224", 224, 12, {1}},          {"vit_base_patch16_224", 224, 3, {2, 8}, true},
      {"vit_base_patch16_224", 224, 2, {32}},          {"vit_base_patch16_224", 384, 2, {1}},
      {"vit_base_patch16_224", 1024, 2, {1}},          {"vit_large_patch16_224", 224, 6, {1}},
      {"vit_large_patch16_224", 224, 2, {4}},          {"vit_large_patch16_224", 224, 2, {16}},
      {"vit_huge_patch14_224", 224, 4, {1}},           {"vit_huge_patch14_224", 224, 2, {3}, true}};
  return all;
}

const std::vector<Row>& gpu_rows() {
  static const std::vector<Row> all = {{"vit_tiny_patch16_224", 224, 6, {1, 16, 256}, true},
                                       {"vit_tiny_patch16_224", 512, 3, {32}},
                                       {"vit_tiny_patch16_224", 1024, 2, {4}},
                                       {"vit_small_patch16_224", 224, 4, {1, 16, 256}},
                                       {"vit_small_patch16_224", 1024, 2, {6}},
                                       {"vit_base_patch32_224", 224, 3, {64, 512}},
                                       {"vit_base_patch16_224", 224, 3, {1, 8, 64, 256}, true},
                                       {"vit_base_patch16_224", 384, 2, {32}},
                                       {"vit_base_patch16_224", 1024, 2, {4}},
                                       {"vit_large_patch16_224", 224, 2, {1, 8, 64}},
                                       {"vit_large_patch16_224", 384, 2, {16}},
                                       {"vit_huge_patch14_224", 224, 2, {1, 8, 64}, true}};
  return all;
}

// Times of a program's nodes by run, and what the curves are to learn from them.
class NodeSamples {
 public:
  explicit NodeSamples(const ExecutionPlan& plan) : plan_(plan), taken_(plan.program.nodes.size()) {}

  // Takes the times of a run; returns what its nodes took together.
  double take(const Executor& program) {
    double sum = 0;
    for (size_t i = 0; i < taken_.size(); ++i)
      if (const NodeTime& time = program.times()[i]; time.runs > 0) {
        taken_[i].push_back(time.seconds / static_cast<double>(time.runs));
        sum += time.seconds;
      }
    return sum;
  }
  // Settles each node on the median of its runs.
  void settle() {
    for (const std::vector<double>& times : taken_) seconds_.push_back(spread_of(times).median);
  }
  const ExecutionPlan& plan() const { return plan_; }
  void scale(double factor) {
    for (double& seconds : seconds_) seconds *= factor;
  }
  bool counts(size_t node) const { return plan_.program.nodes[node].op->is_launched(); }
  size_t count() const {
    size_t nodes = 0;
    for (size_t i = 0; i < taken_.size(); ++i) nodes += counts(i) ? 1 : 0;
    return nodes;
  }
  // The time of a node when each takes so much more, or less down to a part of what was measured.
  double adjusted(size_t node, double more) const {
    constexpr double kLeastPart = 0.15;
    return std::max({seconds_[node] + more, kLeastPart * seconds_[node], 1e-9});
  }
  double sum(double more) const {
    double seconds = 0;
    for (size_t i = 0; i < seconds_.size(); ++i)
      if (counts(i)) seconds += adjusted(i, more);
    return seconds;
  }
  // Adds one point for all nodes that are alike: their mean, so that the sum stays.
  void add_to(CostCurves& curves, double more) const {
    std::map<std::pair<CostCurve, std::array<double, 4>>, std::vector<double>> alike;
    for (size_t i = 0; i < seconds_.size(); ++i)
      if (counts(i)) alike[{curve_of(plan_, i), size_of(plan_, i).tied()}].push_back(adjusted(i, more));
    for (const auto& [key, times] : alike) {
      const auto& [flops, bytes, first, last] = key.second;
      curves.add(key.first,
                 {{flops, bytes, first, last},
                  std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size())});
    }
  }

 private:
  const ExecutionPlan& plan_;
  std::vector<std::vector<double>> taken_;
  std::vector<double> seconds_;
};

// On a processor nodes are timed within the whole run. What that takes beside them, the copy of its images
// above all, is a point of its own, since it is not the nodes' to share: the first program takes the images.
void add_beside(std::vector<NodeSamples>& programs, double whole, double beside, CostCurves& curves) {
  constexpr double kLeast = 1e-6;
  beside = std::clamp(beside, kLeast, std::max(whole / 2, kLeast));
  double sum = 0;
  for (const NodeSamples& program : programs) sum += program.sum(0);
  for (NodeSamples& program : programs) program.scale((whole - beside) / sum);  // medians need not add up
  const ExecutionPlan& fed = programs.front().plan();
  curves.add(curve_of_run(fed), {size_of_run(fed), beside});
}

// A node timed alone takes another time than in a whole run: on a GPU the timestamps between nodes cost more
// than the gaps of a replayed graph. Each node takes the same correction, so that they add up to the whole.
double correction(const std::vector<NodeSamples>& programs, double whole) {
  const auto sum = [&](double more) {
    double seconds = 0;
    for (const NodeSamples& program : programs) seconds += program.sum(more);
    return seconds;
  };
  size_t nodes = 0;
  for (const NodeSamples& program : programs) nodes += program.count();
  double low = -whole, high = whole / static_cast<double>(nodes);
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (sum(middle) < whole ? low : high) = middle;
  }
  return (low + high) / 2;
}

struct Timed {
  std::function<void()> run;              // one whole run, finished when it returns
  std::function<void(bool)> time_nodes;   // from now on, where that slows a run
  std::function<void()> reset;            // of the times of nodes
  std::vector<const Executor*> programs;  // what a run consists of
};

// Runs until the budget is spent, three times at least (twice where a run is longer than the budget), and
// returns the median seconds of a run. `after` gets those of each.
double median_seconds(const Timed& timed, double budget, const std::function<void(double)>& after) {
  const Clock::time_point begin = Clock::now();
  std::vector<double> seconds;
  const auto least = [&] { return seconds.empty() || seconds.front() < budget ? 3u : 2u; };
  while (seconds.size() < least() || (seconds_since(begin) < budget && seconds.size() < 200)) {
    timed.reset();
    const Clock::time_point start = Clock::now();
    timed.run();
    seconds.push_back(seconds_since(start));
    after(seconds.back());
  }
  return spread_of(seconds).median;
}

double measure(const Timed& timed, bool records, double budget, CostCurves* curves) {
  std::vector<NodeSamples> samples;
  for (const Executor* program : timed.programs) samples.emplace_back(program->plan());
  std::vector<double> beside;  // the nodes, by run
  const auto take = [&](double seconds) {
    for (size_t i = 0; i < samples.size(); ++i) seconds -= samples[i].take(*timed.programs[i]);
    beside.push_back(seconds);
  };
  for (int i = 0; i < (records ? 3 : 1); ++i) timed.run();  // a GPU records the second run
  const double whole =
      median_seconds(timed, budget, records ? [](double) {} : std::function<void(double)>(take));
  if (!curves) return whole;
  if (records) {
    timed.time_nodes(true);
    timed.run();
    median_seconds(timed, budget / 2, take);
  }
  for (NodeSamples& program : samples) program.settle();
  if (!records) add_beside(samples, whole, spread_of(beside).median, *curves);
  const double more = records ? correction(samples, whole) : 0;
  for (const NodeSamples& program : samples) program.add_to(*curves, more);
  return whole;
}

StepMeasurement measure_inference(const CalibrationStep& step, const DeviceInfo& device, double budget,
                                  CostCurves* curves, const DeviceFile* file) {
  VitConfig config = find_architecture(step.arch).config;
  config.image_height = config.image_width = step.image;
  config.depth = step.depth;
  RankContext rank(device);
  EngineOptions options{.backend = device.backend, .batch = step.batch, .rank = &rank};
  set_precision(step.dtype, device.backend, options);
  Engine engine(config, options);
  const std::vector<float> images = rule_images(config, step.batch);
  bool filled = false;
  const Timed timed{.run =
                        [&] {
                          if (filled && engine.keeps_inputs())
                            engine.run_again();
                          else
                            engine.run(images, step.batch);
                          filled = true;
                          engine.finish();
                        },
                    .time_nodes = [&](bool wanted) { engine.time_nodes(wanted); },
                    .reset = [&] { engine.reset_times(); },
                    .programs = {&engine.executor()}};
  const double predicted = file ? run_seconds(engine.plan(), *file) : 0;
  return {measure(timed, device.records_graphs, budget, curves), predicted};
}

StepMeasurement measure_training(const CalibrationStep& step, const DeviceInfo& device, double budget,
                                 CostCurves* curves, const DeviceFile* file) {
  TrainConfig config;
  config.model.arch = step.arch;
  config.model.fields.image_height = config.model.fields.image_width = step.image;
  config.model.fields.depth = step.depth;
  config.model.given = {"image_height", "image_width", "depth"};
  config.train.batch = config.train.micro_batch = step.batch;
  config.train.dtype = enum_from_name<ComputeType>(step.dtype).value();
  const RunPlan plan(config, 1000, find_backend(device.backend), device);
  RankContext rank(device);
  SyntheticSteps steps(plan, rank);
  const Timed timed{.run = [&] { steps.run(); },
                    .time_nodes =
                        [&](bool wanted) {
                          steps.micro().time_nodes(wanted);
                          steps.update().time_nodes(wanted);
                        },
                    .reset = [&] { steps.reset_times(); },
                    .programs = {&steps.micro(), &steps.update()}};
  const double predicted =
      file ? run_seconds(plan.step().micro, *file) + run_seconds(plan.step().update, *file) : 0;
  return {measure(timed, device.records_graphs, budget, curves), predicted};
}
}  // namespace

std::string CalibrationStep::text() const {
  return strf("%s at %lld px, %lld blocks, batch %lld, %s, %s", arch.c_str(), static_cast<long long>(image),
              static_cast<long long>(depth), static_cast<long long>(batch),
              training ? "training" : "inference", dtype.c_str());
}

std::vector<std::string> calibration_types(const DeviceInfo& device) {
  return find_entry(device.backend).types;
}

std::vector<CalibrationStep> calibration_steps(const DeviceInfo& device,
                                               const std::vector<std::string>& dtypes, bool brief) {
  std::vector<CalibrationStep> steps;
  for (const std::string& dtype : dtypes)
    for (const Row& row : device.shares_host_memory ? processor_rows() : gpu_rows()) {
      if (brief && !row.brief) continue;
      for (size_t i = 0; i < row.batches.size(); ++i)
        for (const bool training : {false, true}) {
          if (training && dtype == "int8") continue;
          if (brief && i != row.batches.size() / 2) continue;
          steps.push_back({row.arch, row.image, row.depth, row.batches[i], training, dtype});
        }
    }
  return steps;
}

StepMeasurement measure_step(const CalibrationStep& step, const DeviceInfo& device, double budget,
                             CostCurves* curves, const DeviceFile* file) {
  return (step.training ? measure_training : measure_inference)(step, device, budget, curves, file);
}

}  // namespace vitrail
