// Plans for a GPU by the file that describes it, on machines that have none.
#pragma once
#include <string>
#include <vector>

#include "source_root.h"

namespace vitrail::cli {

inline const std::string kH200 = std::string(VT_SOURCE_DIR) + "/configs/devices/h200.json";

inline std::vector<std::string> base_on_h200(const std::vector<std::string>& more) {
  std::vector<std::string> words = {"--weights", "rule", "-m", "vit_base_patch16_224", "--target", kH200};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace vitrail::cli
