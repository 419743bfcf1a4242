#include "passes/pins.h"

#include "ops/flat.h"

namespace vitrail {

namespace {

constexpr Pin kDataParallel[] = {
    {Axis::kData, PinOn::kValues, Placed::shard('B'),
     "the images of a batch and all that has one row for each"},
    {Axis::kData, PinOn::kInputs, Placed::shard('R'), "pixels that come with a batch; stored ones are whole"},
};
// The stages of ZeRO take them in order: stage 1 has the first, 2 two, 3 all.
constexpr Pin kZero[] = {
    {Axis::kData, PinOn::kOwned, Placed::shard(kFlat), "optimizer state, averages, masters"},
    {Axis::kData, PinOn::kOwned, Placed::shard(kFlat), "gradient sums"},
    {Axis::kData, PinOn::kOwned, Placed::shard(kFlat), "parameters, gathered where a block reads them"},
};
constexpr Pin kTensorParallel[] = {
    {Axis::kTensor, PinOn::kParameters, Placed::shard('H'), "heads of qkv and proj"},
    {Axis::kTensor, PinOn::kParameters, Placed::shard('F'), "columns of fc1, rows of fc2"},
};
constexpr Pin kTokensOnTensor[] = {
    {Axis::kTensor, PinOn::kStream, Placed::shard('N'), "tokens between attention and MLP (Megatron)"},
};
constexpr Pin kUlysses[] = {
    {Axis::kSequence, PinOn::kStream, Placed::shard('N'), "tokens of the residual stream"},
    {Axis::kSequence, PinOn::kAttention, Placed::shard('H'), "heads, while every token is seen"},
};

constexpr const char* kNames[] = {"values", "inputs", "parameters", "stream", "attention", "owned"};

}  // namespace

std::vector<Pin> pins_of(const Distribution& how, int zero) {
  std::vector<Pin> pins;
  const auto take = [&](std::span<const Pin> table) { pins.insert(pins.end(), table.begin(), table.end()); };
  if (how.mesh.size(Axis::kData) > 1) {
    take(kDataParallel);
    take(std::span(kZero).first(static_cast<size_t>(zero)));
  }
  if (how.mesh.size(Axis::kTensor) > 1) {
    take(kTensorParallel);
    if (how.tokens_on_tp) take(kTokensOnTensor);
  }
  if (how.mesh.size(Axis::kSequence) > 1) take(kUlysses);
  return pins;
}

std::string to_string(const std::vector<Pin>& pins) {
  std::string text;
  for (const Pin& pin : pins) {
    const std::string placed =
        pin.placed.dim == kFlat ? "in flat pieces" : "S(" + std::string(1, pin.placed.dim) + ")";
    text += strf("pin %s %s %s: %s\n", std::string(to_string(pin.axis)).c_str(),
                 kNames[static_cast<size_t>(pin.on)], placed.c_str(), pin.what);
  }
  return text;
}

}  // namespace vitrail
