// The confusion matrix: counts of (true class, predicted class), and the metrics derived from them. Knows
// classes by number only; memory grows with the confusions seen, not with the square of the classes.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace vitrail {

// Returns the part as a share of the whole; 0 of an empty one.
double share_of(int64_t part, int64_t whole);

// Returns whether the scores of an image are an answer: where a NaN is among them, none of them is.
bool has_answer(std::span<const float> scores);
// Counts the classes that score higher than `label`; an equal score of an earlier class is higher. Without an
// answer the rank is the number of classes.
int64_t rank_of(std::span<const float> scores, int64_t label);
// Returns the class that scores highest, the first of equals; kNoClass without an answer.
inline constexpr int64_t kNoClass = -1;
int64_t highest_class(std::span<const float> scores);

struct TopCounts {
  int64_t count = 0, top1 = 0, top5 = 0;

  void add(int64_t rank);
  double top1_share() const;  // 0 when there are no images
  double top5_share() const;
};

// The counts of one class; shares whose denominator is 0 are 0.
struct ClassCounts {
  int64_t count = 0;      // images of the class
  int64_t predicted = 0;  // images predicted as the class
  int64_t correct = 0;    // both
  int64_t top5 = 0;       // images of it with the class among the first five

  double precision() const;
  double recall() const;  // the class's own top-1
  double f1() const;
  double top5_share() const;
};

struct ConfusedPair {
  int64_t label, predicted, count;
  double share;  // of the label's images
};

class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(int64_t classes);

  // `predicted` may be kNoClass: the image is wrong, but no other class is predicted.
  void add(int64_t label, int64_t predicted, bool in_top5);
  // Adds the scores of one image: the prediction is the highest, the first of equals; none with a NaN.
  void add(int64_t label, std::span<const float> scores);
  void add(const ConfusionMatrix& other);

  int64_t classes() const { return static_cast<int64_t>(rows_.size()); }
  const TopCounts& top() const { return top_; }
  int64_t at(int64_t label, int64_t predicted) const;
  const ClassCounts& of(int64_t label) const { return rows_[static_cast<size_t>(label)]; }
  // Returns the pairs off the diagonal, most frequent first, then by number.
  std::vector<ConfusedPair> most_confused(size_t most) const;

 private:
  uint64_t key(int64_t label, int64_t predicted) const;

  TopCounts top_;
  std::vector<ClassCounts> rows_;
  std::unordered_map<uint64_t, int64_t> confused_;  // off the diagonal
};

}  // namespace vitrail
