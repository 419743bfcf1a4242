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

// A name that was given up, and the one that took its place. An enum's are listed as EnumNames<E>::former;
// they are read, and never written.
struct FormerName {
  const char* was;
  const char* now;
};

template <typename E>
constexpr std::string_view current_name(std::string_view name) {
  if constexpr (requires { EnumNames<E>::former; })
    for (const FormerName& former : EnumNames<E>::former)
      if (name == former.was) return former.now;
  return name;
}

template <typename E>
constexpr std::optional<E> enum_from_name(std::string_view given) {
  const std::string_view name = current_name<E>(given);
  for (size_t i = 0; i < std::size(EnumNames<E>::names); ++i)
    if (name == EnumNames<E>::names[i]) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace vitrail
