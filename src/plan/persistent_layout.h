// Says where the values that persist from run to run lie: one arena per category, each value at a fixed
// offset under its name; two more sets of arenas are of the host, for what a device with memory of its own
// leaves there. Programs of one step, and plans for several batch sizes, share one layout and so one memory.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "graph/program.h"

namespace vitrail {

// The memory in which a value lies: the device's, the host's, or page-locked memory of the host, from which
// and to which the device copies beside its work.
enum class Home : uint8_t { kDevice, kHost, kLocked };
inline constexpr size_t kHomes = 3;

struct PersistentValue {
  std::string name;
  TensorDesc desc;
  ValueKind kind = ValueKind::kParameter;
  Category category = Category::kParameters;
  size_t offset = 0;          // in the arena of its category
  bool contained = false;     // it lies inside another value and takes no bytes of its own
  bool is_container = false;  // other values lie inside it
  Shape logical = {};         // the whole shape, where desc is a flat range of elements
  Home home = Home::kDevice;

  bool on_host() const { return home != Home::kDevice; }
};

class PersistentLayout {
 public:
  // Returns the place of a value, assigned at its first appearance: in `home`, or inside the value that
  // holds it. One name must always mean the same value.
  const PersistentValue& place(const Value& value, Home home = Home::kDevice);
  const PersistentValue& at(const std::string& name) const;  // throws for an unknown name
  bool has(const std::string& name) const { return index_.contains(name); }

  const std::vector<PersistentValue>& values() const { return values_; }
  size_t bytes(Home home, Category category) const {
    return bytes_[static_cast<size_t>(home)][static_cast<size_t>(category)];
  }
  size_t bytes(Home home) const;
  // The device's memory.
  size_t bytes(Category category) const { return bytes(Home::kDevice, category); }
  size_t bytes() const { return bytes(Home::kDevice); }
  // The host's memory, what is page-locked included.
  size_t host_bytes(Category category) const {
    return bytes(Home::kHost, category) + bytes(Home::kLocked, category);
  }
  size_t host_bytes() const { return bytes(Home::kHost) + bytes(Home::kLocked); }

 private:
  const PersistentValue& place_inside(const Value& value);

  std::vector<PersistentValue> values_;
  std::map<std::string, size_t> index_;
  std::array<std::array<size_t, kCategoryCount>, kHomes> bytes_{};
};

}  // namespace vitrail
