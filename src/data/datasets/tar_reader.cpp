#include "data/datasets/tar_reader.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"

namespace vitrail {

namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kMaxExtension = 1 << 20;
constexpr size_t kMaxName = 4096;
constexpr size_t kEndBlock = 1 << 16;  // bytes read at once behind the end

// Reads a number field: octal digits between spaces and zeros, or base 256 when the first bit is set.
uint64_t read_number(std::string_view field, const char* what) {
  const auto first = static_cast<unsigned char>(field[0]);
  uint64_t value = 0;
  if (first & 0x80) {
    bool fits = first == 0x80;
    for (const char c : field.substr(1)) {
      fits = fits && value >> 56 == 0;
      value = value << 8 | static_cast<unsigned char>(c);
    }
    VT_REQUIRE(fits && value <= INT64_MAX, ErrorKind::kData, "the %s is negative or beyond 63 bits", what);
    return value;
  }
  while (!field.empty() && field[0] == ' ') field.remove_prefix(1);
  const auto [end, code] = std::from_chars(field.data(), field.data() + field.size(), value, 8);
  const auto rest = field.substr(static_cast<size_t>(end - field.data()));
  const bool padded = std::all_of(rest.begin(), rest.end(), [](char c) { return c == ' ' || c == '\0'; });
  VT_REQUIRE(code == std::errc() && padded, ErrorKind::kData, "the %s is no octal number", what);
  return value;
}

std::string_view until_zero(std::string_view field) {
  return field.substr(0, field.find('\0'));
}

}  // namespace

struct TarReader::Header {
  char bytes[kBlock];

  std::string_view field(size_t at, size_t length) const { return {bytes + at, length}; }
  bool is_zero() const {
    return std::all_of(std::begin(bytes), std::end(bytes), [](char c) { return c == 0; });
  }
  char type() const { return bytes[156]; }
  uint64_t size() const { return read_number(field(124, 12), "size"); }
  bool posix() const { return field(257, 6) == std::string_view("ustar\0", 6); }
  bool gnu() const { return field(257, 8) == std::string_view("ustar  \0", 8); }
  std::string name() const {
    std::string name(until_zero(field(0, 100)));
    const std::string_view prefix = posix() ? until_zero(field(345, 155)) : "";
    return prefix.empty() ? name : std::string(prefix) + "/" + name;
  }
  uint64_t sum() const {
    uint64_t total = 0;
    for (size_t i = 0; i < kBlock; ++i)
      total += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(bytes[i]);
    return total;
  }
};

bool TarReader::read_header(Header& header) {
  if (position_ == file_.size()) return false;
  file_.read_at(position_, std::as_writable_bytes(std::span(header.bytes)));
  if (header.is_zero()) {
    require_end();
    return false;
  }
  VT_REQUIRE(header.posix() || header.gnu(), ErrorKind::kData, "no tar header (ustar)");
  VT_REQUIRE(read_number(header.field(148, 8), "checksum") == header.sum(), ErrorKind::kData,
             "a header with a wrong checksum");
  position_ += kBlock;
  return true;
}

// What follows a block of zeros, which ends an archive, is more of them.
void TarReader::require_end() const {
  std::vector<std::byte> block(kEndBlock);
  for (uint64_t at = position_; at < file_.size(); at += block.size()) {
    const auto part = std::span(block).first(std::min<uint64_t>(block.size(), file_.size() - at));
    file_.read_at(at, part);
    if (std::ranges::any_of(part, [](std::byte b) { return b != std::byte{0}; }))
      throw Error(ErrorKind::kData, "a block of zeros ends the archive, but more follows it",
                  "an archive that is whole; two are joined by tar --concatenate, not by cat");
  }
}

std::string TarReader::read_extension(const Header& header) {
  const uint64_t size = header.size();
  VT_REQUIRE(size <= kMaxExtension && size <= file_.size() - position_, ErrorKind::kData,
             "an extension header of %llu bytes", static_cast<unsigned long long>(size));
  std::string content(size, '\0');
  file_.read_at(position_, std::as_writable_bytes(std::span(content)));
  position_ = std::min(position_ + round_up(size, kBlock), file_.size());
  return content;
}

// Reads records "LENGTH KEY=VALUE\n", where LENGTH counts the whole record.
void TarReader::apply_pax(const std::string& records) {
  std::string_view rest = records;
  while (!rest.empty() && rest[0] != '\0') {
    uint64_t length = 0;
    const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    const auto digits = static_cast<size_t>(end - rest.data());
    VT_REQUIRE(code == std::errc() && length <= rest.size() && digits + 2 < length && rest[digits] == ' ' &&
                   rest[length - 1] == '\n',
               ErrorKind::kData, "a malformed pax record");
    const std::string_view record = rest.substr(digits + 1, length - digits - 2);
    rest.remove_prefix(length);
    const size_t equals = record.find('=');
    VT_REQUIRE(equals != std::string_view::npos, ErrorKind::kData, "a pax record without a value");
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") name_ = value;
    if (key == "size") {
      uint64_t size = 0;
      const auto [stop, fault] = std::from_chars(value.data(), value.data() + value.size(), size);
      VT_REQUIRE(fault == std::errc() && stop == value.data() + value.size(), ErrorKind::kData,
                 "a pax size that is no number");
      size_ = size;
    }
    VT_REQUIRE(!key.starts_with("GNU.sparse"), ErrorKind::kData, "a sparse file, expected plain ones");
  }
}

std::optional<TarMember> TarReader::next() {
  return with_context(
      strf("tar header near byte %llu", static_cast<unsigned long long>(position_)),
      [&]() -> std::optional<TarMember> {
        Header header;
        while (read_header(header)) {
          switch (header.type()) {
            case 'x':
              apply_pax(read_extension(header));
              continue;
            case 'L':
              name_ = std::string(until_zero(read_extension(header)));
              continue;
            case 'g':
            case 'K':
              read_extension(header);
              continue;
            default:
              break;
          }
          TarMember member{name_.value_or(header.name()), position_, size_.value_or(header.size())};
          name_.reset();
          size_.reset();
          VT_REQUIRE(member.size <= file_.size() - position_, ErrorKind::kData,
                     "cut short: %s has %llu bytes, the archive ends after %llu", quoted(member.name).c_str(),
                     static_cast<unsigned long long>(member.size),
                     static_cast<unsigned long long>(file_.size() - position_));
          VT_REQUIRE(!member.name.empty() && member.name.size() <= kMaxName, ErrorKind::kData,
                     "a name of %zu bytes, expected 1 to %zu", member.name.size(), kMaxName);
          // The padding of the last member may be missing.
          position_ = std::min(position_ + round_up(member.size, kBlock), file_.size());
          const char type = header.type();
          if (type == '5') continue;
          VT_REQUIRE(type == '0' || type == '\0', ErrorKind::kData,
                     "%s is a link or a special file, expected plain files", quoted(member.name).c_str());
          return member;
        }
        return std::nullopt;
      });
}

}  // namespace vitrail
