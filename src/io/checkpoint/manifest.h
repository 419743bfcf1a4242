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

// The formats: 1 has its state in one file; 2 has it in pieces, one of each rank that wrote it.
constexpr int64_t kCheckpointFormat = 2;
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
  // State in pieces says how many, and what they have in common with no other save. None: format 1.
  int64_t pieces = 0;
  std::string save = {};
};

// A checkpoint of a later version is not damaged, so it must never be skipped for an older one.
class NewerFormat : public Error {
 public:
  using Error::Error;
};

// Returns whether a manifest may list a file of this name; it may not list itself.
bool is_plain_file_name(std::string_view name);

Json to_json(const FileRecord& record);
// Throws Error(kData) for anything but what to_json gives.
FileRecord record_from(const Json& json);

std::string manifest_text(const Manifest& manifest);

// Throws Error(kData) for anything but what manifest_text writes, NewerFormat for a later format.
Manifest parse_manifest(std::string_view text, const std::string& source_name);

// Reads a file back and returns its size and checksums.
FileRecord record_of(const ByteSource& file, const std::string& name);

// Throws Error(kData) naming the file and its first bad block.
void require_intact(const ByteSource& file, const FileRecord& record);
// Compares the size, and of the blocks those with this remainder: `of` readers share the work.
void require_share_intact(const ByteSource& file, const FileRecord& record, uint64_t remainder, uint64_t of);

}  // namespace vitrail
