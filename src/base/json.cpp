#include "base/json.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "base/text.h"

namespace vitrail {

namespace {

// An iterator over the text that publishes its position to the handler, because the parser's callbacks carry
// none.
struct TrackedChar {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* here;
  const char** reached;

  reference operator*() const { return *here; }
  TrackedChar& operator++() {
    *reached = ++here;
    return *this;
  }
  TrackedChar operator++(int) {
    const TrackedChar before = *this;
    ++*this;
    return before;
  }
  bool operator==(const TrackedChar& other) const { return here == other.here; }
};

std::string place(std::string_view text, const char* reached, const std::string& source_name) {
  const std::string_view before = text.substr(0, static_cast<size_t>(reached - text.data()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t newline = before.rfind('\n');
  const size_t column = newline == before.npos ? before.size() : before.size() - newline - 1;
  return strf("%s:%lld:%zu", source_name.c_str(), static_cast<long long>(line), std::max<size_t>(column, 1));
}

// Returns the parser's message without its own prefix and position, cut to a bounded length.
std::string plain_message(std::string_view message) {
  const size_t column = message.find(", column ");
  const size_t start = column == message.npos ? message.find("] ") : message.find(": ", column);
  if (start != message.npos) message.remove_prefix(start + 2);
  const std::string shown = std::string(message.substr(0, 160));
  return is_valid_utf8(shown) ? shown : "malformed text";
}

// The handler of nlohmann's SAX parser. It turns the parser's events into ours, and refuses what the parser
// would accept.
class Handler {
 public:
  Handler(JsonEvents& events, const JsonLimits& limits) : events_(events), limits_(limits) {}

  bool null() { return pass(nullptr); }
  bool boolean(bool value) { return pass(value); }
  bool number_integer(int64_t value) { return pass(value); }
  bool number_unsigned(uint64_t value) { return pass(value); }
  bool number_float(double value, const std::string& text) {
    VT_REQUIRE(text.find_first_of(".eE") != text.npos, limits_.kind, "the integer %s does not fit 64 bits",
               vitrail::quoted(text).c_str());
    return pass(value);
  }
  bool string(std::string& value) { return pass(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }  // JSON text has no binary values
  bool key(std::string& name) {
    events_.key(std::move(name));
    return true;
  }
  bool start_object(size_t) {
    deeper();
    events_.begin_object();
    return true;
  }
  bool start_array(size_t) {
    deeper();
    events_.begin_array();
    return true;
  }
  bool end_object() { return shallower(); }
  bool end_array() { return shallower(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) {
    throw Error(limits_.kind, plain_message(error.what()));
  }

 private:
  bool pass(Json value) {
    events_.scalar(std::move(value));
    return true;
  }
  void deeper() {
    VT_REQUIRE(++depth_ <= limits_.max_depth, limits_.kind, "nested deeper than %d levels",
               limits_.max_depth);
  }
  bool shallower() {
    --depth_;
    events_.end();
    return true;
  }

  JsonEvents& events_;
  const JsonLimits& limits_;
  int depth_ = 0;
};

class TreeBuilder : public JsonEvents {
 public:
  explicit TreeBuilder(ErrorKind kind) : kind_(kind) {}

  void scalar(Json value) override { *place_for_value() = std::move(value); }
  void key(std::string name) override {
    const auto [member, inserted] = open_.back()->emplace(name, nullptr);
    VT_REQUIRE(inserted, kind_, "the key %s appears twice in one object", vitrail::quoted(name).c_str());
    slot_ = &*member;
  }
  void begin_object() override { open(Json::object()); }
  void begin_array() override { open(Json::array()); }
  void end() override { open_.pop_back(); }

  Json take() { return std::move(root_); }

 private:
  Json* place_for_value() {
    if (open_.empty()) return &root_;
    if (open_.back()->is_object()) return slot_;
    open_.back()->push_back(nullptr);
    return &open_.back()->back();
  }
  void open(Json container) {
    Json* where = place_for_value();
    *where = std::move(container);
    open_.push_back(where);
  }

  ErrorKind kind_;
  Json root_;
  std::vector<Json*> open_;  // containers not yet closed, outermost first
  Json* slot_ = nullptr;     // where the value of the last key goes
};

}  // namespace

void scan_json(std::string_view text, const std::string& source_name, const JsonLimits& limits,
               JsonEvents& events) {
  VT_REQUIRE(text.size() <= limits.max_bytes, limits.kind, "%s: %zu bytes of JSON, at most %zu are read",
             source_name.c_str(), text.size(), limits.max_bytes);
  // Editors of some systems begin every text with a byte order mark.
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const char* reached = text.data();
  try {
    // The parser takes a zero byte for the end of its input.
    const void* zero = text.empty() ? nullptr : std::memchr(text.data(), 0, text.size());
    if (zero) {
      reached = static_cast<const char*>(zero) + 1;
      throw Error(limits.kind, "a zero byte in JSON text");
    }
    Handler handler(events, limits);
    const TrackedChar first{text.data(), &reached}, last{text.data() + text.size(), &reached};
    const bool done =
        Json::sax_parse(first, last, &handler, Json::input_format_t::json, true, limits.comments);
    VT_CHECK(done);
  } catch (Error& error) {
    error.at(place(text, reached, source_name));
    throw;
  }
}

Json parse_json(std::string_view text, const std::string& source_name, const JsonLimits& limits) {
  TreeBuilder tree(limits.kind);
  scan_json(text, source_name, limits, tree);
  return tree.take();
}

}  // namespace vitrail
