// Explanations of image files and what they leave on disk: a folder for each image, an overlay for each map,
// a sheet of all of them, and what it says as JSON. Knows no options and prints nothing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/predictor.h"

namespace vitrail {

// Returns one folder for each image below `out`, or `out` itself for a single one. Where images share a name
// their folders are numbered, and a line of `notes` says so.
std::vector<std::string> output_folders(const std::vector<std::string>& paths, const std::string& out,
                                        std::vector<std::string>& notes);

struct ExplainedFile {
  nlohmann::ordered_json json;  // its line
  std::string text;             // the likeliest classes, and where the sheet lies
};

class FileExplainer {
 public:
  // `method` is the word that the request was made of; images are turned as EXIF says with `upright`.
  FileExplainer(const OpenedModel& model, const EngineOptions& options, const AttentionRequest& request,
                std::string method, bool upright);

  // Writes the overlays, the sheet and explain.json, in which every default is spelled out. `note` says what
  // is odd about the file and was left as it is.
  ExplainedFile explain(const std::string& path, const std::string& folder, std::string& note);
  const ExecutionPlan& plan() const { return predictor_.engine().plan(); }

 private:
  std::vector<std::string> write_maps(const Image& image, const std::vector<NamedMap>& maps,
                                      const std::string& folder) const;
  nlohmann::ordered_json settings() const;

  AttentionRequest request_;
  std::string method_;
  bool upright_;
  Predictor predictor_;
};

}  // namespace vitrail
