// The persistent values of execution plans that share a layout: owns their arenas, one per category, zeroed,
// on the device and, where the layout has some, on the host, page-locked for a GPU where the layout says so.
// Fills parameters through a load-time Program that converts or packs a few at a time, so that loading needs
// little memory beside them.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>

#include "plan/kernel_choice.h"
#include "runtime/rank_context.h"

namespace vitrail {

// A callback that fills a whole parameter's f32 values, row-major in `shape`; a rank that keeps a part of it
// cuts that out. It is called from several threads at once.
using ParamFiller = std::function<void(const std::string& name, const Shape& shape, std::span<float> target)>;

class PersistentStore {
 public:
  // All programs that share the layout must have been planned.
  PersistentStore(std::shared_ptr<const PersistentLayout> layout, RankContext& rank);
  PersistentStore(const ExecutionPlan& plan, RankContext& rank)
      : PersistentStore(plan.memory.persistent, rank) {}

  // Fills every parameter of the plan.
  void load(const ExecutionPlan& plan, const ParamFiller& fill);

  TensorView view(const PersistentValue& value) const;
  TensorView view(const std::string& name) const { return view(layout_->at(name)); }
  const PersistentLayout& layout() const { return *layout_; }
  size_t bytes() const { return bytes(Home::kDevice); }
  size_t host_bytes() const { return bytes(Home::kHost) + bytes(Home::kLocked); }
  RankContext& rank() const { return rank_; }

  // Returns whether the host reads and writes a value through its address.
  bool is_at_hand(const PersistentValue& value) const {
    return value.on_host() || rank_.hardware->shares_host_memory();
  }
  // Copies of whole values, wherever they lie; a read has arrived when the call returns.
  void read(const PersistentValue& value, std::span<std::byte> target) const;
  void write(const PersistentValue& value, std::span<const std::byte> bytes) const;
  void write_floats(const PersistentValue& value, std::span<const float> values) const;
  void clear(const PersistentValue& value) const;

 private:
  void open_host_arena(Home home, Category category);
  Buffer& arena(Home home, Category category) {
    return arenas_[static_cast<size_t>(home)][static_cast<size_t>(category)];
  }
  size_t bytes(Home home) const;

  std::shared_ptr<const PersistentLayout> layout_;
  RankContext& rank_;
  std::array<std::array<Buffer, kCategoryCount>, kHomes> arenas_;
};

}  // namespace vitrail
