// The state that a run needs to continue exactly where it was: the persistent values of its step and a few
// numbers; converted to a checkpoint and back.
#pragma once

#include "io/checkpoint/checkpoint.h"
#include "io/model_files.h"
#include "models/lora.h"
#include "train/train_step.h"

namespace vitrail {

struct Progress {
  int64_t step = 0;  // updates attempted
  double best = -1;  // the evaluation result of what is in best/
  int64_t best_step = 0;
  double best_seen = -1;  // the best of all results; above `best` where best/ could not be written
  // A better result that best/ could not be written for, and its step; -1: none.
  double owed = -1;
  int64_t owed_step = -1;
  int64_t evals_since_best = 0;
  int64_t skipped_in_a_row = 0;  // updates since the last one that was made
  double lr_factor = 1;          // halved by every rollback
  int64_t rollbacks = 0;
  bool eval_due = false;  // the step's evaluation was interrupted and comes first

  int64_t last_made() const { return step - skipped_in_a_row; }

  template <typename Self, typename V>
  static void fields(Self& c, V&& v) {
    v("step", c.step, "");
    v("best", c.best, "");
    v("best_step", c.best_step, "");
    v("best_seen", c.best_seen, "");
    v("owed", c.owed, "");
    v("owed_step", c.owed_step, "");
    v("evals_since_best", c.evals_since_best, "");
    v("skipped_in_a_row", c.skipped_in_a_row, "");
    v("lr_factor", c.lr_factor, "");
    v("rollbacks", c.rollbacks, "");
    v("eval_due", c.eval_due, "");
  }
};

Json to_json(const Progress& progress);
Progress progress_from(const Json& facts);

// Returns all persistent values, whole, except gradient sums, which are zero between steps, and low-precision
// copies.
std::vector<TensorToWrite> state_tensors(WholeValues& values);

// Returns the parts of the same values that this rank writes where there are several: all ranks together
// write every element once. All of them call it at the same time.
std::vector<PartToWrite> state_parts(WholeValues& values, int rank);

// Fills the store from a checkpoint, reading no more than this rank's parts; throws Error(kData) naming the
// first value that is missing or has another shape.
void restore_state(const TensorSource& source, const PersistentStore& store);

// Returns the config of a stored model folder: fixed positions are stored as a learned table.
VitConfig stored_config(const VitConfig& config);

// Writes a model folder; adapters kept apart go into its adapters.safetensors.
void write_model_folder(const std::string& folder, const ModelCard& card, WholeValues& values,
                        const LoraConfig& lora, bool average, bool adapters_apart);

}  // namespace vitrail
