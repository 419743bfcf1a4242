// The stack machine that a pickle's opcodes drive, private to pickle.cpp: it builds nodes and runs nothing.
#pragma once

#include <array>

#include "base/bytes.h"
#include "base/pickle.h"
#include "base/text.h"

namespace vitrail {

class PickleMachine {
 public:
  PickleMachine(std::span<const std::byte> bytes, const PickleNameFilter& allowed, const PickleLimits& limits)
      : input_(bytes), allowed_(allowed), limits_(limits) {}

  PickleGraph run() {
    const auto first = input_.take<uint8_t>(), protocol = input_.take<uint8_t>();
    VT_REQUIRE(first == kProto, ErrorKind::kData, "does not begin with a protocol number");
    VT_REQUIRE(protocol >= 2 && protocol <= 5, ErrorKind::kData, "protocol %u, 2 to 5 are read", protocol);
    for (size_t count = 0; count < limits_.max_ops; ++count) {
      const auto op = input_.take<uint8_t>();
      if (op == kStop) {
        graph_.root = pop();
        graph_.bytes = position();
        return std::move(graph_);
      }
      const Handler handler = handlers()[op];
      VT_REQUIRE(handler, ErrorKind::kData, "opcode 0x%02x is not used by plain data", op);
      handler(*this);
    }
    throw Error(ErrorKind::kData, strf("more than %zu operations", limits_.max_ops));
  }

  size_t position() const { return input_.position(); }

 private:
  using Handler = void (*)(PickleMachine&);
  static constexpr uint8_t kProto = 0x80, kStop = '.';
  static const std::array<Handler, 256>& handlers();

  template <typename Length>
  void add_text(PickleKind kind) {
    const std::string_view content = input_.take_text(input_.take<Length>());
    VT_REQUIRE(kind == PickleKind::kBytes || is_valid_utf8(content), ErrorKind::kData,
               "a text that is not UTF-8");
    add(kind).text = content;
  }
  template <typename Integer>
  void add_int() {
    add(PickleKind::kInt).integer = input_.take<Integer>();
  }
  void add_tuple(std::vector<PickleId> items) { add(PickleKind::kTuple).items = std::move(items); }
  PickleNode& add(PickleKind kind);
  void add_long(uint64_t bytes);
  void add_float();
  void add_dict_from_mark();
  void add_global(const std::string& full_name);
  void add_global_from_lines();
  void add_global_from_stack();
  void add_call();
  void add_persistent();
  std::string line();

  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  void push(PickleId id);
  PickleId pop();
  PickleNode& top();
  void mark();
  void pop_value_or_mark();
  std::vector<PickleId> pop_to_mark();
  std::vector<PickleId> pop_some(size_t count);
  void append(PickleKind kind, const std::vector<PickleId>& values);
  void set_items(const std::vector<PickleId>& values);
  void build();
  void put(uint64_t slot);
  void get(uint64_t slot);

  ByteCursor input_;
  const PickleNameFilter& allowed_;
  const PickleLimits& limits_;
  PickleGraph graph_;
  std::vector<PickleId> stack_, memo_;
  std::vector<size_t> marks_;  // stack heights
  size_t items_ = 0, memo_count_ = 0;
};

}  // namespace vitrail
