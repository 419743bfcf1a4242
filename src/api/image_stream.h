// Images on their way into a model: decoded and preprocessed by worker threads while the caller computes, a
// bounded number of batches ahead, given out in the order of the list. It must know no model.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/engine.h"
#include "base/error.h"
#include "data/loader.h"

namespace vitrail {

// Consecutive images of the list. The spans stay valid until the next call of next().
struct ImageBatch {
  size_t first = 0, count = 0;
  std::span<const float> pixels;                   // `count` images; zeros where one cannot be read
  std::vector<std::pair<size_t, Error>> failures;  // by number in the list, ascending
  std::vector<std::string> notes;                  // what was seen and left as it is, for -v

  size_t readable() const { return count - failures.size(); }
};

struct StreamSettings {
  PreprocessConfig preprocess;
  int64_t channels = 3, batch = 1;
  int64_t threads = 1;              // that decode
  bool upright = false;             // turned as EXIF says
  std::string threads_option = {};  // "--threads ": in front of a number, what sets it
};

class ImageStream {
 public:
  // Starts decoding at once. `paths` outlives the stream.
  ImageStream(const std::vector<std::string>& paths, const StreamSettings& settings);
  ImageStream(const ImageStream&) = delete;
  ImageStream& operator=(const ImageStream&) = delete;
  ~ImageStream();

  bool done() const { return given_ == total_; }
  // Waits for the next batch. An image that cannot be read is one of its failures; anything else that went
  // wrong is thrown, when its batch comes up.
  ImageBatch next();

  // What such a stream will hold.
  static HeldBeside memory(const std::vector<std::string>& paths, const StreamSettings& settings);

  // Since they were last asked for: seconds spent decoding, all threads together, and waiting in next().
  double decode_seconds() { return loader_->work_seconds(); }
  double wait_seconds() { return loader_->wait_seconds(); }

 private:
  class List;
  std::unique_ptr<List> list_;
  std::vector<std::pair<size_t, Error>> failures_;  // of the batch being given
  std::unique_ptr<Loader> loader_;                  // last: its workers read the list
  size_t given_ = 0, total_;
};

// What a thread takes that decodes these images: beside the image itself a stack, and what lies between
// blocks.
size_t decoder_bytes(const Dataset& images);

// Batches to have ready, so that `workers` threads that take an image at a time always find one to take.
int64_t batches_ahead(int64_t batch, int64_t workers);

// The batch size, at most `most`, by which `count` images come out in batches as equal as can be: no run of
// the model is mostly padding.
int64_t even_batch(int64_t count, int64_t most);

}  // namespace vitrail
