// Reads a Python pickle as data: the opcodes build a graph of plain values, and a class or function is only
// ever a name. Nothing is imported, called or executed. The readers of torch and CIFAR files alone know what
// the names mean. Names outside the caller's whitelist are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail {

using PickleId = uint32_t;  // index into PickleGraph::nodes; sharing and cycles are possible
inline constexpr PickleId kNoPickleId = UINT32_MAX;

enum class PickleKind : uint8_t {
  kNone,
  kBool,
  kInt,
  kBigInt,
  kFloat,
  kString,
  kBytes,
  kTuple,
  kList,
  kSet,
  kDict,
  kGlobal,      // text: "module.name"
  kCall,        // the call of `callee` (a global) on `argument`, recorded and never made
  kPersistent,  // an object stored outside the pickle; `argument` identifies it
};

struct PickleNode {
  PickleKind kind = PickleKind::kNone;
  int64_t integer = 0;          // kInt, kBool
  double real = 0;              // kFloat
  std::string text;             // kString, kBytes, kGlobal
  std::vector<PickleId> items;  // elements; key, value, key, value... for kDict and items set on a kCall
  PickleId callee = 0, argument = 0;
  PickleId state = kNoPickleId;  // the state that BUILD would set on a kCall's object
};

struct PickleGraph {
  std::vector<PickleNode> nodes;
  PickleId root = 0;
  size_t bytes = 0;  // length of the pickle in the input; what follows is not read
  const PickleNode& operator[](PickleId id) const { return nodes[id]; }
};

struct PickleLimits {
  size_t max_bytes = size_t{64} << 20;
  size_t max_ops = 20'000'000;
  size_t max_nodes = 2'000'000;
  size_t max_items = 8'000'000;  // over all containers together
};

// Decides whether "module.name" may appear in the data.
using PickleNameFilter = std::function<bool(std::string_view)>;

// Reads protocols 2 to 5. Throws Error(kData) for anything unknown, malformed or too large.
PickleGraph read_pickle(std::span<const std::byte> bytes, const PickleNameFilter& allowed,
                        const PickleLimits& limits = {});

}  // namespace vitrail
