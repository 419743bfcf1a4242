#include "base/pickle.h"

#include <bit>

#include "base/pickle_machine.h"

namespace vitrail {

namespace {

constexpr size_t kMaxNameLine = 1024;

}  // namespace

const std::array<PickleMachine::Handler, 256>& PickleMachine::handlers() {
  using Kind = PickleKind;
  struct Row {
    uint8_t op;
    Handler handler;
  };
  static constexpr Row kRows[] = {
      {'N', [](PickleMachine& m) { m.add(Kind::kNone); }},
      {0x88, [](PickleMachine& m) { m.add(Kind::kBool).integer = 1; }},
      {0x89, [](PickleMachine& m) { m.add(Kind::kBool); }},
      {'J', [](PickleMachine& m) { m.add_int<int32_t>(); }},
      {'K', [](PickleMachine& m) { m.add_int<uint8_t>(); }},
      {'M', [](PickleMachine& m) { m.add_int<uint16_t>(); }},
      {0x8A, [](PickleMachine& m) { m.add_long(m.input_.take<uint8_t>()); }},
      {0x8B, [](PickleMachine& m) { m.add_long(m.input_.take<uint32_t>()); }},
      {'G', [](PickleMachine& m) { m.add_float(); }},
      // Texts and bytes, with 1, 4 or 8 bytes of length; 'U' and 'T' are Python 2's strings.
      {'U', [](PickleMachine& m) { m.add_text<uint8_t>(Kind::kBytes); }},
      {'T', [](PickleMachine& m) { m.add_text<uint32_t>(Kind::kBytes); }},
      {0x8C, [](PickleMachine& m) { m.add_text<uint8_t>(Kind::kString); }},
      {'X', [](PickleMachine& m) { m.add_text<uint32_t>(Kind::kString); }},
      {0x8D, [](PickleMachine& m) { m.add_text<uint64_t>(Kind::kString); }},
      {'C', [](PickleMachine& m) { m.add_text<uint8_t>(Kind::kBytes); }},
      {'B', [](PickleMachine& m) { m.add_text<uint32_t>(Kind::kBytes); }},
      {0x8E, [](PickleMachine& m) { m.add_text<uint64_t>(Kind::kBytes); }},
      {0x96, [](PickleMachine& m) { m.add_text<uint64_t>(Kind::kBytes); }},
      // Containers.
      {')', [](PickleMachine& m) { m.add(Kind::kTuple); }},
      {'t', [](PickleMachine& m) { m.add_tuple(m.pop_to_mark()); }},
      {0x85, [](PickleMachine& m) { m.add_tuple(m.pop_some(1)); }},
      {0x86, [](PickleMachine& m) { m.add_tuple(m.pop_some(2)); }},
      {0x87, [](PickleMachine& m) { m.add_tuple(m.pop_some(3)); }},
      {']', [](PickleMachine& m) { m.add(Kind::kList); }},
      {'a', [](PickleMachine& m) { m.append(Kind::kList, m.pop_some(1)); }},
      {'e', [](PickleMachine& m) { m.append(Kind::kList, m.pop_to_mark()); }},
      {0x8F, [](PickleMachine& m) { m.add(Kind::kSet); }},
      {0x90, [](PickleMachine& m) { m.append(Kind::kSet, m.pop_to_mark()); }},
      {'}', [](PickleMachine& m) { m.add(Kind::kDict); }},
      {'d', [](PickleMachine& m) { m.add_dict_from_mark(); }},
      {'s', [](PickleMachine& m) { m.set_items(m.pop_some(2)); }},
      {'u', [](PickleMachine& m) { m.set_items(m.pop_to_mark()); }},
      // Names and what would be made with them: REDUCE and NEWOBJ only note the wish.
      {'c', [](PickleMachine& m) { m.add_global_from_lines(); }},
      {0x93, [](PickleMachine& m) { m.add_global_from_stack(); }},
      {'R', [](PickleMachine& m) { m.add_call(); }},
      {0x81, [](PickleMachine& m) { m.add_call(); }},
      {'b', [](PickleMachine& m) { m.build(); }},
      {'Q', [](PickleMachine& m) { m.add_persistent(); }},
      // Stack and memo. FRAME (0x95) is a hint for buffered reading.
      {'(', [](PickleMachine& m) { m.mark(); }},
      {'0', [](PickleMachine& m) { m.pop_value_or_mark(); }},
      {'1', [](PickleMachine& m) { m.pop_to_mark(); }},
      {'2',
       [](PickleMachine& m) {
         m.top();
         m.push(m.stack_.back());
       }},
      {'q', [](PickleMachine& m) { m.put(m.input_.take<uint8_t>()); }},
      {'r', [](PickleMachine& m) { m.put(m.input_.take<uint32_t>()); }},
      {0x94, [](PickleMachine& m) { m.put(m.memo_count_); }},
      {'h', [](PickleMachine& m) { m.get(m.input_.take<uint8_t>()); }},
      {'j', [](PickleMachine& m) { m.get(m.input_.take<uint32_t>()); }},
      {0x95, [](PickleMachine& m) { m.input_.take<uint64_t>(); }},
  };
  static const std::array<Handler, 256> by_opcode = [] {
    std::array<Handler, 256> table{};
    for (const Row& row : kRows) table[row.op] = row.handler;
    return table;
  }();
  return by_opcode;
}

PickleNode& PickleMachine::add(PickleKind kind) {
  VT_REQUIRE(graph_.nodes.size() < limits_.max_nodes, ErrorKind::kData, "more than %zu values",
             limits_.max_nodes);
  push(static_cast<PickleId>(graph_.nodes.size()));
  graph_.nodes.emplace_back().kind = kind;
  return graph_.nodes.back();
}

void PickleMachine::add_long(uint64_t bytes) {
  const auto digits = input_.take(bytes);
  if (bytes > 8) {
    add(PickleKind::kBigInt);
    return;
  }
  const bool negative = bytes > 0 && (static_cast<uint8_t>(digits.back()) & 0x80) != 0;
  uint64_t value = negative ? ~uint64_t{0} : 0;
  for (size_t i = digits.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(digits[i]);
  add(PickleKind::kInt).integer = static_cast<int64_t>(value);
}

void PickleMachine::add_float() {
  // The one big-endian field of the format.
  add(PickleKind::kFloat).real = std::bit_cast<double>(__builtin_bswap64(input_.take<uint64_t>()));
}

void PickleMachine::add_dict_from_mark() {
  const std::vector<PickleId> items = pop_to_mark();
  add(PickleKind::kDict);
  set_items(items);
}

void PickleMachine::add_global(const std::string& full_name) {
  if (!allowed_(full_name))
    throw Error(
        ErrorKind::kData,
        strf("names %s, which would need to run code; pickles are read as data only",
             quoted(full_name).c_str()),
        "in Python, load the file and save its plain data; of a model its state_dict(), best as safetensors");
  add(PickleKind::kGlobal).text = full_name;
}

void PickleMachine::add_global_from_lines() {
  const std::string module = line();
  add_global(module + "." + line());
}

void PickleMachine::add_global_from_stack() {
  const PickleId name = pop(), module = pop();
  VT_REQUIRE(graph_[name].kind == PickleKind::kString && graph_[module].kind == PickleKind::kString,
             ErrorKind::kData, "a name that is not a text");
  add_global(graph_[module].text + "." + graph_[name].text);
}

void PickleMachine::add_call() {
  const PickleId argument = pop(), callee = pop();
  VT_REQUIRE(graph_[callee].kind == PickleKind::kGlobal && graph_[argument].kind == PickleKind::kTuple,
             ErrorKind::kData, "a call that is not of a name with a tuple of arguments");
  PickleNode& call = add(PickleKind::kCall);
  call.callee = callee;
  call.argument = argument;
}

void PickleMachine::add_persistent() {
  const PickleId argument = pop();
  add(PickleKind::kPersistent).argument = argument;
}

std::string PickleMachine::line() {
  std::string text;
  for (;;) {
    const char next = static_cast<char>(input_.take<uint8_t>());
    if (next == '\n') return text;
    VT_REQUIRE(text.size() < kMaxNameLine, ErrorKind::kData, "a name of more than %zu bytes", kMaxNameLine);
    text += next;
  }
}

void PickleMachine::push(PickleId id) {
  VT_REQUIRE(stack_.size() < limits_.max_items, ErrorKind::kData, "more than %zu values on the stack",
             limits_.max_items);
  stack_.push_back(id);
}

PickleId PickleMachine::pop() {
  top();
  const PickleId id = stack_.back();
  stack_.pop_back();
  return id;
}

PickleNode& PickleMachine::top() {
  VT_REQUIRE(stack_.size() > floor(), ErrorKind::kData, "takes a value where the stack has none");
  return graph_.nodes[stack_.back()];
}

void PickleMachine::mark() {
  VT_REQUIRE(marks_.size() < limits_.max_nodes, ErrorKind::kData, "more than %zu marks", limits_.max_nodes);
  marks_.push_back(stack_.size());
}

void PickleMachine::pop_value_or_mark() {
  if (!marks_.empty() && stack_.size() == floor())
    marks_.pop_back();
  else
    pop();
}

std::vector<PickleId> PickleMachine::pop_to_mark() {
  VT_REQUIRE(!marks_.empty(), ErrorKind::kData, "no mark on the stack");
  std::vector<PickleId> values(stack_.begin() + static_cast<std::ptrdiff_t>(floor()), stack_.end());
  stack_.resize(floor());
  marks_.pop_back();
  return values;
}

std::vector<PickleId> PickleMachine::pop_some(size_t count) {
  std::vector<PickleId> values(count);
  for (size_t i = count; i-- > 0;) values[i] = pop();
  return values;
}

void PickleMachine::append(PickleKind kind, const std::vector<PickleId>& values) {
  std::vector<PickleId>& items = top().items;
  VT_REQUIRE(top().kind == kind, ErrorKind::kData, "elements are added to what is not a list or set");
  items_ += values.size();
  VT_REQUIRE(items_ <= limits_.max_items, ErrorKind::kData, "more than %zu elements", limits_.max_items);
  items.insert(items.end(), values.begin(), values.end());
}

void PickleMachine::set_items(const std::vector<PickleId>& values) {
  VT_REQUIRE(values.size() % 2 == 0, ErrorKind::kData, "a key without a value");
  const PickleKind kind = top().kind;
  VT_REQUIRE(kind == PickleKind::kDict || kind == PickleKind::kCall, ErrorKind::kData,
             "keys are set on what is not a dict");
  append(kind, values);
}

void PickleMachine::build() {
  const PickleId state = pop();
  VT_REQUIRE(top().kind == PickleKind::kCall, ErrorKind::kData,
             "attributes are set on what is not an object");
  top().state = state;
}

void PickleMachine::put(uint64_t slot) {
  VT_REQUIRE(slot < limits_.max_nodes, ErrorKind::kData, "memo slot %llu is too large",
             static_cast<unsigned long long>(slot));
  top();
  if (slot >= memo_.size()) memo_.resize(slot + 1, kNoPickleId);
  if (memo_[slot] == kNoPickleId) ++memo_count_;
  memo_[slot] = stack_.back();
}

void PickleMachine::get(uint64_t slot) {
  VT_REQUIRE(slot < memo_.size() && memo_[slot] != kNoPickleId, ErrorKind::kData,
             "memo slot %llu was never filled", static_cast<unsigned long long>(slot));
  push(memo_[slot]);
}

PickleGraph read_pickle(std::span<const std::byte> bytes, const PickleNameFilter& allowed,
                        const PickleLimits& limits) {
  VT_REQUIRE(bytes.size() <= limits.max_bytes, ErrorKind::kData,
             "a pickle of %zu bytes, at most %zu are read", bytes.size(), limits.max_bytes);
  PickleMachine machine(bytes, allowed, limits);
  try {
    return machine.run();
  } catch (Error& error) {
    error.at(strf("pickle, before byte %zu", machine.position()));
    throw;
  }
}

}  // namespace vitrail
