#include "base/pickle.h"

#include <array>
#include <bit>

#include "base/bytes.h"
#include "base/text.h"

namespace vitrail {

namespace {

constexpr size_t kMaxNameLine = 1024;

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const PickleNameFilter& allowed, const PickleLimits& limits)
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
  using Handler = void (*)(Machine&);
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

const std::array<Machine::Handler, 256>& Machine::handlers() {
  using Kind = PickleKind;
  struct Row {
    uint8_t op;
    Handler handler;
  };
  static constexpr Row kRows[] = {
      {'N', [](Machine& m) { m.add(Kind::kNone); }},
      {0x88, [](Machine& m) { m.add(Kind::kBool).integer = 1; }},
      {0x89, [](Machine& m) { m.add(Kind::kBool); }},
      {'J', [](Machine& m) { m.add_int<int32_t>(); }},
      {'K', [](Machine& m) { m.add_int<uint8_t>(); }},
      {'M', [](Machine& m) { m.add_int<uint16_t>(); }},
      {0x8A, [](Machine& m) { m.add_long(m.input_.take<uint8_t>()); }},
      {0x8B, [](Machine& m) { m.add_long(m.input_.take<uint32_t>()); }},
      {'G', [](Machine& m) { m.add_float(); }},
      // Strings and bytes, with 1, 4 or 8 bytes of length; 'U' and 'T' are Python 2's strings.
      {'U', [](Machine& m) { m.add_text<uint8_t>(Kind::kBytes); }},
      {'T', [](Machine& m) { m.add_text<uint32_t>(Kind::kBytes); }},
      {0x8C, [](Machine& m) { m.add_text<uint8_t>(Kind::kString); }},
      {'X', [](Machine& m) { m.add_text<uint32_t>(Kind::kString); }},
      {0x8D, [](Machine& m) { m.add_text<uint64_t>(Kind::kString); }},
      {'C', [](Machine& m) { m.add_text<uint8_t>(Kind::kBytes); }},
      {'B', [](Machine& m) { m.add_text<uint32_t>(Kind::kBytes); }},
      {0x8E, [](Machine& m) { m.add_text<uint64_t>(Kind::kBytes); }},
      {0x96, [](Machine& m) { m.add_text<uint64_t>(Kind::kBytes); }},
      // Containers.
      {')', [](Machine& m) { m.add(Kind::kTuple); }},
      {'t', [](Machine& m) { m.add_tuple(m.pop_to_mark()); }},
      {0x85, [](Machine& m) { m.add_tuple(m.pop_some(1)); }},
      {0x86, [](Machine& m) { m.add_tuple(m.pop_some(2)); }},
      {0x87, [](Machine& m) { m.add_tuple(m.pop_some(3)); }},
      {']', [](Machine& m) { m.add(Kind::kList); }},
      {'a', [](Machine& m) { m.append(Kind::kList, m.pop_some(1)); }},
      {'e', [](Machine& m) { m.append(Kind::kList, m.pop_to_mark()); }},
      {0x8F, [](Machine& m) { m.add(Kind::kSet); }},
      {0x90, [](Machine& m) { m.append(Kind::kSet, m.pop_to_mark()); }},
      {'}', [](Machine& m) { m.add(Kind::kDict); }},
      {'d', [](Machine& m) { m.add_dict_from_mark(); }},
      {'s', [](Machine& m) { m.set_items(m.pop_some(2)); }},
      {'u', [](Machine& m) { m.set_items(m.pop_to_mark()); }},
      // Globals and the objects made from them: REDUCE and NEWOBJ only record the call.
      {'c', [](Machine& m) { m.add_global_from_lines(); }},
      {0x93, [](Machine& m) { m.add_global_from_stack(); }},
      {'R', [](Machine& m) { m.add_call(); }},
      {0x81, [](Machine& m) { m.add_call(); }},
      {'b', [](Machine& m) { m.build(); }},
      {'Q', [](Machine& m) { m.add_persistent(); }},
      // Stack and memo. FRAME (0x95) is a hint for buffered reading.
      {'(', [](Machine& m) { m.mark(); }},
      {'0', [](Machine& m) { m.pop_value_or_mark(); }},
      {'1', [](Machine& m) { m.pop_to_mark(); }},
      {'2', [](Machine& m) { m.top(), m.push(m.stack_.back()); }},
      {'q', [](Machine& m) { m.put(m.input_.take<uint8_t>()); }},
      {'r', [](Machine& m) { m.put(m.input_.take<uint32_t>()); }},
      {0x94, [](Machine& m) { m.put(m.memo_count_); }},
      {'h', [](Machine& m) { m.get(m.input_.take<uint8_t>()); }},
      {'j', [](Machine& m) { m.get(m.input_.take<uint32_t>()); }},
      {0x95, [](Machine& m) { m.input_.take<uint64_t>(); }},
  };
  static const std::array<Handler, 256> by_opcode = [] {
    std::array<Handler, 256> table{};
    for (const Row& row : kRows) table[row.op] = row.handler;
    return table;
  }();
  return by_opcode;
}

PickleNode& Machine::add(PickleKind kind) {
  VT_REQUIRE(graph_.nodes.size() < limits_.max_nodes, ErrorKind::kData, "more than %zu values",
             limits_.max_nodes);
  push(static_cast<PickleId>(graph_.nodes.size()));
  graph_.nodes.emplace_back().kind = kind;
  return graph_.nodes.back();
}

void Machine::add_long(uint64_t bytes) {
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

void Machine::add_float() {
  // A float is the one big-endian field of the format.
  add(PickleKind::kFloat).real = std::bit_cast<double>(__builtin_bswap64(input_.take<uint64_t>()));
}

void Machine::add_dict_from_mark() {
  const std::vector<PickleId> items = pop_to_mark();
  add(PickleKind::kDict);
  set_items(items);
}

void Machine::add_global(const std::string& full_name) {
  if (!allowed_(full_name))
    throw Error(
        ErrorKind::kData,
        strf("names %s, which would need to run code; pickles are read as data only",
             quoted(full_name).c_str()),
        "in Python, load the file and save its plain data; of a model its state_dict(), best as safetensors");
  add(PickleKind::kGlobal).text = full_name;
}

void Machine::add_global_from_lines() {
  const std::string module = line();
  add_global(module + "." + line());
}

void Machine::add_global_from_stack() {
  const PickleId name = pop(), module = pop();
  VT_REQUIRE(graph_[name].kind == PickleKind::kString && graph_[module].kind == PickleKind::kString,
             ErrorKind::kData, "a name that is not a text");
  add_global(graph_[module].text + "." + graph_[name].text);
}

void Machine::add_call() {
  const PickleId argument = pop(), callee = pop();
  VT_REQUIRE(graph_[callee].kind == PickleKind::kGlobal && graph_[argument].kind == PickleKind::kTuple,
             ErrorKind::kData, "a call that is not of a name with a tuple of arguments");
  PickleNode& call = add(PickleKind::kCall);
  call.callee = callee;
  call.argument = argument;
}

void Machine::add_persistent() {
  const PickleId argument = pop();
  add(PickleKind::kPersistent).argument = argument;
}

std::string Machine::line() {
  std::string text;
  for (;;) {
    const char next = static_cast<char>(input_.take<uint8_t>());
    if (next == '\n') return text;
    VT_REQUIRE(text.size() < kMaxNameLine, ErrorKind::kData, "a name of more than %zu bytes", kMaxNameLine);
    text += next;
  }
}

void Machine::push(PickleId id) {
  VT_REQUIRE(stack_.size() < limits_.max_items, ErrorKind::kData, "more than %zu values on the stack",
             limits_.max_items);
  stack_.push_back(id);
}

PickleId Machine::pop() {
  top();
  const PickleId id = stack_.back();
  stack_.pop_back();
  return id;
}

PickleNode& Machine::top() {
  VT_REQUIRE(stack_.size() > floor(), ErrorKind::kData, "takes a value where the stack has none");
  return graph_.nodes[stack_.back()];
}

void Machine::mark() {
  VT_REQUIRE(marks_.size() < limits_.max_nodes, ErrorKind::kData, "more than %zu marks", limits_.max_nodes);
  marks_.push_back(stack_.size());
}

void Machine::pop_value_or_mark() {
  if (!marks_.empty() && stack_.size() == floor())
    marks_.pop_back();
  else
    pop();
}

std::vector<PickleId> Machine::pop_to_mark() {
  VT_REQUIRE(!marks_.empty(), ErrorKind::kData, "no mark on the stack");
  std::vector<PickleId> values(stack_.begin() + static_cast<std::ptrdiff_t>(floor()), stack_.end());
  stack_.resize(floor());
  marks_.pop_back();
  return values;
}

std::vector<PickleId> Machine::pop_some(size_t count) {
  std::vector<PickleId> values(count);
  for (size_t i = count; i-- > 0;) values[i] = pop();
  return values;
}

void Machine::append(PickleKind kind, const std::vector<PickleId>& values) {
  std::vector<PickleId>& items = top().items;
  VT_REQUIRE(top().kind == kind, ErrorKind::kData, "elements are added to what is not a list or set");
  items_ += values.size();
  VT_REQUIRE(items_ <= limits_.max_items, ErrorKind::kData, "more than %zu elements", limits_.max_items);
  items.insert(items.end(), values.begin(), values.end());
}

void Machine::set_items(const std::vector<PickleId>& values) {
  VT_REQUIRE(values.size() % 2 == 0, ErrorKind::kData, "a key without a value");
  const PickleKind kind = top().kind;
  VT_REQUIRE(kind == PickleKind::kDict || kind == PickleKind::kCall, ErrorKind::kData,
             "keys are set on what is not a dict");
  append(kind, values);
}

void Machine::build() {
  const PickleId state = pop();
  VT_REQUIRE(top().kind == PickleKind::kCall, ErrorKind::kData,
             "attributes are set on what is not an object");
  top().state = state;
}

void Machine::put(uint64_t slot) {
  VT_REQUIRE(slot < limits_.max_nodes, ErrorKind::kData, "memo slot %llu is too large",
             static_cast<unsigned long long>(slot));
  top();
  if (slot >= memo_.size()) memo_.resize(slot + 1, kNoPickleId);
  if (memo_[slot] == kNoPickleId) ++memo_count_;
  memo_[slot] = stack_.back();
}

void Machine::get(uint64_t slot) {
  VT_REQUIRE(slot < memo_.size() && memo_[slot] != kNoPickleId, ErrorKind::kData,
             "memo slot %llu was never filled", static_cast<unsigned long long>(slot));
  push(memo_[slot]);
}

}  // namespace

PickleGraph read_pickle(std::span<const std::byte> bytes, const PickleNameFilter& allowed,
                        const PickleLimits& limits) {
  VT_REQUIRE(bytes.size() <= limits.max_bytes, ErrorKind::kData,
             "a pickle of %zu bytes, at most %zu are read", bytes.size(), limits.max_bytes);
  Machine machine(bytes, allowed, limits);
  try {
    return machine.run();
  } catch (Error& error) {
    error.at(strf("pickle, before byte %zu", machine.position()));
    throw;
  }
}

}  // namespace vitrail
