#include "io/sealed_folder.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>

#include "base/crc32c.h"
#include "io/checkpoint/durable.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;
constexpr const char* kCompanions[] = {"LICENSE", "README", "NOTICE", ".gitattributes"};

constexpr const char* kAcceptEdits =
    "take it from a good copy; an edit of your own is accepted by vitrail verify --manifest --update FOLDER";

// Recognises a manifest of ours even after a bit flip: the word occurs once per file and once more, so that
// one occurrence survives.
std::optional<std::string> our_manifest_text(const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored) || fs::file_size(path, ignored) > kMaxManifest) return std::nullopt;
  std::string text = read_file(path, kMaxManifest);
  return text.find("crc32c") == text.npos ? std::nullopt : std::optional(std::move(text));
}

// A file whose blocks are compared with the manifest's checksums as they are first read.
class SealedSource : public ByteSource {
 public:
  SealedSource(const std::string& path, FileRecord record) : file_(path), record_(std::move(record)) {
    name_ = path;
    size_ = file_.size();
    if (size_ != record_.bytes)
      throw Error(
          ErrorKind::kData,
          strf("%s has %llu bytes, its folder's %s says %llu: it is damaged, or was edited since it was "
               "written",
               path.c_str(), static_cast<unsigned long long>(size_), kManifestName,
               static_cast<unsigned long long>(record_.bytes)),
          kAcceptEdits);
    good_ = std::make_unique<std::atomic<bool>[]>(record_.blocks.size());
  }

 private:
  void read_checked(uint64_t offset, std::span<std::byte> target) const override {
    while (!target.empty()) {
      const uint64_t block = offset / kChecksumBlock, begin = block * kChecksumBlock;
      const uint64_t end = std::min(begin + kChecksumBlock, size_);
      const auto part = target.first(static_cast<size_t>(std::min<uint64_t>(target.size(), end - offset)));
      read_part(block, begin, end - begin, offset, part);
      offset += part.size();
      target = target.subspan(part.size());
    }
  }

  void read_part(uint64_t block, uint64_t begin, uint64_t bytes, uint64_t offset,
                 std::span<std::byte> part) const {
    const bool known = good_[block].load(std::memory_order_relaxed);
    if (known || part.size() == bytes) {
      file_.read_at(offset, part);
      if (!known) check(block, part);
      return;
    }
    const auto whole = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(bytes));
    const std::span<std::byte> all(whole.get(), static_cast<size_t>(bytes));
    file_.read_at(begin, all);
    check(block, all);
    std::memcpy(part.data(), all.data() + (offset - begin), part.size());
  }

  void check(uint64_t block, std::span<const std::byte> bytes) const {
    const uint64_t first = block * kChecksumBlock, last = first + bytes.size() - 1;
    if (crc32c(bytes) != record_.blocks[block])
      throw Error(ErrorKind::kData,
                  strf("%s does not match its folder's %s (bytes %llu to %llu): it is damaged, or was edited "
                       "since it was written",
                       name_.c_str(), kManifestName, static_cast<unsigned long long>(first),
                       static_cast<unsigned long long>(last)),
                  kAcceptEdits);
    good_[block].store(true, std::memory_order_relaxed);
  }

  RandomAccessFile file_;
  FileRecord record_;
  std::unique_ptr<std::atomic<bool>[]> good_;  // by block: compared already
};

const FileRecord* find_record(const Manifest& manifest, const std::string& name) {
  const auto at = std::find_if(manifest.files.begin(), manifest.files.end(),
                               [&](const FileRecord& record) { return record.name == name; });
  return at == manifest.files.end() ? nullptr : &*at;
}

}  // namespace

bool is_companion(const std::string& name) {
  return std::any_of(std::begin(kCompanions), std::end(kCompanions),
                     [&](const char* start) { return name.starts_with(start); });
}

bool is_sealed(const std::string& folder) {
  return our_manifest_text(folder).has_value();
}

std::optional<Manifest> folder_manifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  const std::optional<std::string> text = our_manifest_text(folder);
  if (!text) return std::nullopt;
  try {
    return parse_manifest(*text, path);
  } catch (const NewerFormat&) {
    throw;
  } catch (const Error& error) {
    throw Error(
        error.kind(), strf("%s: %s", path.c_str(), error.message().c_str()),
        "vitrail verify --manifest --update FOLDER writes it anew, for files that are known to be good");
  }
}

std::vector<FileRecord> seal_files(const std::string& folder, const std::vector<std::string>& names) {
  std::vector<FileRecord> records;
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    sync_file(path);
    records.push_back(record_of(RandomAccessFile(path), name));
  }
  return records;
}

void seal_folder(const std::string& folder, Json facts) {
  const std::string path = folder + "/" + kManifestName;
  Manifest manifest{.facts = std::move(facts)};
  try {
    std::optional<Manifest> before = folder_manifest(folder);
    std::error_code ignored;
    if (!before && fs::exists(path, ignored))
      throw Error(ErrorKind::kWrite, path + " was not written by Vitrail and is left alone",
                  "rename it or take it away; the checksums need that name");
    if (before) manifest = std::move(*before);
  } catch (const NewerFormat&) {
    throw;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData) throw;  // damaged, so nothing of it can be kept
  }
  std::vector<std::string> names = names_in(folder);
  std::erase_if(names, [&](const std::string& name) {
    std::error_code error;
    return !fs::is_regular_file(folder + "/" + name, error) || !is_plain_file_name(name) ||
           is_companion(name);
  });
  manifest.files = seal_files(folder, names);
  write_file(path, manifest_text(manifest));
}

std::shared_ptr<const ByteSource> open_sealed(const std::string& path) {
  if (const std::optional<Manifest> manifest = folder_manifest(parent_of(path)))
    if (const FileRecord* record = find_record(*manifest, fs::path(path).filename().string()))
      return std::make_shared<SealedSource>(path, *record);
  return std::make_shared<RandomAccessFile>(path);
}

std::string read_sealed(const std::string& path, size_t max_bytes) {
  const std::shared_ptr<const ByteSource> file = open_sealed(path);
  VT_REQUIRE(file->size() <= max_bytes, ErrorKind::kData, "%s is larger than the %zu bytes allowed here",
             path.c_str(), max_bytes);
  std::string text(static_cast<size_t>(file->size()), '\0');
  file->read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

Json weights_mark(const std::string& path) {
  const RandomAccessFile file(path);
  std::vector<std::byte> end(static_cast<size_t>(std::min(file.size(), kChecksumBlock)));
  file.read_at(file.size() - end.size(), end);
  return {{"bytes", file.size()}, {"end_crc32c", strf("%08x", crc32c(end))}};
}

void require_own_weights(const Json& sidecar, const std::string& sidecar_name, const std::string& path) {
  const auto mark = sidecar.find(kWeightsMark);
  if (mark == sidecar.end() || *mark == weights_mark(path)) return;
  throw Error(ErrorKind::kData,
              strf("%s was written for other weights than %s now holds", sidecar_name.c_str(), path.c_str()),
              "convert the model again; or, if the weights were exchanged on purpose, remove "
              "\"vitrail_weights\" from the JSON");
}

void require_present(const std::string& folder, const std::vector<std::string>& names) {
  const std::optional<Manifest> manifest = folder_manifest(folder);
  std::error_code ignored;
  for (const std::string& name : names)
    if (manifest && find_record(*manifest, name) && !fs::exists(fs::path(folder) / name, ignored))
      throw Error(ErrorKind::kData,
                  strf("%s lacks %s, which its %s lists", folder.c_str(), name.c_str(), kManifestName),
                  kAcceptEdits);
}

std::vector<SealedFile> check_sealed(const std::string& folder, const Manifest& manifest) {
  std::vector<SealedFile> files;
  for (const FileRecord& record : manifest.files) {
    SealedFile file{record.name, ""};
    try {
      require_intact(RandomAccessFile(folder + "/" + record.name), record);
    } catch (const Error& error) {
      file.problem = error.message();
    }
    files.push_back(std::move(file));
  }
  return files;
}

Manifest require_manifest(const std::string& folder) {
  if (std::optional<Manifest> manifest = folder_manifest(folder)) return std::move(*manifest);
  throw Error(ErrorKind::kData, strf("%s has no %s", folder.c_str(), kManifestName),
              "--update writes one, for files that are known to be good");
}

void require_model(const std::string& folder) {
  std::error_code ignored;
  for (const char* name : {kManifestName, "model.safetensors", "model.safetensors.index.json",
                           "pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (fs::exists(fs::path(folder) / name, ignored)) return;
  throw Error(ErrorKind::kUsage, folder + " holds no model", "name the folder that holds its weights");
}

std::string sealed_table(const Manifest& manifest, const std::vector<SealedFile>& files) {
  Table table({{"file"}, {"bytes", Align::kRight}, {""}});
  for (size_t i = 0; i < files.size(); ++i)
    table.row({files[i].name, format_integer(static_cast<int64_t>(manifest.files[i].bytes)),
               files[i].problem.empty() ? "as it was written" : files[i].problem});
  return table.text();
}

nlohmann::ordered_json sealed_json(const std::string& folder, const std::vector<SealedFile>& files) {
  nlohmann::ordered_json json = {{"folder", folder}, {"same", true}, {"files", Json::array()}};
  for (const auto& [name, problem] : files) {
    if (!problem.empty()) json["same"] = false;
    json["files"].push_back({{"name", name}, {"same", problem.empty()}, {"problem", problem}});
  }
  return json;
}

}  // namespace vitrail
