#include "measure/step_programs.h"

#include "base/error.h"
#include "passes/pipeline.h"
#include "train/teacher.h"

namespace vitrail {

namespace {

std::string none(const char* why) {
  return strf("none: %s\n", why);
}

std::string text_of(const std::optional<ExecutionPlan>& plan, const char* why) {
  return plan ? to_string(plan->program) : none(why);
}

constexpr const char* kNoOffload = "mesh.offload is none, so that the device updates all by itself (update)";

// Prints the programs that the host runs for its buckets of parameters, one after the other.
std::string of_buckets(const StepPlan& step, std::optional<ExecutionPlan> OffloadPlan::Bucket::*program,
                       const char* why) {
  if (!step.offload) return none(kNoOffload);
  std::string text;
  for (size_t i = 0; i < step.offload->buckets.size(); ++i)
    if (const auto& plan = step.offload->buckets[i].*program)
      text += strf("bucket %zu of %zu\n", i + 1, step.offload->buckets.size()) + to_string(plan->program);
  return text.empty() ? none(why) : text;
}

constexpr const char* kNoAverages = "optim.ema_decay is 0, so that no weights are averaged";
constexpr const char* kNoCopies = "every GEMM reads the masters: there are no copies in low precision";

std::string refresh_text(const StepPlan& step) {
  return text_of(step.refresh, step.offload ? "the host fills the copies (offload_refresh)" : kNoCopies);
}

std::string average_evaluation_text(const StepPlan& step) {
  return text_of(step.eval_average, !step.averages() ? kNoAverages
                                                     : "the host fills the copies with the averages "
                                                       "(offload_average), and evaluation runs");
}

std::string teacher_text(const RunPlan& plan) {
  const std::unique_ptr<Teacher> teacher = plan.teacher(plan.setup().train_share.rows);
  return teacher ? to_string(teacher->plan().program) : none("distill.kind is none");
}

std::string gather_text(const StepPlan& step) {
  if (!step.offload) return none(kNoOffload);
  return text_of(step.offload->gather, "ranks read no copies that others have updated");
}

struct OtherProgram {
  const char* name;
  std::string (*text)(const RunPlan& plan);
};

const OtherProgram kOthers[] = {
    {"last_micro",
     [](const RunPlan& plan) {
       const StepPlan& step = plan.step();
       return to_string(step.last_micro ? step.last_micro->program : step.micro.program);
     }},
    {"update", [](const RunPlan& plan) { return to_string(plan.step().update.program); }},
    {"refresh", [](const RunPlan& plan) { return refresh_text(plan.step()); }},
    {"evaluation", [](const RunPlan& plan) { return to_string(plan.step().eval.program); }},
    {"average_evaluation", [](const RunPlan& plan) { return average_evaluation_text(plan.step()); }},
    {"teacher", [](const RunPlan& plan) { return teacher_text(plan); }},
    {"offload_update",
     [](const RunPlan& plan) {
       return of_buckets(plan.step(), &OffloadPlan::Bucket::update, "nothing is trained");
     }},
    {"offload_refresh",
     [](const RunPlan& plan) { return of_buckets(plan.step(), &OffloadPlan::Bucket::refresh, kNoCopies); }},
    {"offload_average",
     [](const RunPlan& plan) { return of_buckets(plan.step(), &OffloadPlan::Bucket::average, kNoAverages); }},
    {"offload_gather", [](const RunPlan& plan) { return gather_text(plan.step()); }}};

}  // namespace

std::vector<std::string> dumps_of_training() {
  std::vector<std::string> names(micro_passes().begin(), micro_passes().end());
  for (const OtherProgram& other : kOthers) names.emplace_back(other.name);
  return names;
}

std::string dump_program(const RunPlan& plan, const std::string& after) {
  for (const OtherProgram& other : kOthers)
    if (after == other.name) return other.text(plan);
  std::string text;
  const ExecutionPlan& micro = plan.step().micro;
  record_micro(
      plan.setup().step, micro.backend->traits(),
      [&](std::string_view pass, const Program& program) {
        if (pass == after) text = to_string(program);
        if (pass == after && pass == kDistributePass) text = pins_text(plan.setup().step) + text;
      },
      kernel_rule(*micro.backend, micro.device));
  return text;
}

}  // namespace vitrail
