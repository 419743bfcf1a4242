// Names of enumerators, in order: the one list that readers, writers and messages use. An enum gains names
// by specialising EnumNames beside its definition.
#pragma once

#include <optional>
#include <string_view>

namespace vitrail {

template <typename E>
struct EnumNames;

template <typename E>
constexpr const char* enum_name(E value) {
  return EnumNames<E>::names[static_cast<int>(value)];
}

template <typename E>
constexpr std::optional<E> enum_from_name(std::string_view name) {
  for (size_t i = 0; i < std::size(EnumNames<E>::names); ++i)
    if (name == EnumNames<E>::names[i]) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace vitrail
