// A stream of images for a model: worker threads prefetch a bounded number of batches, decoded and
// preprocessed, while the caller computes, and batches come in the order of the list. Knows no model.
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

// Consecutive images of the list, those of this rank where several share each batch; then there may be none.
// The spans stay valid until the next call of next().
struct ImageBatch {
  size_t first = 0, count = 0;
  size_t of_all = 0;                               // images of the batch on all ranks
  std::span<const float> pixels;                   // `count` images; zeros where one cannot be read
  std::vector<std::pair<size_t, Error>> failures;  // by number in the list, ascending
  std::vector<std::string> notes;                  // oddities of files, left as they are; for -v

  size_t readable() const { return count - failures.size(); }
};

struct StreamSettings {
  PreprocessConfig preprocess;
  int64_t channels = 3, batch = 1;         // images of a batch on all ranks
  int64_t threads = 1;                     // decoding threads
  bool upright = false;                    // turned as EXIF says
  std::string threads_option = {};         // "--threads ": stands in messages before the number
  BatchShare share = {};                   // the part of each batch that this rank takes; none: all of it
  std::shared_ptr<BatchRelay> relay = {};  // as LoaderSettings has them
  bool receives = false;
};

class ImageStream {
 public:
  // Starts decoding at once. `paths` must outlive the stream.
  ImageStream(const std::vector<std::string>& paths, const StreamSettings& settings);
  ImageStream(const ImageStream&) = delete;
  ImageStream& operator=(const ImageStream&) = delete;
  ~ImageStream();

  bool done() const { return given_ == total_; }
  // Waits for the next batch. An image that cannot be read is among its failures; any other error is thrown
  // when its batch is due.
  ImageBatch next();

  // Returns the memory that a stream with these settings will hold.
  static HeldBeside memory(const std::vector<std::string>& paths, const StreamSettings& settings);

  // Seconds since the previous call: decoding, all threads together, and waiting in next().
  double decode_seconds() { return loader_->work_seconds(); }
  double take_wait_seconds() { return loader_->take_wait_seconds(); }

 private:
  class List;
  std::unique_ptr<List> list_;
  std::vector<std::pair<size_t, Error>> failures_;  // of the batch being given
  std::unique_ptr<Loader> loader_;                  // last: its workers read the list
  BatchShare share_;
  size_t given_ = 0, total_;  // images of all ranks
};

// Returns the bytes that a thread needs to decode these images: beside the image itself a stack, and what the
// allocator loses between blocks.
size_t decoder_bytes(const Dataset& images);

// Returns how many batches to prefetch so that `workers` threads, each taking one image at a time, are never
// idle.
int64_t batches_to_prefetch(int64_t batch, int64_t workers);

// Returns the batch size, at most `most`, that divides `count` images into batches of nearly equal size, so
// that no run of the model is mostly padding.
int64_t even_batch(int64_t count, int64_t most);

}  // namespace vitrail
