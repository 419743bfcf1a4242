// Transfers of values between the host and a rank's device, with type conversion. On a device that shares the
// host's memory nothing is copied twice.
#pragma once

#include <span>
#include <vector>

#include "runtime/rank_context.h"
#include "tensor/tensor.h"

namespace vitrail {

// Writes floats to a plain value; elements past their end become zero.
void write_floats(RankContext& rank, const TensorView& target, std::span<const float> values);
// Writes without conversion; `bytes` must not be larger than the value.
void write_bytes(RankContext& rank, const TensorView& target, std::span<const std::byte> bytes);
void read_bytes(RankContext& rank, const TensorView& source, std::span<std::byte> target);
// Reads the first target.size() elements of a plain float value.
void read_floats(RankContext& rank, const TensorView& source, std::span<float> target);
void read_doubles(RankContext& rank, const TensorView& source, std::span<double> target);

}  // namespace vitrail
