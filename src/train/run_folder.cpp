#include "train/run_folder.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/durable.h"
#include "io/checkpoint/unfinished.h"
#include "telemetry/run_log.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;

// What a run replaces whole; a death in between leaves ".NAME.tmp-...".
constexpr const char* kReplacedFiles[] = {"config.json", "metrics.jsonl", "summary.csv", "report.html"};

bool is_half_written(const std::string& name) {
  return std::any_of(std::begin(kReplacedFiles), std::end(kReplacedFiles),
                     [&](const char* file) { return name.starts_with("." + std::string(file) + ".tmp-"); });
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Begun as a line of ours is; a crash may have cut it anywhere.
bool is_our_log(const std::string& path) {
  constexpr std::string_view kStart = "{\"kind\":";
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  const RandomAccessFile file(path);
  std::string start(std::min<uint64_t>(file.size(), kStart.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(start)));
  return !start.empty() && kStart.starts_with(start);
}

bool are_our_checkpoints(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return false;
  const std::vector<std::string> names = names_in(path);
  return std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return name == "latest" || name.starts_with("step-") || name.starts_with(kUnfinishedPrefix);
  });
}

}  // namespace

std::string foreign_name_in(const std::string& folder) {
  if (is_our_log(RunLog::metrics_path(folder)) || are_our_checkpoints(CheckpointStore(folder).folder()))
    return {};
  for (const std::string& name : names_in(folder))
    if (name != RunLock::kFileName && !name.starts_with(kUnfinishedPrefix) && !is_half_written(name))
      return name;
  return {};
}

RunFolder::Made::Made(const std::string& folder) : path(folder) {
  std::error_code unknown;
  is_new = !fs::exists(folder, unknown);
  const std::string foreign = is_new ? "" : foreign_name_in(folder);
  if (!foreign.empty())
    throw Error(ErrorKind::kWrite,
                strf("%s holds %s, which no run has made: a run would write over what is there",
                     folder.c_str(), quoted(foreign).c_str()),
                "name a folder that is empty or does not exist, with --out");
  make_folders(folder);
}

RunFolder::Made::~Made() {
  std::error_code ignored;  // a folder that holds something stays
  if (is_new) fs::remove(path, ignored);
}

RunFolder::RunFolder(const std::string& path) : made_(path), lock_(path) {}

std::vector<std::string> RunFolder::tidy() const {
  std::vector<std::string> removed = remove_unfinished(path(), is_ours_alone());
  if (!is_ours_alone()) return removed;
  std::error_code ignored;
  for (const std::string& name : names_in(path()))
    if (is_half_written(name) && fs::remove(path() + "/" + name, ignored)) removed.push_back(name);
  return removed;
}

}  // namespace vitrail
