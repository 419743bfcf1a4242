#include "measure/study/study_folder.h"

#include <algorithm>
#include <filesystem>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/plugin_library.h"
#include "base/text.h"
#include "io/checkpoint/durable.h"
#include "io/checkpoint/unfinished.h"
#include "measure/host.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int kFormat = 1;
constexpr size_t kMostBytes = size_t{16} << 20;
constexpr const char* kHeader = "study-config.json";
// What is written whole and replaced, beside figures and the files of cases.
constexpr const char* kWritten[] = {kHeader, "study.json", "study.csv", "study.txt", "report.html"};

constexpr const char* kBuild = "vitrail_build";  // checksums: commits of one version differ

ordered_json header_of(const StudyConfig& config, const fs::path& program) {
  const MachineInfo machine = read_machine();
  ordered_json header = {{"format", kFormat},
                         {"vitrail", VITRAIL_VERSION},
                         {"machine", {{"processor", machine.processor}, {"cores", machine.usable}}},
                         {"config", to_json(config)}};
  for (const char* name : {"predicted", "cluster", "target"})
    header["config"].erase(name);  // what stands beside the measured, at any time
  if (!config.recipe.empty()) {
    const std::string text = read_file(config.recipe, kMostBytes);
    header["recipe_crc32c"] = crc32c(std::as_bytes(std::span(text)));
  }
  header[kBuild] = build_checksums(program);
  return header;
}

// Returns "config.batches is [...] there and [...] here" for the first difference.
std::string difference(const Json& there, const Json& here, const std::string& place = "") {
  if (there == here) return "";
  const auto named = [&](const std::string& key) { return place.empty() ? key : place + "." + key; };
  if (there.is_object() && here.is_object()) {
    for (const auto& [key, value] : here.items()) {
      const Json other = there.contains(key) ? there[key] : Json();
      if (std::string found = difference(other, value, named(key)); !found.empty()) return found;
    }
    for (const auto& [key, value] : there.items())
      if (!here.contains(key)) return difference(value, Json(), named(key));
  }
  const auto text = [](const Json& value) { return value.is_null() ? "nothing" : json_text(value); };
  return strf("%s is %s there and %s here", place.c_str(), text(there).c_str(), text(here).c_str());
}

// Files of a study that was killed before its first word are none in the way.
void refuse_other_files(const std::string& path) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name == "run.lock" || name.starts_with("." + std::string(kHeader))) continue;
    throw Error(ErrorKind::kWrite, strf("%s holds %s and no study", path.c_str(), quoted(name).c_str()),
                "--out names a folder that is missing, empty, or a study's own");
  }
}

Json read_record(const std::string& path, const char* remedy) {
  try {
    return parse_json(read_file(path, kMostBytes), path);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData) throw;
    Error better(ErrorKind::kData, error.message(), remedy);
    for (auto place = error.context().rbegin(); place != error.context().rend(); ++place) better.at(*place);
    throw Error(better);
  }
}

bool holds_case(const std::string& path) {
  const std::vector<std::string> names = names_in(path + "/cases");
  return std::any_of(names.begin(), names.end(), [](auto& name) { return half_written_file(name).empty(); });
}

// Removes what a study that was killed had begun to write; what others write there stays.
void remove_half_written(const std::string& folder) {
  const auto is_own = [](const fs::path& file) {
    return file.extension() == ".svg" ||
           std::find(std::begin(kWritten), std::end(kWritten), file) != std::end(kWritten);
  };
  std::error_code ignored;
  for (const std::string& name : names_in(folder))
    if (is_own(half_written_file(name))) fs::remove(folder + "/" + name, ignored);
  for (const std::string& name : names_in(folder + "/cases"))
    if (!half_written_file(name).empty()) fs::remove(folder + "/cases/" + name, ignored);
}

// A folder without a case holds nothing that options begun with would have to match.
void refuse_another_study(const std::string& path, const ordered_json& header) {
  const Json there = read_record(path + "/" + kHeader, "the folder is no study's any more: another --out");
  if (!holds_case(path)) return;
  const std::string found = difference(there, Json::parse(header.dump()));
  if (found.empty()) return;
  const bool built = found.starts_with(kBuild), program = found.starts_with("vitrail");
  throw Error(ErrorKind::kConfig,
              strf("%s holds %s: %s", path.c_str(),
                   built ? "a study by another build of Vitrail" : "another study", found.c_str()),
              program
                  ? "the program it was begun with goes on with it; another --out begins anew with this one"
                  : "the options it was begun with go on with it; another --out begins anew");
}

}  // namespace

StudyFolder::StudyFolder(std::string path, const StudyConfig& config, fs::path program)
    : path_(std::move(path)), program_(std::move(program)), header_(header_of(config, program_)) {
  std::error_code ignored;
  VT_REQUIRE(!fs::exists(path_, ignored) || fs::is_directory(path_, ignored), ErrorKind::kWrite,
             "%s is not a folder", path_.c_str());
  const bool begun = fs::exists(file(kHeader), ignored);
  if (begun) refuse_another_study(path_, header_);
  if (!begun) refuse_other_files(path_);
  make_folders(path_);
  lock_ = std::make_unique<RunLock>(path_);
  if (lock_->certain()) remove_half_written(path_);
  if (!holds_case(path_)) write_file(file(kHeader), json_text(header_, 2) + "\n");
  make_folders(file("cases"));
}

std::string StudyFolder::record_path(const StudyCase& one) const {
  return file("cases/" + one.name() + ".json");
}

std::optional<Json> StudyFolder::record(const StudyCase& one) const {
  const std::string path = record_path(one);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  return read_record(path, "remove the file, and the same command measures that case again");
}

void StudyFolder::keep(const StudyCase& one, const ordered_json& record) const {
  const std::string found =
      difference(Json::parse(header_[kBuild].dump()), build_checksums(program_), kBuild);
  if (!found.empty())
    throw Error(ErrorKind::kConfig, strf("the program was replaced while the study ran: %s", found.c_str()),
                "the cases before are kept; another --out begins anew with this one");
  write_file(record_path(one), json_text(record, 1) + "\n");
}

std::string StudyFolder::new_run_folder(const StudyCase& one) const {
  std::string folder = file("runs/" + one.name());
  std::error_code ignored;
  for (int attempt = 2; fs::exists(folder, ignored); ++attempt)
    folder = file("runs/" + one.name() + "-" + std::to_string(attempt));
  return folder;
}

}  // namespace vitrail
