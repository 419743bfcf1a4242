// Every file and folder of a run's folder by name, so that writers and readers agree. Knows names alone:
// neither what the files hold nor when they are written.
#pragma once

#include <string>
#include <string_view>

namespace vitrail {

class RunFiles {
 public:
  static constexpr const char* kConfig = "config.json";       // the settings, resolved
  static constexpr const char* kMetrics = "metrics.jsonl";    // one line a logged step, evaluation or event
  static constexpr const char* kSummary = "summary.csv";      // one row an epoch
  static constexpr const char* kReport = "report.html";       // written when the run ends
  static constexpr const char* kLock = "run.lock";            // names the process that holds the folder
  static constexpr const char* kCheckpoints = "checkpoints";  // step-N folders,
  static constexpr const char* kLatest = "latest";            // and beside them a link to the newest
  static constexpr const char* kLatestCheckpoint = "checkpoints/latest";
  static constexpr const char* kBest = "best";    // the model of the best evaluation
  static constexpr const char* kLast = "last";    // the last model, where no checkpoint would go
  static constexpr const char* kCrash = "crash";  // what each rank did last, when one of them ended the job
  static constexpr std::string_view kEvents = "events.out.tfevents.";  // how TensorBoard's files begin
  // The files that are written whole and replaced; a crash in between leaves the name of base/half_written.h.
  static constexpr const char* kReplaced[] = {kConfig, kMetrics, kSummary, kReport};

  explicit RunFiles(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  std::string config() const { return at(kConfig); }
  std::string metrics() const { return at(kMetrics); }
  std::string summary() const { return at(kSummary); }
  std::string report() const { return at(kReport); }
  std::string lock() const { return at(kLock); }
  std::string checkpoints() const { return at(kCheckpoints); }
  std::string latest_checkpoint() const { return at(kLatestCheckpoint); }
  std::string best() const { return at(kBest); }
  // Returns where an old folder is kept while its successor takes its place.
  std::string aside(const std::string& name) const { return at(".tmp-" + name + "-old"); }

 private:
  std::string folder_;
};

}  // namespace vitrail
