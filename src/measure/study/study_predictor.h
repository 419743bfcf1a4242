// Predicts the updates of a study before any result of it is read: `plan --cluster` of each, by a network
// file and the device file of this machine, or points of a file. Prints nothing and starts nothing itself.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/find_model.h"
#include "measure/study/study_prediction.h"
#include "measure/study/study_run.h"

namespace vitrail {

// The folders in which files are known by their names.
struct PredictionPlaces {
  std::vector<std::filesystem::path> networks = shipped_places("networks", "configs/networks"),
                                     devices = shipped_places("devices", "configs/devices");
};

class StudyPredictor {
 public:
  // Reads the files that the study names; throws what plan --cluster throws of them, and Error(kData) for a
  // device file that does not describe this machine. Keeps a reference to the config.
  StudyPredictor(const StudyConfig& config, const PredictionPlaces& places = {});

  // Plans every update that can be, on `cores` of this host. A plan that is refused leaves its update without
  // a prediction; on a network that the study names it is an Error(kConfig).
  StudyPrediction predict(const StudyPlaces& places, const StudyHooks& hooks, int cores) const;

 private:
  // Of a device: the files, or why there are none.
  struct Basis {
    std::string missing, network, target;
  };
  Basis basis_of(const std::string& device, const PredictionPlaces& places);
  std::string obstacle(const StudyCase& one, int cores) const;

  const StudyConfig& config_;
  std::map<std::string, Basis> bases_;
  StudyPrediction known_;  // by whom, and what a file tells
};

}  // namespace vitrail
