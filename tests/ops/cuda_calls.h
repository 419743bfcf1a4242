// What launches on a GPU ask of the plugin, recorded instead of done: this needs neither a GPU nor the
// plugin.
#pragma once

#include <cstring>
#include <functional>
#include <vector>

#include "backend/cuda/bound_call.h"

namespace vitrail {

struct CudaCall {
  size_t function;               // its place in the plugin's table
  std::vector<std::byte> bytes;  // of its arguments, zeros between them
  bool operator==(const CudaCall&) const = default;
};

std::vector<CudaCall> recorded_calls(const std::function<void()>& launch);

// Where the operands of a launch would lie; nobody reads or writes there.
struct Operands {
  std::vector<std::byte*> ins, outs;
  std::byte* scratch = nullptr;
};
// Every operand has an address of its own.
Operands separate_operands(const NodeView& node);

// The calls of a prepared kernel, `fixed` as in KernelArgs. A blind launch sees addresses alone: neither the
// op, nor shapes, types and the device.
std::vector<CudaCall> calls_of(const Prepared& kernel, const NodeView& node, const DeviceInfo& device,
                               const Operands& operands, uint64_t fixed, bool blind);

// The place in the plugin's table of a function of a family.
template <typename Family, typename Function>
size_t place_in_api(Family cuda::Api::*family, Function Family::*function) {
  static const cuda::Api table{};
  return static_cast<size_t>(reinterpret_cast<const std::byte*>(&(table.*family.*function)) -
                             reinterpret_cast<const std::byte*>(&table));
}

// The arguments of those to one function, `&cuda::GemmApi::gemm`.
template <typename Family, typename Call>
std::vector<Call> calls_to(void (*Family::*function)(cuda::Session&, const Call&),
                           const std::vector<CudaCall>& calls) {
  const size_t place = place_in_api(std::get<Family cuda::Api::*>(cuda::kFamilies), function);
  std::vector<Call> found;
  for (const CudaCall& call : calls)
    if (call.function == place) std::memcpy(&found.emplace_back(), call.bytes.data(), sizeof(Call));
  return found;
}

// Expects that every kernel which accepts the node, with the weights that it wants packed, makes the same
// calls in a blind launch; returns how many kernels accept it. With an equal op that nobody else holds, the
// blind launch is one that was prepared for it and outlives it (overwrite_freed.cpp).
int expect_blind_launches(const std::string& name, const NodeView& node, const Operands& operands,
                          OpPtr twin = nullptr);

}  // namespace vitrail
