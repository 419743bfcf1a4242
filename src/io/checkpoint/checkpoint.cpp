#include "io/checkpoint/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/file.h"
#include "base/run_files.h"
#include "base/write_error.h"
#include "io/checkpoint/durable.h"
#include "io/checkpoint/manifest.h"
#include "io/checkpoint/unfinished.h"
#include "io/safetensors.h"
#include "io/sealed_folder.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;

// The state's file, with number and count of its shards: one now, one per rank when ranks write their own.
constexpr const char* kStateFile = "state-00000-of-00001.safetensors";
// The prefix of a checkpoint that is being replaced by another of the same step.
constexpr std::string_view kAside = ".tmp-old-";

std::string step_name(int64_t step) {
  return strf("step-%08lld", static_cast<long long>(step));
}

std::optional<int64_t> step_of(const std::string& name) {
  int64_t step = 0;
  if (!name.starts_with("step-")) return std::nullopt;
  std::from_chars(name.data() + 5, name.data() + name.size(), step);
  return step >= 0 && step_name(step) == name ? std::optional(step) : std::nullopt;
}

std::string at(const std::string& folder, const std::string& name) {
  return folder + "/" + name;
}

// A new folder for unfinished work, deleted when the scope ends unless it was renamed to its final name.
class Unfinished {
 public:
  explicit Unfinished(std::string path) : path_(std::move(path)) { make_new_folder(path_); }
  ~Unfinished() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<FileRecord> seal_all(const std::string& folder) {
  const std::vector<std::string> names = names_in(folder);
  for (const std::string& name : names) {
    std::error_code error;
    VT_CHECK(fs::is_regular_file(fs::symlink_status(at(folder, name), error)), "%s is not a plain file",
             at(folder, name).c_str());
  }
  return seal_files(folder, names);
}

void write_files(const CheckpointContent& content, const std::string& folder) {
  if (content.write_model) content.write_model(folder);
  write_safetensors(at(folder, kStateFile), content.state);
  const std::string text = manifest_text({content.step, content.facts, seal_all(folder)});
  parse_manifest(text, kManifestName);
  // The manifest is written last; its own commit flushes the names of all files as well.
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
  VT_REQUIRE(policy.keep_last >= kLeastGood, ErrorKind::kConfig,
             "checkpoint.keep_last is %lld, expected at least 2: one may turn out damaged",
             static_cast<long long>(policy.keep_last));
  VT_REQUIRE(policy.keep_every >= 0, ErrorKind::kConfig, "checkpoint.keep_every is %lld, expected 0 or more",
             static_cast<long long>(policy.keep_every));
}

CheckpointStore::CheckpointStore(std::string run_folder, CheckpointPolicy policy)
    : folder_(RunFiles(std::move(run_folder)).checkpoints()), policy_(policy) {
  validate(policy_);
}

std::string CheckpointStore::folder_of(int64_t step) const {
  return at(folder_, step_name(step));
}

std::string CheckpointStore::unfinished(const std::string& name) const {
  return at(folder_, unfinished_name(name));
}

std::vector<std::string> CheckpointStore::prepare(bool sole) {
  make_folders(folder_);
  for (const std::string& name : names_in(folder_))
    if (name.starts_with(kAside) && step_of(name.substr(kAside.size())))
      finish_replacing(at(folder_, name.substr(kAside.size())), at(folder_, name));
  std::vector<std::string> removed = remove_unfinished(folder_, sole);
  const Unfinished probe(unfinished("probe"));
  write_file(at(probe.path(), "probe"), "x");
  return removed;
}

void CheckpointStore::write_folder(const CheckpointContent& content) {
  const Unfinished folder(unfinished(step_name(content.step)));
  write_files(content, folder.path());
  judged_.erase(content.step);
  const std::string aside = at(folder_, std::string(kAside) + step_name(content.step));
  replace_folder(folder.path(), folder_of(content.step), aside);
  judged_[content.step] = true;
}

// A quota does not show in the free bytes, only when a write fails.
void CheckpointStore::write_making_room(const CheckpointContent& content, int64_t least_good) {
  for (const int64_t oldest : removable(least_good)) {
    try {
      return write_folder(content);
    } catch (const NoRoom&) {
    }
    remove_for_room(oldest);
  }
  write_folder(content);
}

void CheckpointStore::save(const CheckpointContent& content, int64_t least_good) {
  VT_CHECK(content.step >= 0 && content.facts.is_object());
  uint64_t bytes = content.model_bytes;
  for (const TensorToWrite& tensor : content.state) bytes += tensor.info.bytes;
  try {
    make_folders(folder_);
    make_room(bytes + bytes / 5, least_good);
    write_making_room(content, least_good);
    replace_link(at(folder_, RunFiles::kLatest), step_name(content.step), unfinished(RunFiles::kLatest));
    for (const int64_t step : removable(policy_.keep_last))
      if (step != content.step) remove(step);
  } catch (const Error& error) {
    // A checkpoint that cannot be read back counts as not written.
    if (error.kind() != ErrorKind::kData) throw;
    throw Error(ErrorKind::kWrite, error.what());
  }
}

void CheckpointStore::make_room(uint64_t bytes, int64_t least_good) {
  if (!has_space(folder_, bytes))
    for (const int64_t step : removable(least_good)) {
      remove_for_room(step);
      if (has_space(folder_, bytes)) return;
    }
  require_space(folder_, bytes);
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

// Returns the checkpoints that may be deleted while `good_ones` good ones stay, ascending.
std::vector<int64_t> CheckpointStore::removable(int64_t good_ones) {
  const auto is_milestone = [&](int64_t step) {
    return policy_.keep_every > 0 && step > 0 && step % policy_.keep_every == 0;
  };
  int64_t good = 0;
  std::vector<int64_t> known = steps(), older;
  for (; !known.empty(); known.pop_back()) {
    const int64_t step = known.back();
    if (good < good_ones)
      good += is_good(step);
    else if (!is_milestone(step))
      older.insert(older.begin(), step);
  }
  return older;
}

void CheckpointStore::remove(int64_t step) {
  remove_folder(folder_of(step));
  judged_.erase(step);
}

void CheckpointStore::remove_for_room(int64_t step) {
  remove(step);
  if (made_room_) made_room_(step);
}

}  // namespace vitrail
