// The place a model is written to: whether it may be written, that a failed attempt leaves nothing, and that
// a replaced folder is the old one or the new one at any moment. Knows no format.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vitrail {

// The files of a model folder of ours, beside adapters and its manifest, in the order of writing.
constexpr const char* kFolderFiles[] = {"model.safetensors", "preprocessor_config.json", "config.json"};

// Throws Error(kWrite) when something exists there that must not be replaced: anything unless `overwrite`,
// and always what is no model of ours.
void check_target(const std::string& path, bool overwrite, bool folder);

// Returns a name in the folder that is no part of a model of ours; empty when there is none.
std::string foreign_to_model(const std::string& folder);

// Copies licence and readme of a model, which stay when another replaces it.
void copy_companions(const std::string& from, const std::string& to);

// Removes what a failed attempt has made, the deepest first; what existed before stays.
class MadePaths {
 public:
  MadePaths() = default;
  ~MadePaths();
  MadePaths(const MadePaths&) = delete;
  MadePaths& operator=(const MadePaths&) = delete;

  void will_make(const std::filesystem::path& path);
  void make_folders(const std::filesystem::path& path);
  void keep() { done_ = true; }

 private:
  std::vector<std::filesystem::path> paths_;
  bool done_ = false;
};

// A folder that replaces another: filled beside it, then swapped in atomically, with the old one's licence
// and readme. Without commit() nothing of it remains.
class FolderReplacement {
 public:
  explicit FolderReplacement(const std::string& path);
  ~FolderReplacement();
  FolderReplacement(const FolderReplacement&) = delete;
  FolderReplacement& operator=(const FolderReplacement&) = delete;

  const std::string& fresh() const { return fresh_; }
  void commit();

 private:
  std::string path_, fresh_;
};
// Puts back what a FolderReplacement had moved aside when its process died, if the folder is missing. Removes
// the files of a model that a process which died had begun in the folder.
void finish_folder_replacement(const std::string& path);

}  // namespace vitrail
