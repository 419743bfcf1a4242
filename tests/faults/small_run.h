// The checkpoints that fault tests write and read: everything in them follows from the step.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "base/file.h"
#include "base/rng.h"
#include "io/checkpoint/checkpoint.h"
#include "io/safetensors.h"

namespace vitrail::testing {

inline TensorToWrite step_tensor(const std::string& name, int64_t step, size_t bytes) {
  const uint64_t key = name_key(name) + static_cast<uint64_t>(step);
  return {{name, DType::kU8, {static_cast<int64_t>(bytes)}, bytes}, [key](std::span<std::byte> target) {
            for (size_t i = 0; i < target.size(); ++i)
              target[i] = static_cast<std::byte>(counter_hash(key, i));
          }};
}

inline CheckpointContent small_content(int64_t step, size_t bytes = 5000) {
  CheckpointContent content;
  content.step = step;
  content.facts = {{"seed", 7}, {"config", {{"hash", "abc"}, {"batch", 512}}}, {"arch", "tiny"}};
  content.state = {step_tensor("master.w", step, bytes), step_tensor("adam.m", step, bytes / 2)};
  content.write_model = [=](const std::string& folder) {
    write_safetensors(folder + "/model.safetensors", {step_tensor("w", step, bytes)});
    write_file(folder + "/config.json", strf("{\"step\": %lld}\n", static_cast<long long>(step)));
  };
  content.model_bytes = bytes;
  return content;
}

// The same checkpoint as several ranks write it: each has a range of every tensor, the first rank the
// shortest.
inline CheckpointContent small_share(int64_t step, int rank, int ranks, size_t bytes = 5000) {
  CheckpointContent content = small_content(step, bytes);
  for (const TensorToWrite& tensor : content.state) {
    const int64_t whole = tensor.info.shape[0];
    TensorPart part = TensorPart::whole({whole});
    part.first = whole * rank * rank / (ranks * ranks);
    part.count = whole * (rank + 1) * (rank + 1) / (ranks * ranks) - part.first;
    content.parts.push_back(
        part_to_write(tensor.info.name, tensor.info.dtype, part, [=](std::span<std::byte> target) {
          std::vector<std::byte> all(static_cast<size_t>(whole));
          tensor.fill(all);
          std::copy_n(all.begin() + part.first, target.size(), target.begin());
        }));
  }
  content.state.clear();
  return content;
}

// Whether the opened checkpoint holds exactly what small_content(step) gave.
inline bool holds_its_step(const OpenedCheckpoint& opened, size_t bytes = 5000) {
  const CheckpointContent expected = small_content(opened.step, bytes);
  if (opened.facts != expected.facts || opened.state->tensors().size() != expected.state.size()) return false;
  for (const TensorToWrite& tensor : expected.state) {
    const auto index = opened.state->find(tensor.info.name);
    if (!index || opened.state->tensors()[*index].bytes != tensor.info.bytes) return false;
    std::vector<std::byte> wanted(tensor.info.bytes), found(tensor.info.bytes);
    tensor.fill(wanted);
    opened.state->read(*index, found);
    if (wanted != found) return false;
  }
  return true;
}

}  // namespace vitrail::testing
