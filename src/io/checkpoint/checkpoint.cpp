#include "io/checkpoint/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/file.h"
#include "base/process_mark.h"
#include "io/checkpoint/durable.h"
#include "io/checkpoint/manifest.h"
#include "io/safetensors.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;

// Number and count of the shards of the state: one now, one a rank when ranks write their own.
constexpr const char* kStateFile = "state-00000-of-00001.safetensors";
constexpr std::string_view kUnfinished = ".tmp-";
constexpr size_t kMaxManifest = size_t{64} << 20;

std::string step_name(int64_t step) {
  return strf("step-%08lld", static_cast<long long>(step));
}

std::optional<int64_t> step_of(const std::string& name) {
  int64_t step = 0;
  if (!name.starts_with("step-")) return std::nullopt;
  std::from_chars(name.data() + 5, name.data() + name.size(), step);
  return step >= 0 && step_name(step) == name ? std::optional(step) : std::nullopt;
}

// Names in the folder; none when it does not exist.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  if (error == std::errc::no_such_file_or_directory) return names;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  VT_REQUIRE(!error, ErrorKind::kData, "cannot list %s: %s", folder.c_str(), error.message().c_str());
  std::sort(names.begin(), names.end());
  return names;
}

std::string at(const std::string& folder, const std::string& name) {
  return folder + "/" + name;
}

// Unfinished work, gone when the scope ends; a folder that was given its name is no longer there.
class Unfinished {
 public:
  explicit Unfinished(std::string path) : path_(std::move(path)) { remove(); }
  ~Unfinished() { remove(); }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  const std::string& path() const { return path_; }

 private:
  void remove() const {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string path_;
};

// Every file of the folder, flushed and read back. Whoever wrote them need not be trusted to have flushed.
std::vector<FileRecord> seal_files(const std::string& folder) {
  std::vector<FileRecord> records;
  for (const std::string& name : names_in(folder)) {
    const std::string path = at(folder, name);
    std::error_code error;
    VT_CHECK(fs::is_regular_file(fs::symlink_status(path, error)), "%s is not a plain file", path.c_str());
    sync_file(path);
    records.push_back(record_of(RandomAccessFile(path), name));
  }
  return records;
}

void write_files(const CheckpointContent& content, const std::string& folder) {
  if (content.write_model) content.write_model(folder);
  write_safetensors(at(folder, kStateFile), content.state);
  const std::string text = manifest_text({content.step, content.facts, seal_files(folder)});
  parse_manifest(text, kManifestName);
  // Comes last; its own commit flushes the names of all files as well.
  write_file(at(folder, kManifestName), text);
}

Manifest read_manifest(const std::string& folder, int64_t step) {
  const std::string path = at(folder, kManifestName);
  Manifest manifest = parse_manifest(read_file(path, kMaxManifest), path);
  VT_REQUIRE(manifest.step == step, ErrorKind::kData, "%s is of step %lld, its folder is named for step %lld",
             path.c_str(), static_cast<long long>(manifest.step), static_cast<long long>(step));
  const auto is_state = [](const FileRecord& record) { return record.name == kStateFile; };
  VT_REQUIRE(std::any_of(manifest.files.begin(), manifest.files.end(), is_state), ErrorKind::kData,
             "%s does not list %s", path.c_str(), kStateFile);
  return manifest;
}

Manifest verify(const std::string& folder, int64_t step) {
  Manifest manifest = read_manifest(folder, step);
  for (const FileRecord& record : manifest.files)
    require_intact(RandomAccessFile(at(folder, record.name)), record);
  return manifest;
}

}  // namespace

void validate(const CheckpointPolicy& policy) {
  VT_REQUIRE(policy.keep_last >= 2, ErrorKind::kConfig,
             "checkpoint.keep_last is %lld, expected at least 2: one may turn out damaged",
             static_cast<long long>(policy.keep_last));
  VT_REQUIRE(policy.keep_every >= 0, ErrorKind::kConfig, "checkpoint.keep_every is %lld, expected 0 or more",
             static_cast<long long>(policy.keep_every));
}

CheckpointStore::CheckpointStore(std::string run_folder, CheckpointPolicy policy)
    : folder_(std::move(run_folder) + "/checkpoints"), policy_(policy) {
  validate(policy_);
}

std::string CheckpointStore::folder_of(int64_t step) const {
  return at(folder_, step_name(step));
}

// Carries the mark of this process, so that another can tell when nobody will finish it.
std::string CheckpointStore::unfinished(const std::string& name) const {
  return at(folder_, std::string(kUnfinished) + name + "-" + ProcessMark::current().text());
}

std::vector<std::string> CheckpointStore::prepare() {
  make_folders(folder_);
  std::vector<std::string> removed;
  for (const std::string& name : names_in(folder_)) {
    if (!name.starts_with(kUnfinished)) continue;
    // ".tmp-step-N-MARK": the mark follows the name's last word, and a host may hold no '-'.
    size_t cut = name.size();
    for (int words = 0; words < 3 && cut != name.npos && cut > 0; ++words) cut = name.rfind('-', cut - 1);
    const auto mark = cut == name.npos ? std::nullopt : ProcessMark::parse(name.substr(cut + 1));
    if (!mark || !mark->surely_dead()) continue;
    std::error_code error;
    fs::remove_all(at(folder_, name), error);
    if (!error) removed.push_back(name);
  }
  const Unfinished probe(unfinished("probe"));
  make_new_folder(probe.path());
  write_file(at(probe.path(), "probe"), "x");
  return removed;
}

void CheckpointStore::write_folder(const CheckpointContent& content) {
  const std::string name = step_name(content.step);
  const Unfinished folder(unfinished(name)), aside(unfinished("old-" + name));
  make_new_folder(folder.path());
  write_files(content, folder.path());
  judged_.erase(content.step);
  replace_folder(folder.path(), folder_of(content.step), aside.path());
  judged_[content.step] = true;
}

void CheckpointStore::save(const CheckpointContent& content) {
  VT_CHECK(content.step >= 0 && content.facts.is_object());
  uint64_t bytes = content.model_bytes;
  for (const TensorToWrite& tensor : content.state) bytes += tensor.info.bytes;
  try {
    make_folders(folder_);
    require_space(folder_, bytes + bytes / 5);
    write_folder(content);
    replace_link(at(folder_, "latest"), step_name(content.step), unfinished("latest"));
    prune(content.step);
  } catch (const Error& error) {
    // What cannot be read back was not written.
    if (error.kind() != ErrorKind::kData) throw;
    throw Error(ErrorKind::kWrite, error.what());
  }
}

std::vector<int64_t> CheckpointStore::steps() const {
  std::vector<int64_t> steps;
  for (const std::string& name : names_in(folder_))
    if (const auto step = step_of(name)) steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

OpenedCheckpoint CheckpointStore::open(int64_t step) {
  const std::string folder = folder_of(step);
  judged_[step] = false;
  Manifest manifest = verify(folder, step);
  auto state = open_safetensors(at(folder, kStateFile));
  judged_[step] = true;
  return {step, folder, std::move(manifest.facts), std::move(state)};
}

std::optional<OpenedCheckpoint> CheckpointStore::newest_good(std::vector<std::string>* complaints) {
  std::vector<int64_t> known = steps();
  for (; !known.empty(); known.pop_back()) {
    try {
      return open(known.back());
    } catch (const NewerFormat&) {
      throw;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData) throw;
      if (complaints) complaints->push_back(error.what());
    }
  }
  return std::nullopt;
}

bool CheckpointStore::is_good(int64_t step) {
  const auto known = judged_.find(step);
  if (known != judged_.end()) return known->second;
  try {
    open(step);
  } catch (const NewerFormat&) {
    return true;
  } catch (const Error&) {
  }
  return judged_[step];
}

void CheckpointStore::prune(int64_t newest) {
  int64_t good = 0;
  std::vector<int64_t> known = steps();
  for (; !known.empty(); known.pop_back()) {
    const int64_t step = known.back();
    if (good < policy_.keep_last) {
      good += is_good(step);
    } else if (step != newest && (policy_.keep_every == 0 || step % policy_.keep_every != 0)) {
      remove_folder(folder_of(step), unfinished(step_name(step)));
      judged_.erase(step);
    }
  }
}

}  // namespace vitrail
