// The rows of a batch whose images several ranks share out: each gives its own, and gets those of all in the
// order of the list. Knows no model.
#pragma once

#include <string>
#include <vector>

#include "api/predictor.h"
#include "train/team.h"

namespace vitrail {

// What one rank, or all of them, have to show of a batch.
struct BatchRows {
  std::vector<ImageRow> rows;
  std::vector<std::string> notes;
};

class RowExchange {
 public:
  // `ranks` may be null: this rank is alone.
  explicit RowExchange(MeshCommunicators* ranks) : ranks_(ranks) {}

  // All ranks call it for every batch. The spans stay valid until the next call.
  BatchRows all(BatchRows mine);

 private:
  MeshCommunicators* ranks_;
  std::vector<float> values_;
};

}  // namespace vitrail
