// Evaluation of images with several labels or none: average precision of each class, F1 at a threshold. Keeps
// every score until the metrics are computed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vitrail {

// Computes the area under the precision-recall curve by its steps: sum of (recall gained x precision there),
// equal scores taken together; 0 when nothing is positive. NaN scores come last.
double average_precision(std::span<const float> scores, std::span<const uint8_t> positive);

struct LabelScores {
  int64_t positives = 0;
  double average_precision = 0;
  double precision = 0, recall = 0, f1 = 0;  // at the threshold
};

struct MultiLabelResult {
  std::vector<LabelScores> classes;
  double mean_ap = 0;   // over classes that occur
  double macro_f1 = 0;  // over the same
  double micro_f1 = 0;  // over all decisions together
  int64_t count = 0;    // images
};

class MultiLabelScores {
 public:
  // `threshold`: a score (probability) above it predicts the label.
  explicit MultiLabelScores(int64_t classes, float threshold = 0.5f);

  void add(std::span<const float> scores, std::span<const int32_t> labels);
  MultiLabelResult result() const;

 private:
  size_t classes_;
  float threshold_;
  std::vector<float> scores_;      // image by image
  std::vector<uint8_t> positive_;  // the same shape
};

}  // namespace vitrail
