// Calls of the plugin whose addresses are still to come: a kernel writes them down once, when it is prepared
// for a node, and a launch fills in where the node's operands lie. Knows no op.
#pragma once

#include <cstring>
#include <initializer_list>
#include <tuple>
#include <type_traits>

#include "backend/cuda/plugin.h"
#include "backend/kernel.h"

namespace vitrail::cuda {

// The session behind Device::launch_handle(); its GPU becomes current in the calling thread.
Session& session_of(void* stream);

// Says where an operand lies: so many bytes from the start of an input, an output or the scratch of the
// launch; or from the scratch's first multiple of 256 bytes, which a plan of GEMMs counts from.
struct Place {
  enum class In : uint8_t { kNothing, kInput, kOutput, kScratch, kAlignedScratch };

  In in = In::kNothing;
  DType dtype = DType::kF32;
  size_t index = 0;  // of the input or output
  size_t offset = 0;

  std::byte* address(const KernelArgs& args) const;
};

// An input of the node; -1: there is none.
inline Place input(const NodeView& node, int i) {
  if (i < 0) return {};
  const auto index = static_cast<size_t>(i);
  return {Place::In::kInput, node.ins[index].dtype, index};
}
inline Place output(const NodeView& node, size_t i = 0) {
  return {Place::In::kOutput, node.outs[i].dtype, i};
}
inline Place scratch(size_t offset = 0) {
  return {.in = Place::In::kScratch, .offset = offset};
}
inline Place aligned_scratch(size_t offset, DType dtype = DType::kF32) {
  return {.in = Place::In::kAlignedScratch, .dtype = dtype, .offset = offset};
}

// A struct of the plugin's with everything in it but addresses.
template <typename T>
class Bound {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  Bound() = default;
  explicit Bound(const T& rest) : rest_(rest) {}
  T& operator*() { return rest_; }
  T* operator->() { return &rest_; }
  const T* operator->() const { return &rest_; }

  // The field, one of the struct's own addresses, becomes that of the place; an operand gets the place's
  // type, too. A place that is nothing leaves the field as it is, and what is bound last holds.
  Bound& bind(Operand& field, const Place& place) {
    if (place.in == Place::In::kNothing) return *this;
    field.dtype = place.dtype;
    return bind(field.data, place);
  }
  template <typename U>
  Bound& bind(U*& field, const Place& place) {
    if (place.in != Place::In::kNothing) addresses_.push_back({offset_of(&field), place});
    return *this;
  }
  // A struct within the struct becomes the inner one, with its addresses.
  template <typename U>
  Bound& embed(U& field, const Bound<U>& inner) {
    field = inner.rest_;
    for (const auto& one : inner.addresses_)
      addresses_.push_back({offset_of(&field) + one.offset, one.place});
    return *this;
  }
  // Sets the flag where earlier nodes change none of these inputs; -1: one that the node does not have.
  Bound& bind_fixed(bool& flag, std::initializer_list<int> inputs) {
    flags_.push_back({offset_of(&flag), inputs});
    return *this;
  }

  T at(const KernelArgs& args) const {
    T whole = rest_;
    const auto put = [&](size_t offset, auto value) {
      std::memcpy(reinterpret_cast<std::byte*>(&whole) + offset, &value, sizeof value);
    };
    for (const Address& one : addresses_) put(one.offset, one.place.address(args));
    for (const Flag& flag : flags_) {
      bool fixed = true;
      for (const int i : flag.inputs) fixed = fixed && (i < 0 || args.is_fixed(i));
      put(flag.offset, fixed);
    }
    return whole;
  }

 private:
  template <typename U>
  friend class Bound;
  struct Address {
    size_t offset;  // of the field
    Place place;
  };
  struct Flag {
    size_t offset;
    std::vector<int> inputs;
  };
  size_t offset_of(const void* field) const {
    const auto offset = static_cast<size_t>(static_cast<const std::byte*>(field) -
                                            reinterpret_cast<const std::byte*>(&rest_));
    VT_CHECK(offset < sizeof(T), "a field of another struct is bound");
    return offset;
  }

  T rest_{};
  std::vector<Address> addresses_;
  std::vector<Flag> flags_;
};

// The plugin's families of functions, by their types.
inline constexpr std::tuple kFamilies{&Api::gemms,   &Api::fp8,    &Api::attention, &Api::norms,
                                      &Api::rows,    &Api::tokens, &Api::images,    &Api::losses,
                                      &Api::updates, &Api::moves};

// Calls a function of a family, `&NormsApi::softmax`.
template <typename Family, typename Call>
void invoke(void (*Family::*function)(Session&, const Call&), Session& session, const Call& call) {
  (api().*std::get<Family Api::*>(kFamilies).*function)(session, call);
}
// The same of a function that takes more than a struct, or another one, by what calls it.
template <typename Function, typename Call>
void invoke(const Function& function, Session& session, const Call& call) {
  function(session, call);
}

// The calls of a prepared kernel, in order.
class Calls {
 public:
  using Make = std::function<void(Session&, const KernelArgs&)>;  // makes one call, or several

  template <typename Function, typename Call>
  void add(Function function, const Bound<Call>& call) {
    add([=](Session& session, const KernelArgs& args) { invoke(function, session, call.at(args)); });
  }
  void add(Make make) { list_.push_back(std::move(make)); }
  Prepared prepared(size_t scratch_bytes = 0) &&;

 private:
  std::vector<Make> list_;
};

// A kernel that is one call.
template <typename Function, typename Call>
Prepared prepared(Function function, const Bound<Call>& call, size_t scratch_bytes = 0) {
  Calls calls;
  calls.add(function, call);
  return std::move(calls).prepared(scratch_bytes);
}

}  // namespace vitrail::cuda
