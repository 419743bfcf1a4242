// The manifest of a checkpoint or a model folder: format version, step and facts of a checkpoint, and size
// and checksums of every file. It is written last and protected by a checksum of its own. Knows nothing of
// training.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"

namespace vitrail {

constexpr int64_t kCheckpointFormat = 1;
constexpr uint64_t kChecksumBlock = uint64_t{1} << 20;
constexpr const char* kManifestName = "manifest.json";

constexpr size_t kMaxManifest = size_t{64} << 20;  // bytes

struct FileRecord {
  std::string name;  // a plain file name
  uint64_t bytes = 0;
  uint32_t crc = 0;              // CRC-32C of the whole
  std::vector<uint32_t> blocks;  // and of each kChecksumBlock bytes
  bool operator==(const FileRecord&) const = default;
};

struct Manifest {
  int64_t step = 0;  // 0: a model that is no checkpoint
  Json facts = Json::object();
  std::vector<FileRecord> files;
};

// A checkpoint of a later version is not damaged, so it must never be skipped for an older one.
class NewerFormat : public Error {
 public:
  using Error::Error;
};

// Whether a manifest may list a file of this name; it may not list itself.
bool is_plain_file_name(std::string_view name);

std::string manifest_text(const Manifest& manifest);

// Throws Error(kData) for anything but what manifest_text writes, NewerFormat for a later format.
Manifest parse_manifest(std::string_view text, const std::string& source_name);

// Reads a file back and returns its size and checksums.
FileRecord record_of(const ByteSource& file, const std::string& name);

// Throws Error(kData) naming the file and its first bad block.
void require_intact(const ByteSource& file, const FileRecord& record);

}  // namespace vitrail
