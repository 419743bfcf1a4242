#include "io/checkpoint/checkpoint_files.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "io/checkpoint/durable.h"
#include "io/checkpoint/shared_save.h"
#include "io/safetensors.h"
#include "io/sealed_folder.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;

// The state of a run of one rank.
constexpr const char* kStateFile = "state-00000-of-00001.safetensors";

std::string file_in(const std::string& folder, const std::string& name) {
  return folder + "/" + name;
}

bool lists(const std::vector<FileRecord>& records, const std::string& name) {
  return std::any_of(records.begin(), records.end(), [&](const FileRecord& r) { return r.name == name; });
}

// Seals what the folder holds besides the files that are sealed already.
std::vector<FileRecord> seal_all(const std::string& folder, std::vector<FileRecord> sealed = {}) {
  std::vector<std::string> names = names_in(folder);
  std::erase_if(names, [&](const std::string& name) { return lists(sealed, name); });
  for (const std::string& name : names) {
    std::error_code error;
    VT_CHECK(fs::is_regular_file(fs::symlink_status(file_in(folder, name), error)), "%s is not a plain file",
             file_in(folder, name).c_str());
  }
  std::vector<FileRecord> records = seal_files(folder, names);
  records.insert(records.end(), sealed.begin(), sealed.end());
  return records;
}

// The name of the unfinished folder differs between processes and between calls, the clock between hosts'
// restarts.
std::string new_save_id(const std::string& folder) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  return strf("%08x%016llx", crc32c(as_byte_span(folder)), static_cast<unsigned long long>(ns));
}

void write_pieces(const CheckpointContent& content, const std::string& folder, SharedSave& together,
                  Manifest& manifest) {
  manifest.pieces = together.ranks();
  manifest.save = new_save_id(folder);
  if (content.write_model) together.write_model(folder);
  const std::vector<FileRecord> pieces = together.write_pieces(folder, manifest.save);
  open_pieces(folder, manifest.save, manifest.pieces);
  manifest.files = seal_all(folder, pieces);
}

Manifest read_manifest(const std::string& folder, int64_t step) {
  const std::string path = file_in(folder, kManifestName);
  Manifest manifest = parse_manifest(read_file(path, kMaxManifest), path);
  VT_REQUIRE(manifest.step == step, ErrorKind::kData, "%s is of step %lld, its folder is named for step %lld",
             path.c_str(), static_cast<long long>(manifest.step), static_cast<long long>(step));
  const auto require_listed = [&](const std::string& name) {
    VT_REQUIRE(lists(manifest.files, name), ErrorKind::kData, "%s does not list %s", path.c_str(),
               name.c_str());
  };
  if (manifest.pieces == 0) require_listed(kStateFile);
  for (int64_t rank = 0; rank < manifest.pieces; ++rank) require_listed(piece_name(rank, manifest.pieces));
  return manifest;
}

}  // namespace

void write_checkpoint_files(const CheckpointContent& content, const std::string& folder,
                            SharedSave* together) {
  Manifest manifest{.step = content.step, .facts = content.facts, .files = {}};
  if (together) {
    write_pieces(content, folder, *together, manifest);
  } else {
    if (content.write_model) content.write_model(folder);
    write_safetensors(file_in(folder, kStateFile), content.state);
    manifest.files = seal_all(folder);
  }
  const std::string text = manifest_text(manifest);
  parse_manifest(text, kManifestName);
  // The manifest is written last; its own commit flushes the names of all files as well.
  write_file(file_in(folder, kManifestName), text);
}

Manifest verified_manifest(const std::string& folder, int64_t step, const Partners* partners) {
  Manifest manifest = read_manifest(folder, step);
  const auto of = static_cast<uint64_t>(partners ? partners->size() : 1);
  const auto rank = static_cast<uint64_t>(partners ? partners->rank() : 0);
  uint64_t before = 0;  // blocks of the files before
  for (const FileRecord& record : manifest.files) {
    require_share_intact(RandomAccessFile(file_in(folder, record.name)), record,
                         (rank + of - before % of) % of, of);
    before += record.blocks.size();
  }
  return manifest;
}

std::unique_ptr<TensorSource> open_state(const std::string& folder, const Manifest& manifest) {
  if (manifest.pieces > 0) return open_pieces(folder, manifest.save, manifest.pieces);
  return open_safetensors(file_in(folder, kStateFile));
}

}  // namespace vitrail
