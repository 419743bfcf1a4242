#include "io/npy.h"

#include <charconv>

#include "base/bytes.h"
#include "base/text.h"
#include "io/tensor_limits.h"

namespace vitrail {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// The first name of each type is the one written. bf16 has no numpy name: JAX programs leave it as raw
// 2-byte elements.
struct DescrRow {
  const char* descr;
  DType dtype;
};
constexpr DescrRow kDescrs[] = {
    {"<f4", DType::kF32},  {"<f2", DType::kF16}, {"<f8", DType::kF64},  {"|V2", DType::kBF16},
    {"<V2", DType::kBF16}, {"<i4", DType::kI32}, {"<i8", DType::kI64},  {"<i2", DType::kI16},
    {"|i1", DType::kI8},   {"|u1", DType::kU8},  {"|b1", DType::kBool},
};

DType dtype_of(std::string_view descr) {
  for (const DescrRow& row : kDescrs)
    if (descr == row.descr) return row.dtype;
  if (descr.find('O') != descr.npos)
    throw Error(ErrorKind::kData, strf("dtype %s holds Python objects, which only running code could read",
                                       quoted(descr).c_str()));
  throw Error(ErrorKind::kData, strf("dtype %s is not one Vitrail reads", quoted(descr).c_str()),
              "store float32, float16 or bfloat16, little-endian");
}

const char* descr_of(DType dtype) {
  for (const DescrRow& row : kDescrs)
    if (dtype == row.dtype) return row.descr;
  VT_CHECK(false, "dtype %s has no numpy name", to_string(dtype));
  return "";
}

// The literal numpy writes: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class DictParser {
 public:
  explicit DictParser(std::string_view text) : text_(text) {}

  void parse(NpyHeader& header) {
    bool seen[3] = {};
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      const int field = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      VT_REQUIRE(field >= 0 && !seen[field], ErrorKind::kData, "npy header: unexpected or repeated key %s",
                 quoted(key).c_str());
      seen[field] = true;
      if (field == 0)
        header.dtype = dtype_of(string());
      else if (field == 1)
        header.column_major = boolean();
      else
        header.shape = tuple();
      if (accept(',')) continue;
      expect('}');
      break;
    }
    VT_REQUIRE(seen[0] && seen[1] && seen[2], ErrorKind::kData,
               "npy header: descr, fortran_order or shape is missing");
    skip_space();
    VT_REQUIRE(text_.empty(), ErrorKind::kData, "npy header: unexpected %s after the dict",
               quoted(text_).c_str());
  }

 private:
  void skip_space() {
    const size_t next = text_.find_first_not_of(" \t\n");
    text_.remove_prefix(next == text_.npos ? text_.size() : next);
  }
  bool accept(char wanted) {
    skip_space();
    if (text_.empty() || text_[0] != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    VT_REQUIRE(accept(wanted), ErrorKind::kData, "npy header: expected '%c', found %s", wanted,
               quoted(text_).c_str());
  }
  bool accept_word(std::string_view word) {
    skip_space();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::string_view string() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const size_t end = text_.find(quote);
    VT_REQUIRE(end != text_.npos && text_.substr(0, end).find('\\') == text_.npos, ErrorKind::kData,
               "npy header: a text without end or with escapes");
    const std::string_view content = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return content;
  }
  bool boolean() {
    if (accept_word("True")) return true;
    VT_REQUIRE(accept_word("False"), ErrorKind::kData, "npy header: expected True or False, found %s",
               quoted(text_).c_str());
    return false;
  }
  int64_t integer() {
    skip_space();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    VT_REQUIRE(error == std::errc() && value >= 0, ErrorKind::kData,
               "npy header: expected an extent from 0 to 2^63 - 1, found %s", quoted(text_).c_str());
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    accept('L');  // Python 2 wrote long integers so
    return value;
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> values;
    expect('(');
    while (!accept(')')) {
      values.push_back(integer());
      VT_REQUIRE(values.size() <= kMaxRank, ErrorKind::kData, "npy header: more than %zu dimensions",
                 kMaxRank);
      if (accept(',')) continue;
      VT_REQUIRE(values.size() > 1, ErrorKind::kData, "npy header: shape is not a tuple");
      expect(')');
      break;
    }
    return values;
  }

  std::string_view text_;
};

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> start) {
  ByteCursor cursor(start);
  VT_REQUIRE(cursor.take_text(kMagic.size()) == kMagic, ErrorKind::kData,
             "not a numpy array: the magic is missing");
  const auto major = cursor.take<uint8_t>();
  const auto minor = cursor.take<uint8_t>();
  VT_REQUIRE(major >= 1 && major <= 3 && minor == 0, ErrorKind::kData,
             "npy version %u.%u, 1.0 to 3.0 are read", major, minor);
  const uint32_t length = major == 1 ? cursor.take<uint16_t>() : cursor.take<uint32_t>();
  VT_REQUIRE(length <= kMaxNpyHeader - cursor.position(), ErrorKind::kData,
             "an npy header of %u bytes, at most %zu are read", length, kMaxNpyHeader);
  NpyHeader header;
  DictParser(cursor.take_text(length)).parse(header);
  header.data_offset = cursor.position();
  return header;
}

std::string npy_header_text(DType dtype, std::span<const int64_t> shape) {
  std::string dict = strf("{'descr': '%s', 'fortran_order': False, 'shape': (", descr_of(dtype));
  for (size_t i = 0; i < shape.size(); ++i)
    dict += strf(i == 0 ? "%lld" : ", %lld", static_cast<long long>(shape[i]));
  dict += shape.size() == 1 ? ",), }" : "), }";
  const size_t before = kMagic.size() + 4;
  dict.resize(round_up(before + dict.size() + 1, 64) - before - 1, ' ');
  dict += '\n';
  std::string text(kMagic);
  append_le<uint8_t>(text, 1);
  append_le<uint8_t>(text, 0);
  append_le(text, static_cast<uint16_t>(dict.size()));
  return text + dict;
}

}  // namespace vitrail
