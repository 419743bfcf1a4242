#include "train/teacher.h"

#include <algorithm>
#include <cmath>

#include "io/source_identity.h"
#include "passes/pipeline.h"
#include "runtime/transfer.h"
#include "telemetry/confusion.h"
#include "train/model_setup.h"

namespace vitrail {

namespace {

void require_alike(const ModelCard& teacher, const ModelCard& student) {
  const VitConfig &t = teacher.config, &s = student.config;
  VT_REQUIRE(t.image_height == s.image_height && t.image_width == s.image_width && t.channels == s.channels,
             ErrorKind::kConfig, "distill.teacher takes images of %lld x %lld, the student of %lld x %lld",
             static_cast<long long>(t.image_height), static_cast<long long>(t.image_width),
             static_cast<long long>(s.image_height), static_cast<long long>(s.image_width));
  VT_REQUIRE(teacher.labels.empty() || student.labels.empty() || teacher.labels == student.labels ||
                 t.classes != s.classes,
             ErrorKind::kConfig,
             "distill.teacher's classes have other names or another order than the data's");
  VT_REQUIRE(t.classes == s.classes, ErrorKind::kConfig,
             "distill.teacher knows %lld classes, the data has %lld", static_cast<long long>(t.classes),
             static_cast<long long>(s.classes));
  VT_REQUIRE(
      teacher.preprocess.mean == student.preprocess.mean && teacher.preprocess.std == student.preprocess.std,
      ErrorKind::kConfig,
      "distill.teacher normalises images differently from the student: set "
      "preprocess.mean and preprocess.std to the teacher's");
}

void softmax(std::span<const float> logits, double temperature, std::span<float> target) {
  const float top = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i)
    total += target[i] = static_cast<float>(std::exp(static_cast<double>(logits[i] - top) / temperature));
  for (float& value : target) value = static_cast<float>(value / total);
}

}  // namespace

std::unique_ptr<OpenedModel> open_teacher(const DistillConfig& config, const VitConfig& student) {
  return open_model(config.teacher,
                    {.arch = {}, .image_height = student.image_height, .image_width = student.image_width});
}

Json teacher_facts(const DistillConfig& config, const VitConfig& student) {
  if (config.kind == DistillKind::kNone) return Json::object();
  const std::unique_ptr<OpenedModel> teacher = open_teacher(config, student);
  Json facts = card_facts(teacher->card());
  facts[kTeacherWeights] = content_identity(teacher->source());
  return facts;
}

Teacher::Teacher(const DistillConfig& config, const ModelCard& student, int64_t batch, PrecisionOptions types,
                 const Backend& backend, const DeviceInfo& device)
    : config_(config), classes_(student.config.classes) {
  model_ = open_teacher(config, student.config);
  require_alike(model_->card(), student);
  types.keep_masters = false;
  // The teacher's GEMMs are exact, whatever arithmetic the student's have.
  const Rewrites rewrites{.arithmetic = Arithmetic::kExact, .precision = types, .traits = backend.traits()};
  plan_ = plan_execution(inference_program(record_vit(model_->card().config, {.batch = batch}), rewrites),
                         backend, device);
  targets_.resize(static_cast<size_t>(batch * classes_));
}

void Teacher::start(RankContext& rank) {
  rank_ = &rank;
  store_ = std::make_unique<PersistentStore>(plan_, rank);
  store_->load(plan_, [&](const std::string& name, const Shape& shape, std::span<float> target) {
    model_->read_param({name, shape}, target);
  });
  executor_ = std::make_unique<Executor>(plan_, *store_, rank);
  model_.reset();
}

std::span<const float> Teacher::targets(std::span<const float> images) {
  write_floats(*rank_, executor_->input("images"), images);
  executor_->run();
  logits_.resize(targets_.size());
  read_floats(*rank_, executor_->output("logits"), logits_);
  const auto width = static_cast<size_t>(classes_);
  for (size_t row = 0; row < targets_.size(); row += width) {
    const std::span<float> target(targets_.data() + row, width);
    const std::span<const float> from(logits_.data() + row, width);
    if (config_.kind == DistillKind::kSoft) {
      softmax(from, config_.temperature, target);
    } else {
      // A teacher without an answer makes the loss NaN, as its softmax does: the update is left out.
      const int64_t highest = highest_class(from);
      std::fill(target.begin(), target.end(), highest == kNoClass ? std::nanf("") : 0.0f);
      if (highest != kNoClass) target[static_cast<size_t>(highest)] = 1;
    }
  }
  return targets_;
}

}  // namespace vitrail
