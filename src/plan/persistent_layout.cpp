#include "plan/persistent_layout.h"

#include <numeric>

#include "base/checked.h"

namespace vitrail {

const PersistentValue& PersistentLayout::place(const Value& value, Home home) {
  VT_CHECK(value.persistent(), "%s does not persist", value.name.c_str());
  if (const auto found = index_.find(value.name); found != index_.end()) {
    const PersistentValue& known = values_[found->second];
    VT_CHECK(known.desc == value.desc && known.category == value.category,
             "%s is kept as %s and wanted as %s", value.name.c_str(), to_string(known.desc).c_str(),
             to_string(value.desc).c_str());
    return known;
  }
  if (!value.container.empty()) return place_inside(value);
  size_t& bytes = bytes_[static_cast<size_t>(home)][static_cast<size_t>(value.category)];
  values_.push_back(
      {value.name, value.desc, value.kind, value.category, bytes, false, false, value.logical, home});
  index_.emplace(value.name, values_.size() - 1);
  bytes += round_up(value.desc.bytes(), Buffer::kAlignment);
  return values_.back();
}

const PersistentValue& PersistentLayout::place_inside(const Value& value) {
  const auto found = index_.find(value.container);
  VT_CHECK(found != index_.end(), "%s lies in %s, which has no place", value.name.c_str(),
           value.container.c_str());
  PersistentValue& container = values_[found->second];
  const size_t inner = static_cast<size_t>(value.container_offset) * size_of(value.desc.dtype);
  VT_CHECK(inner + value.desc.bytes() <= container.desc.bytes(), "%s does not fit into %s",
           value.name.c_str(), value.container.c_str());
  container.is_container = true;
  const size_t offset = container.offset + inner;
  const Category category = container.category;
  const Home home = container.home;
  values_.push_back({value.name, value.desc, value.kind, category, offset, true, false, value.logical, home});
  index_.emplace(value.name, values_.size() - 1);
  return values_.back();
}

const PersistentValue& PersistentLayout::at(const std::string& name) const {
  const auto found = index_.find(name);
  VT_CHECK(found != index_.end(), "no persistent value is called %s", name.c_str());
  return values_[found->second];
}

size_t PersistentLayout::bytes(Home home) const {
  const auto& own = bytes_[static_cast<size_t>(home)];
  return std::accumulate(own.begin(), own.end(), size_t{0});
}

}  // namespace vitrail
