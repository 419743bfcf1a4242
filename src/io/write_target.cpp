#include "io/write_target.h"

#include <algorithm>

#include "base/error.h"
#include "base/half_written.h"
#include "base/text.h"
#include "io/adapters.h"
#include "io/checkpoint/durable.h"
#include "io/checkpoint/unfinished.h"
#include "io/sealed_folder.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;

bool is_of_a_model(const std::string& name) {
  const auto is = [&](const char* file) { return name == file; };
  return is(kAdaptersFile) || is(kManifestName) || is_companion(name) ||
         std::any_of(std::begin(kFolderFiles), std::end(kFolderFiles), is);
}

// Only a model of ours may be replaced: other files would be lost with it.
void refuse_foreign(const std::string& folder) {
  if (const std::string name = foreign_to_model(folder); !name.empty())
    throw Error(ErrorKind::kWrite,
                strf("%s already exists and holds %s, which is no part of a model that could be replaced",
                     folder.c_str(), quoted(name).c_str()),
                "another path, or take that file away; --force does not delete it");
}

// Returns the folder itself where `path` is a link to it, without a trailing slash.
fs::path real_path(const std::string& path) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  if (!error) return real;
  const fs::path absolute = fs::absolute(path, error).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

std::string aside_of(const fs::path& folder) {
  return (folder.parent_path() / ("." + folder.filename().string() + ".replaced")).string();
}

}  // namespace

std::string foreign_to_model(const std::string& folder) {
  const std::vector<std::string> names = names_in(folder);
  const auto foreign = std::find_if_not(names.begin(), names.end(), is_of_a_model);
  return foreign == names.end() ? "" : *foreign;
}

void copy_companions(const std::string& from, const std::string& to) {
  for (const std::string& name : names_in(from)) {
    std::error_code error;
    if (is_companion(name))
      fs::copy(fs::path(from) / name, fs::path(to) / name,
               fs::copy_options::recursive | fs::copy_options::copy_symlinks, error);
    VT_REQUIRE(!error, ErrorKind::kWrite, "cannot copy %s/%s: %s", from.c_str(), name.c_str(),
               error.message().c_str());
  }
}

void check_target(const std::string& path, bool overwrite, bool folder) {
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  if (!fs::exists(path, error) || (folder && is_folder && fs::is_empty(path, error))) return;
  if (folder && is_folder) refuse_foreign(path);
  const auto kind = [](bool is) { return is ? "folder" : "file"; };
  if (folder != is_folder)
    throw Error(
        ErrorKind::kWrite,
        strf("%s is a %s, and a %s is to be written there", path.c_str(), kind(is_folder), kind(folder)),
        "name another path, or take away what is there; --force does not delete it");
  if (!overwrite) throw Error(ErrorKind::kWrite, path + " already exists", "--force replaces it");
}

MadePaths::~MadePaths() {
  std::error_code ignored;
  for (; !done_ && !paths_.empty(); paths_.pop_back()) fs::remove(paths_.back(), ignored);
}

void MadePaths::will_make(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) paths_.push_back(path);
}

void MadePaths::make_folders(const fs::path& path) {
  fs::path below;
  for (const fs::path& step : path) will_make(below /= step);
  vitrail::make_folders(path.string());
}

FolderReplacement::FolderReplacement(const std::string& path)
    : path_(real_path(path).string()),
      fresh_(parent_of(path_) + "/" + unfinished_name(fs::path(path_).filename().string())) {
  remove_unfinished(parent_of(path_), false);
  make_new_folder(fresh_);
}

FolderReplacement::~FolderReplacement() {
  std::error_code ignored;
  fs::remove_all(fresh_, ignored);
}

void FolderReplacement::commit() {
  std::error_code error;
  copy_companions(path_, fresh_);
  fs::permissions(fresh_, fs::status(path_, error).permissions(), error);
  sync_folder(fresh_);
  replace_folder(fresh_, path_, aside_of(path_));
}

void finish_folder_replacement(const std::string& path) {
  const fs::path folder = real_path(path);
  finish_replacing(folder.string(), aside_of(folder));
  for (const char* name : kFolderFiles) remove_abandoned((folder / name).string());
  remove_abandoned((folder / kManifestName).string());
}

}  // namespace vitrail
