// Computes what the ranks of a run compare before the first step, each as a hash: their data, the models that
// they begin with and learn from, the program before it is cut, how it is cut, and the collectives in order;
// and the kernel tables of devices of one kind. A difference would show as a wrong result or as a wait
// without end.
#pragma once

#include <string>

#include "base/json.h"
#include "dist/mesh_communicators.h"
#include "train/run_setup.h"

namespace vitrail {

// The names and labels of the images.
Json data_facts(const RunSetup& setup);
// What model.init and the teacher are, wherever they lie. `teacher` holds the facts of train/teacher.h;
// empty: nothing is distilled.
Json model_facts(const PreparedModel& model, const Json& teacher);
// The recorded program, mesh, pins and schedule: the same on every rank.
Json step_facts(const StepPlan& plan);
// The order of the collectives: the same on the ranks of a stage, of which there is one without a pipeline.
Json order_facts(const StepPlan& plan);
// The elements that collectives along `axes` move, in order: the same on the ranks that take part.
Json count_facts(const StepPlan& plan, AxisSet axes);

// Devices of one kind run the same kernels.
struct DeviceFacts {
  std::string kind;     // "cpu isa 3", "cuda NVIDIA H200"
  std::string kernels;  // the hash of its table
};
DeviceFacts kernel_facts(const DeviceInfo& device);

// Compares all of it among the ranks; throws Error(kConfig) naming key and rank. Returns what may differ and
// does: kernel tables of other kinds of device; empty when there is nothing to say.
std::string require_same_ranks(MeshCommunicators& ranks, const RunSetup& setup, const Json& teacher,
                               const StepPlan& plan, const DeviceInfo& device);

}  // namespace vitrail
