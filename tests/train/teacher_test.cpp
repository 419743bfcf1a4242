// Distillation targets: softmax(logits / T), or the teacher's first choice; and the loss made of them.
#include "train/teacher.h"

#include <gtest/gtest.h>

#include <cmath>

#include "case_run.h"
#include "thrown.h"
#include "train/helpers/answers.h"

namespace vitrail::testing {
namespace {

constexpr int64_t kBatch = 6;
constexpr size_t kClasses = 4;

// A confident teacher of four classes, and images for it.
class TeacherTargets : public ::testing::Test {
 protected:
  TeacherTargets() {
    TrainConfig config = tiny_config(20);
    config.optim.lr = 0.01;
    train(config, work_ / "teacher");
    images_.resize(kBatch * 3 * 8 * 8);
    for (size_t i = 0; i < images_.size(); ++i) images_[i] = counter_uniform(name_key("images"), i);
  }

  std::string folder() const { return work_ / "teacher/best"; }

  std::vector<double> logits(const OpenOptions& options = {}) const {
    const std::unique_ptr<OpenedModel> model = open_model(folder(), options);
    RankContext rank(cpu_device(1));
    const ExecutionPlan plan =
        plan_execution(record_vit(model->card().config, {.batch = kBatch}), ref_backend(), rank.device);
    PersistentStore store(plan, rank);
    store.load(plan, [&](const std::string& name, const Shape& shape, std::span<float> target) {
      model->read_param({name, shape}, target);
    });
    Executor executor(plan, store, rank);
    write_floats(rank, executor.input("images"), images_);
    executor.run();
    std::vector<double> values(kBatch * kClasses);
    read_doubles(rank, executor.output("logits"), values);
    return values;
  }

  std::vector<float> targets(DistillKind kind, double temperature) {
    return targets(kind, temperature, set_up(tiny_config(1)).model->card);
  }
  std::vector<float> targets(DistillKind kind, double temperature, const ModelCard& student) {
    RankContext rank(cpu_device(1));
    Teacher teacher({kind, folder(), 0.5, temperature}, student, kBatch, {}, cpu_backend(), rank.device);
    teacher.start(rank);
    const std::span<const float> found = teacher.targets(images_);
    return {found.begin(), found.end()};
  }

  WorkFolder work_;
  std::vector<float> images_;
};

TEST_F(TeacherTargets, SoftOnesAreTheSoftmaxAtItsTemperature) {
  const std::vector<double> logits = this->logits();
  for (const double temperature : {0.5, 1.0, 3.0, 20.0}) {
    SCOPED_TRACE(temperature);
    const std::vector<float> found = targets(DistillKind::kSoft, temperature);
    ASSERT_EQ(found.size(), logits.size());
    for (size_t row = 0; row < found.size(); row += kClasses) {
      double sum = 0;
      for (size_t k = 0; k < kClasses; ++k) sum += std::exp(logits[row + k] / temperature);
      for (size_t k = 0; k < kClasses; ++k)
        EXPECT_NEAR(found[row + k], std::exp(logits[row + k] / temperature) / sum, 1e-5);
    }
  }
}

TEST_F(TeacherTargets, ImagesAreOfTheStudentsSizeWhichNeedNotBeSquare) {
  ModelCard student = set_up(tiny_config(1)).model->card;
  student.config.image_width = 16;
  images_.resize(kBatch * 3 * 8 * 16, 0.25f);
  const std::vector<double> logits = this->logits({.image_height = 8, .image_width = 16});
  const std::vector<float> found = targets(DistillKind::kSoft, 1, student);
  for (size_t row = 0; row < found.size(); row += kClasses) {
    double sum = 0;
    for (size_t k = 0; k < kClasses; ++k) sum += std::exp(logits[row + k]);
    for (size_t k = 0; k < kClasses; ++k) EXPECT_NEAR(found[row + k], std::exp(logits[row + k]) / sum, 1e-5);
  }
}

TEST_F(TeacherTargets, HardOnesAreTheFirstChoice) {
  const std::vector<double> logits = this->logits();
  for (const double temperature : {1.0, 3.0}) {
    const std::vector<float> found = targets(DistillKind::kHard, temperature);
    for (size_t row = 0; row < found.size(); row += kClasses) {
      const auto first = logits.begin() + static_cast<std::ptrdiff_t>(row);
      const auto best = static_cast<size_t>(std::max_element(first, first + kClasses) - first);
      for (size_t k = 0; k < kClasses; ++k) EXPECT_EQ(found[row + k], k == best ? 1.0f : 0.0f);
    }
  }
}

// The row is no target at all, and the others are as ever.
TEST_F(TeacherTargets, AnImageWithoutAnAnswerHasNoTarget) {
  std::fill_n(images_.begin(), 3 * 8 * 8, std::nanf(""));
  for (const DistillKind kind : {DistillKind::kHard, DistillKind::kSoft}) {
    const std::vector<float> found = targets(kind, 1);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(std::isnan(found[i]), i < kClasses) << i;
  }
}

TEST_F(TeacherTargets, StudentsAreToBeLikeTheirTeacher) {
  const ModelCard own = set_up(tiny_config(1)).model->card;
  const auto said = [&](const std::function<void(ModelCard&)>& change) {
    ModelCard student = own;
    change(student);
    return thrown_by([&] {
      Teacher({DistillKind::kSoft, folder(), 0.5, 2}, student, kBatch, {}, cpu_backend(), cpu_device(1));
    });
  };
  const std::string others =
                        "config: distill.teacher normalises images differently from the student: set "
                        "preprocess.mean and preprocess.std to the teacher's",
                    names =
                        "config: distill.teacher's classes have other names or another order than the "
                        "data's";
  EXPECT_EQ(said([](ModelCard&) {}), "nothing");
  EXPECT_EQ(said([](ModelCard& c) { c.labels.clear(); }), "nothing") << "without names none differ";
  EXPECT_EQ(said([](ModelCard& c) { c.preprocess.mean[0] += 0.125f; }), others);
  EXPECT_EQ(said([](ModelCard& c) { c.preprocess.std[2] += 0.125f; }), others);
  ASSERT_EQ(own.labels.size(), kClasses);
  EXPECT_EQ(said([](ModelCard& c) { std::swap(c.labels[0], c.labels[1]); }), names);
  EXPECT_EQ(said([](ModelCard& c) { c.config.classes = 5, c.labels.emplace_back("more"); }),
            "config: distill.teacher knows 4 classes, the data has 5");
}

golden::StepCase distilled_case(DistillKind kind, double alpha, double temperature) {
  golden::StepCase c = golden::load_step_case("adamw_soft_teacher", DType::kF64);
  c.config.distill = {kind, "", alpha, temperature};
  return c;
}

double first_loss(const golden::StepCase& c) {
  return golden::CaseRun(c, ref_backend()).gradients(0);
}

// (1 - alpha) of the labels' loss and alpha of the teacher's; a hard teacher has no temperature.
TEST(Distillation, ALossOfTwoPartsByTheirWeights) {
  const double labels = first_loss(distilled_case(DistillKind::kNone, 0.5, 1));
  for (const DistillKind kind : {DistillKind::kSoft, DistillKind::kHard}) {
    SCOPED_TRACE(enum_name(kind));
    EXPECT_NEAR(first_loss(distilled_case(kind, 0, 2)), labels, 1e-12);
    const double teacher = first_loss(distilled_case(kind, 1, 2));
    EXPECT_GT(std::abs(teacher - labels), 1e-3);
    EXPECT_NEAR(first_loss(distilled_case(kind, 0.3, 2)), 0.7 * labels + 0.3 * teacher, 1e-12);
    const double other = first_loss(distilled_case(kind, 1, 5));
    if (kind == DistillKind::kHard) {
      EXPECT_EQ(other, teacher);
    } else {
      EXPECT_GT(std::abs(other - teacher), 1e-3);
    }
  }
}

// With the labels themselves as teacher, a hard teacher's part is the labels' loss.
TEST(Distillation, AHardTeacherIsAnotherLabel) {
  golden::StepCase c = distilled_case(DistillKind::kHard, 1, 2);
  golden::CaseRun run(c, ref_backend());
  run.data().teacher = run.data().targets;
  EXPECT_NEAR(run.gradients(0), first_loss(distilled_case(DistillKind::kNone, 0.5, 1)), 1e-12);
}

}  // namespace
}  // namespace vitrail::testing
