// The predicted seconds of each node of an execution plan, from what a device file knows of the device: the
// curves measured there, or its roofline. Knows no model and measures nothing; what nodes exchange among
// ranks is not part of it.
#pragma once

#include <vector>

#include "plan/device_file.h"
#include "plan/kernel_choice.h"

namespace vitrail {

// Returns one entry a node, in the order of the program, for a run in which nothing else waits. The number of
// threads is that of the plan's device. Collectives, waits and notes about memory take 0. What a run takes
// beside its nodes counts with the first.
std::vector<double> node_seconds(const ExecutionPlan& plan, const DeviceFile& device);

// Returns their sum: one run of the program on one rank.
double run_seconds(const ExecutionPlan& plan, const DeviceFile& device);

// Returns whether GEMMs of that type were measured there, or on the device it is like.
bool is_timed(const DeviceFile& device, const std::string& type);
// Says on what the times of a program with such GEMMs stand: "by what nodes took on NVIDIA H200".
std::string basis_text(const DeviceFile& device, const std::string& type);

// Returns the name of a node's kernel; for a node that runs member by member those of its members:
// "linear+bias".
std::string kernel_name(const NodeChoice& choice);

// A node as the curves of a device file see it: which curve has its points, and its size.
CostCurve curve_of(const ExecutionPlan& plan, size_t node);
NodeSize size_of(const ExecutionPlan& plan, size_t node);

// Returns an empty curve for what a run on a processor takes beside its nodes, the copy of its images above
// all; its size is that of the images and the number of nodes. Bytes are 0 for a program without images.
CostCurve curve_of_run(const ExecutionPlan& plan);
NodeSize size_of_run(const ExecutionPlan& plan);

}  // namespace vitrail
