#include "train/run_folder.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/run_files.h"
#include "base/text.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/durable.h"
#include "io/checkpoint/unfinished.h"
#include "io/sealed_folder.h"
#include "telemetry/metrics_file.h"
#include "telemetry/run_log.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;

bool is_half_written(const std::string& name) {
  return std::find(std::begin(RunFiles::kReplaced), std::end(RunFiles::kReplaced), half_written_file(name)) !=
         std::end(RunFiles::kReplaced);
}

// Returns whether a plain file begins with one of the texts (`more`: longer files count, too), perhaps
// truncated by a crash.
bool begins_as(const std::string& path, std::initializer_list<std::string_view> texts, bool more) {
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(path, error))) return false;
  const RandomAccessFile file(path);
  return std::any_of(texts.begin(), texts.end(), [&](std::string_view text) {
    std::string start(std::min<uint64_t>(file.size(), text.size()), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(start)));
    return text.starts_with(start) && (more || file.size() <= text.size());
  });
}

bool is_our_log(const std::string& path) {
  std::error_code error;
  return fs::file_size(path, error) > 0 && !error &&
         begins_as(path,
                   {R"({"kind":"train","step":)", R"({"kind":"eval","step":)", R"({"kind":"epoch","step":)",
                    R"({"kind":"event","step":)"},
                   true);
}

bool has_our_checkpoint(const CheckpointStore& store) {
  std::error_code error;
  if (!fs::is_directory(store.folder(), error)) return false;
  const std::vector<int64_t> steps = store.steps();
  return std::any_of(steps.begin(), steps.end(),
                     [&](int64_t step) { return is_sealed(store.folder_of(step)); });
}

// Returns whether the file is one that a run makes before its first checkpoint and its first line of the log.
// Its settings and TensorBoard's file are not counted, since they do not show who wrote them.
bool is_a_beginning(const std::string& folder, const std::string& name) {
  const std::string path = RunFiles(folder).at(name);
  if (is_unfinished(name) || is_half_written(name)) return true;
  if (name == RunFiles::kLock) return begins_as(path, {"{\n  \"process\": \""}, true);
  if (name == RunFiles::kMetrics) return begins_as(path, {""}, false);
  if (name == RunFiles::kSummary) return begins_as(path, {RunLog::kSummaryHeader}, false);
  if (name != RunFiles::kCheckpoints) return false;
  std::error_code error;
  if (!fs::is_directory(path, error)) return false;
  const std::vector<std::string> names = names_in(path);
  return std::all_of(names.begin(), names.end(), is_unfinished);
}

// The settings are written after the logs, so beside the beginnings of logs they are a run's own.
bool follows_logs(const std::string& folder, const std::string& name) {
  std::error_code error;
  const RunFiles files(folder);
  return (name == RunFiles::kConfig || name.starts_with(RunFiles::kEvents)) &&
         fs::exists(files.metrics(), error) && fs::exists(files.summary(), error) &&
         fs::exists(files.checkpoints(), error);
}

}  // namespace

std::string foreign_name_in(const std::string& folder) {
  if (is_our_log(RunFiles(folder).metrics()) || has_our_checkpoint(CheckpointStore(folder))) return {};
  for (const std::string& name : names_in(folder))
    if (!is_a_beginning(folder, name) && !follows_logs(folder, name)) return name;
  return {};
}

RunFolder::Made::Made(const std::string& folder) : path(folder) {
  constexpr const char* kRemedy = "name a folder that is empty or does not exist, with --out";
  std::error_code unknown;
  is_new = !fs::exists(folder, unknown);
  if (!is_new && !fs::is_directory(folder, unknown))
    throw Error(ErrorKind::kWrite, folder + " is a file, and a run needs a folder", kRemedy);
  const std::string foreign = is_new ? "" : foreign_name_in(folder);
  if (!foreign.empty())
    throw Error(ErrorKind::kWrite,
                strf("%s holds %s, which no run has made: a run would write over what is there",
                     folder.c_str(), quoted(foreign).c_str()),
                kRemedy);
  make_folders(folder);
}

RunFolder::Made::~Made() {
  std::error_code ignored;  // a folder that is not empty stays
  if (is_new) fs::remove(path, ignored);
}

RunFolder::RunFolder(const std::string& path) : made_(path), lock_(path) {}

std::vector<std::string> RunFolder::tidy() const {
  std::vector<std::string> removed = remove_unfinished(path(), is_ours_alone());
  if (!is_ours_alone()) return removed;
  std::error_code ignored;
  for (const std::string& name : names_in(path()))
    if (is_half_written(name) && fs::remove(RunFiles(path()).at(name), ignored)) removed.push_back(name);
  return removed;
}

void refuse_without_checkpoint(const RunFiles& files) {
  bool logged = false;
  for_each_metrics_line(files.metrics(),
                        [&](const Json& line) { logged |= metrics_number(line, "step") >= 1; });
  std::error_code unknown;  // what cannot be looked at may be there
  if (logged && (fs::exists(files.best(), unknown) || unknown))
    throw Error(ErrorKind::kData, files.folder() + " holds a run's log and best/ but no checkpoint",
                "without one it can only begin again: name another folder, or remove this one first");
}

}  // namespace vitrail
