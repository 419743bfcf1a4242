// The one way to predict: a model card, labels, and engines of several batch sizes and outputs over one set
// of parameters. Pixels go in, rows of numbers come out, whatever the batch. Calls from several threads take
// turns. Knows no command line and prints nothing.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/engine.h"
#include "api/explain.h"
#include "api/image_stream.h"
#include "base/error.h"
#include "image/image.h"

namespace vitrail {

// The contents of a row: probabilities of the classes, the logits of the head, or the pooled features before
// it.
enum class PredictTask { kClassify, kLogits, kEmbed };

// How fewer images than the largest batch are computed: by an engine of a smaller batch, or padded.
enum class Remainder { kSmaller, kPadded };

// The result of one image of a stream: its row, or its error.
struct ImageRow {
  size_t index = 0;  // in the list
  std::span<const float> values;
  std::optional<Error> error;
};

class Predictor {
 public:
  // `options.batch` is the largest number of images computed at once. Memory is planned for all `tasks`, and
  // the parameters are loaded with the first.
  Predictor(const OpenedModel& model, EngineOptions options, std::vector<PredictTask> tasks);

  const ModelCard& card() const { return card_; }
  const std::vector<std::string>& labels() const { return labels_; }
  const Engine& engine() const { return base_; }
  int64_t batch() const { return base_.options().batch; }  // of all ranks
  size_t image_elems() const { return base_.image_elems(); }

  // Returns a row for each of `count` preprocessed images, planar, one after the other; any count is allowed.
  // Rows that are not finite are returned as they are. With `raw`, the logits behind the probabilities are
  // returned, too.
  std::vector<float> run(PredictTask task, std::span<const float> pixels, int64_t count,
                         Remainder remainder = Remainder::kSmaller, std::vector<float>* raw = nullptr);

  // Returns the rows of a batch of a stream, in its order; failures and rows that are not finite become
  // errors. The spans point into `rows`; `paths` names the images in errors. One of several ranks gives its
  // own rows; all of them must call it for every batch.
  std::vector<ImageRow> run(PredictTask task, const ImageBatch& batch, const std::vector<std::string>& paths,
                            Remainder remainder, std::vector<float>& rows);

  // Runs preprocessed images one by one in a program that puts out what the request needs, and calls `each`
  // with it after every image. A predictor whose own options are those of the request, for one image, plans
  // nothing anew.
  void explain(std::span<const float> pixels, const AttentionRequest& request,
               const std::function<void(const Engine&)>& each);
  // Returns the maps and numbers of one image. Throws Error(kNumerics) when attention weights are not finite.
  Explanation explain(const Image& image, const AttentionRequest& request);

  double compute_seconds() const { return compute_seconds_; }

 private:
  Engine& engine_for(PredictTask task, int64_t count, Remainder remainder);

  ModelCard card_;
  std::vector<std::string> labels_;
  PredictTask loaded_with_;
  Engine base_;
  std::map<std::pair<PredictTask, int64_t>, Engine> others_;  // by task and batch
  std::mutex mutex_;
  double compute_seconds_ = 0;
};

// Where the time of a prediction of many images went, in seconds.
struct PredictTimes {
  size_t images = 0;
  int64_t batch = 1;
  int threads = 1;     // of the host, which prepare images; on a CPU they compute, too
  double seconds = 0;  // from the first image to the last
  double start = 0;    // until the model was ready
  double compute = 0, wait = 0;
  double decode = 0;  // of all threads together

  double rate() const { return seconds > 0 ? static_cast<double>(images) / seconds : 0; }
};
nlohmann::ordered_json to_json(const PredictTimes& times);
std::string to_text(const PredictTimes& times);

// Returns the tasks of a model: one without classes has features alone.
std::vector<PredictTask> tasks_of(const ModelCard& card);

// Refuses a task that the model does not have; `dash` stands before an option's name, "--" on a command line.
void require_task(PredictTask task, const ModelCard& card, const char* dash = "");

// Returns engine options with the outputs that a task needs.
EngineOptions options_for(PredictTask task, const ModelCard& card, EngineOptions options);

// Returns how many threads of the host prepare images beside a model with these options: as many as would
// compute there, whatever device computes.
int image_threads(const EngineOptions& options);

// Returns the settings of a stream of files for a model.
StreamSettings stream_settings(const ModelCard& card, const EngineOptions& options, bool upright);

}  // namespace vitrail
