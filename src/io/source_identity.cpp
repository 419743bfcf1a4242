#include "io/source_identity.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "io/adapters.h"
#include "io/sealed_folder.h"

namespace vitrail {

namespace {
namespace fs = std::filesystem;

constexpr uint64_t kHead = 256 << 10, kBlock = 4 << 10, kBlocks = 64;

std::vector<fs::path> files_of(const TensorSource& source) {
  const std::vector<std::string> names = source.files();
  std::vector<fs::path> files(names.begin(), names.end());
  const fs::path adapters = files[0].parent_path() / kAdaptersFile;
  std::error_code ignored;
  if (fs::exists(adapters, ignored) && std::find(files.begin(), files.end(), adapters) == files.end())
    files.push_back(adapters);
  return files;
}

uint32_t sampled_checksum(const ByteSource& file) {
  std::vector<std::byte> block(kHead);
  uint32_t checksum = 0;
  const auto add = [&](uint64_t offset, uint64_t bytes) {
    const auto part = std::span(block).first(static_cast<size_t>(std::min(bytes, file.size() - offset)));
    file.read_at(offset, part);
    checksum = crc32c(part, checksum);
  };
  add(0, kHead);
  for (uint64_t i = 1; i <= kBlocks && file.size() > kHead; ++i)
    add(std::max(kBlock, file.size() / kBlocks * i) - kBlock, kBlock);
  if (file.size() > kHead) add(file.size() - kBlock, kBlock);
  return checksum;
}

// Returns the manifest's checksum of a file, which reading the file compares it with.
std::optional<uint32_t> known_checksum(const fs::path& path, uint64_t bytes) {
  const fs::path folder = path.parent_path();
  const std::optional<Manifest> manifest = folder_manifest(folder.empty() ? "." : folder.string());
  if (!manifest) return std::nullopt;
  for (const FileRecord& record : manifest->files)
    if (record.name == path.filename().string() && record.bytes == bytes) return record.crc;
  return std::nullopt;
}

int64_t changed_ns(const std::string& path) {
  struct stat status {};
  VT_REQUIRE(::stat(path.c_str(), &status) == 0, ErrorKind::kData, "cannot look at %s", path.c_str());
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

std::string source_identity(const TensorSource& source) {
  std::string text;
  for (const fs::path& path : files_of(source)) {
    const RandomAccessFile file(path.string());
    text += strf("%s %llu bytes, changed %lld, %08x\n", path.filename().string().c_str(),
                 static_cast<unsigned long long>(file.size()),
                 static_cast<long long>(changed_ns(path.string())), sampled_checksum(file));
  }
  return text;
}

std::string content_identity(const TensorSource& source) {
  std::string text;
  for (const fs::path& path : files_of(source)) {
    const RandomAccessFile file(path.string());
    const std::optional<uint32_t> known = known_checksum(path, file.size());
    text += strf("%llu bytes, %08x\n", static_cast<unsigned long long>(file.size()),
                 known ? *known : record_of(file, path.filename().string()).crc);
  }
  return text;
}

}  // namespace vitrail
