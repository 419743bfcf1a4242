#include "io/checkpoint/manifest.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/json_text.h"
#include "base/text.h"

namespace vitrail {

namespace {

constexpr JsonLimits kLimits{.max_bytes = size_t{64} << 20};
constexpr size_t kMaxFiles = 10'000;

// The manifest's last member is the checksum of all the text before it.
constexpr std::string_view kSealStart = ",\n \"manifest_crc32c\": \"";
constexpr std::string_view kSealEnd = "\"\n}\n";
constexpr size_t kSealBytes = kSealStart.size() + 8 + kSealEnd.size();

std::string hex(uint32_t value) {
  return strf("%08x", value);
}

uint32_t parse_hex(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  VT_REQUIRE(error == std::errc() && end == text.data() + text.size() && hex(value) == text, ErrorKind::kData,
             "%s is no checksum: expected 8 hexadecimal digits", quoted(text).c_str());
  return value;
}

std::string seal(std::string_view body) {
  return std::string(kSealStart) + hex(crc32c(as_byte_span(body))) + std::string(kSealEnd);
}

bool is_sealed(std::string_view text) {
  return text.size() > kSealBytes &&
         text.substr(text.size() - kSealBytes) == seal(text.substr(0, text.size() - kSealBytes));
}

const Json& member(const Json& object, const char* key, bool (Json::*is)() const noexcept,
                   const char* expected) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  VT_REQUIRE(object.is_object() && found != object.end() && ((*found).*is)(), ErrorKind::kData,
             "\"%s\" is missing or not %s", key, expected);
  return *found;
}

uint64_t count_member(const Json& object, const char* key) {
  const auto value = member(object, key, &Json::is_number_unsigned, "a count").get<uint64_t>();
  VT_REQUIRE(value <= static_cast<uint64_t>(INT64_MAX), ErrorKind::kData, "\"%s\" is too large", key);
  return value;
}

void require_known_format(const Json& json, const std::string& source_name) {
  const uint64_t format = count_member(json, "format");
  if (format > static_cast<uint64_t>(kCheckpointFormat))
    throw NewerFormat(
        ErrorKind::kData,
        strf("%s has checkpoint format %llu, this version of Vitrail knows up to %lld", source_name.c_str(),
             static_cast<unsigned long long>(format), static_cast<long long>(kCheckpointFormat)),
        "resume with the version that wrote it or a later one, or start in another folder");
  VT_REQUIRE(format > 0, ErrorKind::kData, "format %llu does not exist",
             static_cast<unsigned long long>(format));
}

Manifest parse_members(const Json& json) {
  Manifest manifest;
  manifest.step = static_cast<int64_t>(count_member(json, "step"));
  manifest.facts = member(json, "facts", &Json::is_object, "an object");
  const Json& files = member(json, "files", &Json::is_array, "a list");
  VT_REQUIRE(files.size() <= kMaxFiles, ErrorKind::kData, "%zu files, at most %zu are read", files.size(),
             kMaxFiles);
  std::set<std::string> names;
  for (const Json& file : files) {
    manifest.files.push_back(record_from(file));
    VT_REQUIRE(names.insert(manifest.files.back().name).second, ErrorKind::kData, "%s is listed twice",
               manifest.files.back().name.c_str());
  }
  if (count_member(json, "format") == 1) return manifest;
  manifest.pieces = static_cast<int64_t>(count_member(json, "pieces"));
  manifest.save = member(json, "save", &Json::is_string, "text").get<std::string>();
  VT_REQUIRE(manifest.pieces > 0 && manifest.pieces <= static_cast<int64_t>(kMaxFiles), ErrorKind::kData,
             "%lld pieces", static_cast<long long>(manifest.pieces));
  return manifest;
}

// Calls `each` with (block, first byte, bytes) of every wanted block of the file, in order.
template <typename Wanted, typename Each>
void for_blocks(const ByteSource& file, const Wanted& wanted, Each&& each) {
  std::vector<std::byte> buffer(static_cast<size_t>(std::min(file.size(), kChecksumBlock)));
  for (uint64_t at = 0; at < file.size(); at += kChecksumBlock) {
    if (!wanted(at / kChecksumBlock)) continue;
    const auto block =
        std::span(buffer).first(static_cast<size_t>(std::min(kChecksumBlock, file.size() - at)));
    file.read_at(at, block);
    each(at / kChecksumBlock, at, std::span<const std::byte>(block));
  }
}

}  // namespace

bool is_plain_file_name(std::string_view name) {
  const auto is_plain = [](unsigned char c) { return c > ' ' && c < 127 && c != '/' && c != '\\'; };
  return !name.empty() && name.size() <= 255 && name[0] != '.' && name != kManifestName &&
         std::all_of(name.begin(), name.end(), is_plain);
}

Json to_json(const FileRecord& record) {
  std::string blocks;
  for (const uint32_t crc : record.blocks) blocks += hex(crc);
  return {{"name", record.name},
          {"bytes", record.bytes},
          {"crc32c", hex(record.crc)},
          {"blocks", std::move(blocks)}};
}

FileRecord record_from(const Json& json) {
  FileRecord record;
  record.name = member(json, "name", &Json::is_string, "text").get<std::string>();
  VT_REQUIRE(is_plain_file_name(record.name), ErrorKind::kData, "%s is not a plain file name",
             quoted(record.name).c_str());
  record.bytes = count_member(json, "bytes");
  record.crc = parse_hex(member(json, "crc32c", &Json::is_string, "text").get_ref<const std::string&>());
  const std::string_view blocks =
      member(json, "blocks", &Json::is_string, "text").get_ref<const std::string&>();
  const uint64_t expected = record.bytes / kChecksumBlock + (record.bytes % kChecksumBlock != 0);
  VT_REQUIRE(blocks.size() % 8 == 0 && blocks.size() / 8 == expected, ErrorKind::kData,
             "%s: %zu digits of block checksums, %llu bytes have 8 for each of %llu blocks",
             record.name.c_str(), blocks.size(), static_cast<unsigned long long>(record.bytes),
             static_cast<unsigned long long>(expected));
  for (size_t at = 0; at < blocks.size(); at += 8) record.blocks.push_back(parse_hex(blocks.substr(at, 8)));
  return record;
}

std::string manifest_text(const Manifest& manifest) {
  Json files = Json::array();
  for (const FileRecord& record : manifest.files) files.push_back(to_json(record));
  Json json = {{"format", manifest.pieces > 0 ? uint64_t{2} : uint64_t{1}},
               {"step", static_cast<uint64_t>(manifest.step)},
               {"facts", manifest.facts},
               {"files", std::move(files)}};
  if (manifest.pieces > 0)
    json.update({{"pieces", static_cast<uint64_t>(manifest.pieces)}, {"save", manifest.save}});
  std::string text = json_text(json, 1);
  text.erase(text.size() - 2);  // "\n}", which the seal closes
  return text + seal(text);
}

Manifest parse_manifest(std::string_view text, const std::string& source_name) {
  const bool sealed = is_sealed(text);
  std::optional<Json> json;
  try {
    json = parse_json(text, source_name, kLimits);
  } catch (const Error&) {
    if (sealed) throw;
  }
  return with_context(source_name, [&] {
    // Another version may have another seal; a damaged manifest of this one still names this format or none.
    if (json && !sealed && json->is_object() && json->contains("format") &&
        !json->contains("manifest_crc32c"))
      require_known_format(*json, source_name);
    VT_REQUIRE(sealed, ErrorKind::kData, "damaged: it does not match its own checksum");
    require_known_format(*json, source_name);
    return parse_members(*json);
  });
}

FileRecord record_of(const ByteSource& file, const std::string& name) {
  FileRecord record{.name = name, .bytes = file.size()};
  const auto all = [](uint64_t) { return true; };
  for_blocks(file, all, [&](uint64_t, uint64_t, std::span<const std::byte> bytes) {
    record.blocks.push_back(crc32c(bytes));
    record.crc = crc32c(bytes, record.crc);
  });
  return record;
}

void require_intact(const ByteSource& file, const FileRecord& record) {
  require_share_intact(file, record, 0, 1);
}

void require_share_intact(const ByteSource& file, const FileRecord& record, uint64_t remainder, uint64_t of) {
  VT_REQUIRE(file.size() == record.bytes, ErrorKind::kData, "%s has %llu bytes, %llu were written",
             file.name().c_str(), static_cast<unsigned long long>(file.size()),
             static_cast<unsigned long long>(record.bytes));
  uint32_t whole = 0;
  const auto is_ours = [=](uint64_t block) { return block % of == remainder; };
  for_blocks(file, is_ours, [&](uint64_t block, uint64_t at, std::span<const std::byte> bytes) {
    VT_REQUIRE(crc32c(bytes) == record.blocks.at(block), ErrorKind::kData,
               "%s is damaged: block %llu (bytes %llu to %llu) does not match its checksum",
               file.name().c_str(), static_cast<unsigned long long>(block),
               static_cast<unsigned long long>(at), static_cast<unsigned long long>(at + bytes.size() - 1));
    whole = crc32c(bytes, whole);
  });
  VT_REQUIRE(of > 1 || whole == record.crc, ErrorKind::kData, "%s does not match its checksum",
             file.name().c_str());
}

}  // namespace vitrail
