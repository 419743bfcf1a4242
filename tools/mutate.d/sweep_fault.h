// What the faults of tools/mutate sweep are made of: vt_fault(n), and operators that become another when
// fault n acts. `a < VtOp<n>{} < b` is a < b or a <= b: operators of one precedence need no brackets, so none
// had to be found. Part of tools/mutate's copy of the sources, never of Vitrail.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <utility>

#define VT_ALWAYS_INLINE inline __attribute__((always_inline))

inline constexpr int kVtMostFaults = 16384;
// Of each fault: 0 until it is met, 1 afterwards. The one that acts stays at 0.
extern unsigned char vt_fault_met[kVtMostFaults];
bool vt_fault_unmet(int n);

VT_ALWAYS_INLINE bool vt_fault(int n) {
  if (__builtin_expect(__atomic_load_n(&vt_fault_met[n], __ATOMIC_RELAXED) == 1, 1)) return false;
  return vt_fault_unmet(n);
}

template <int n>
struct VtOp {};
template <int n, typename A>
struct VtLeft {
  A&& value;
};
template <int n>
struct VtSum {};

// Where types have no such other operator (strings, paths) what stands on its right is left out.
#define VT_OPERATOR(sign, other)                                               \
  template <int n, typename A>                                                 \
  VT_ALWAYS_INLINE VtLeft<n, A> operator sign(A&& a, VtOp<n>) {                \
    return {std::forward<A>(a)};                                               \
  }                                                                            \
  template <int n, typename A, typename B>                                     \
  VT_ALWAYS_INLINE auto operator sign(VtLeft<n, A>&& a, B&& b)                 \
      ->decltype(std::forward<A>(a.value) sign std::forward<B>(b)) {           \
    using Result = decltype(std::forward<A>(a.value) sign std::forward<B>(b)); \
    if (vt_fault(n)) {                                                         \
      if constexpr (requires { a.value other b; })                             \
        return std::forward<A>(a.value) other std::forward<B>(b);              \
      else                                                                     \
        return static_cast<Result>(std::forward<A>(a.value));                  \
    }                                                                          \
    return std::forward<A>(a.value) sign std::forward<B>(b);                   \
  }
VT_OPERATOR(<, <=)
VT_OPERATOR(<=, <)
VT_OPERATOR(>, >=)
VT_OPERATOR(>=, >)
VT_OPERATOR(==, !=)
VT_OPERATOR(!=, ==)
VT_OPERATOR(+, -)
VT_OPERATOR(-, +)
VT_OPERATOR(*, /)
VT_OPERATOR(/, *)
VT_OPERATOR(%, /)
#undef VT_OPERATOR

// `a += VtSum<n>{} += b`, which groups from the right, is a += b or a = b.
#define VT_SUM(sign)                                             \
  template <int n, typename B>                                   \
  VT_ALWAYS_INLINE VtLeft<n, B> operator sign(VtSum<n>, B&& b) { \
    return {std::forward<B>(b)};                                 \
  }                                                              \
  template <typename A, int n, typename B>                       \
  VT_ALWAYS_INLINE A& operator sign(A& a, VtLeft<n, B>&& b) {    \
    if (vt_fault(n))                                             \
      a = std::forward<B>(b.value);                              \
    else                                                         \
      a sign std::forward<B>(b.value);                           \
    return a;                                                    \
  }
VT_SUM(+=)
VT_SUM(-=)
VT_SUM(*=)
VT_SUM(|=)
VT_SUM(&=)
#undef VT_SUM

template <int n, typename T, typename... Rest>
VT_ALWAYS_INLINE const T& vt_min(const T& a, const T& b, Rest... rest) {
  return vt_fault(n) ? std::max(a, b, rest...) : std::min(a, b, rest...);
}
template <int n, typename T>
VT_ALWAYS_INLINE T vt_min(std::initializer_list<T> all) {
  return vt_fault(n) ? std::max(all) : std::min(all);
}
template <int n, typename T, typename... Rest>
VT_ALWAYS_INLINE const T& vt_max(const T& a, const T& b, Rest... rest) {
  return vt_fault(n) ? std::min(a, b, rest...) : std::max(a, b, rest...);
}
template <int n, typename T>
VT_ALWAYS_INLINE T vt_max(std::initializer_list<T> all) {
  return vt_fault(n) ? std::min(all) : std::max(all);
}
