// The folder of a study: what is measured there, by whom and in which order, and one file for each case that
// has ended. A study that was killed goes on in it; another one is refused, and nothing is overwritten.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/run_lock.h"
#include "io/find_model.h"
#include "measure/study/cases.h"

namespace vitrail {

class StudyFolder {
 public:
  // Takes the folder, which must be missing, empty or this study's own. Throws Error(kWrite) where another
  // process works in it or it holds other files, and Error(kConfig), naming the first difference, where it
  // holds cases of another study, machine or version, or of another build of `program`, which runs the cases.
  StudyFolder(std::string path, const StudyConfig& config, std::filesystem::path program = this_program());

  const std::string& path() const { return path_; }
  const nlohmann::ordered_json& header() const { return header_; }
  int cores() const { return header_["machine"]["cores"].get<int>(); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  // Returns what is kept of a case, or nothing where it has not ended.
  std::optional<Json> record(const StudyCase& one) const;
  // Throws Error(kConfig), and keeps nothing, where the program is another one by now.
  void keep(const StudyCase& one, const nlohmann::ordered_json& record) const;
  // A folder for a training run that is not there yet.
  std::string new_run_folder(const StudyCase& one) const;

 private:
  std::string record_path(const StudyCase& one) const;

  std::string path_;
  std::filesystem::path program_;
  nlohmann::ordered_json header_;
  std::unique_ptr<RunLock> lock_;
};

}  // namespace vitrail
