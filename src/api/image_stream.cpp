#include "api/image_stream.h"

#include <algorithm>

#include "base/checked.h"
#include "base/file.h"
#include "data/decoding_memory.h"
#include "data/image_list.h"

namespace vitrail {

// A list of paths as a dataset without labels.
class ImageStream::List : public Dataset {
 public:
  List(const std::vector<std::string>& paths, bool upright)
      : paths_(paths), upright_(upright), notes_(paths.size()) {
    size_ = std::ssize(paths);
    multi_label_ = true;
  }

  std::string sample_name(int64_t index) const override { return paths_[static_cast<size_t>(index)]; }
  std::span<const int32_t> labels(int64_t) const override { return {}; }
  Image load(int64_t index, int64_t) const override {
    const auto at = static_cast<size_t>(index);
    return load_listed_image(paths_[at], upright_, notes_[at]);
  }

  std::optional<std::string> encoded(int64_t index) const override {
    return read_file(paths_[static_cast<size_t>(index)], static_cast<size_t>(DecodeLimits().max_file_bytes));
  }

  const std::string& note(size_t index) const { return notes_[index]; }

 private:
  const std::vector<std::string>& paths_;
  bool upright_;
  // Each element is written by the one worker that reads its image, before the batch is returned.
  mutable std::vector<std::string> notes_;
};

namespace {

BatchShare share_in(const StreamSettings& settings) {
  return settings.share.global > 0 ? settings.share : BatchShare{0, settings.batch, settings.batch};
}

LoaderSettings loader_settings(int64_t count, const StreamSettings& settings) {
  LoaderSettings loader;
  const BatchShare share = share_in(settings);
  loader.preprocess = settings.preprocess;
  loader.channels = settings.channels;
  loader.take(share);
  loader.relay = settings.relay;
  loader.receives = settings.receives;
  loader.loader.on_error = OnError::kSkip;
  loader.loader.max_bad_fraction = 1;
  // As many threads decode as compute: on the same cores they use the time that computing leaves idle, and
  // while computing waits for images they use all of it.
  loader.chunk = 1;
  loader.loader.workers = std::min(settings.threads, count);
  const int64_t batches = ceil_div(count, settings.batch);
  loader.loader.prefetch = std::min(batches_to_prefetch(share.rows, loader.loader.workers), batches);
  return loader;
}

}  // namespace

ImageStream::ImageStream(const std::vector<std::string>& paths, const StreamSettings& settings)
    : list_(std::make_unique<List>(paths, settings.upright)),
      share_(share_in(settings)),
      total_(paths.size()) {
  LoaderSettings loader = loader_settings(std::ssize(paths), settings);
  loader.on_bad = [this](const BadSample& bad) {
    failures_.emplace_back(static_cast<size_t>(bad.sample), bad.error);
  };
  loader_ = make_eval_loader(*list_, loader);
}

HeldBeside ImageStream::memory(const std::vector<std::string>& paths, const StreamSettings& settings) {
  const LoaderSettings loader = loader_settings(std::ssize(paths), settings);
  return {Loader::staging_bytes(loader), decoder_bytes(List(paths, settings.upright)),
          loader.receives ? 0 : loader.loader.workers, settings.threads_option};
}

size_t decoder_bytes(const Dataset& images) {
  const size_t largest = largest_decoding(images);
  return largest + largest / 4;
}

ImageStream::~ImageStream() = default;

ImageBatch ImageStream::next() {
  failures_.clear();
  const Batch& batch = loader_->next();
  ImageBatch given;
  const auto rows = static_cast<size_t>(share_.rows);
  given.first = std::min(given_ + static_cast<size_t>(share_.first), total_);
  given.count = std::min(rows, total_ - given.first);
  given.of_all = std::min(static_cast<size_t>(share_.global), total_ - given_);
  given.pixels = batch.images.first(batch.images.size() / rows * given.count);
  given.failures = std::move(failures_);
  given_ += given.of_all;
  for (size_t i = given.first; i < given.first + given.count; ++i)
    if (!list_->note(i).empty()) given.notes.push_back(list_->note(i));
  return given;
}

int64_t batches_to_prefetch(int64_t batch, int64_t workers) {
  constexpr int64_t kLeastImages = 8, kMostBatches = 64;
  const int64_t images = std::max(kLeastImages, 2 * workers);
  return std::min(1 + ceil_div(images, batch), kMostBatches);
}

int64_t even_batch(int64_t count, int64_t most) {
  const int64_t batches = std::max<int64_t>(ceil_div(count, most), 1);
  return ceil_div(count, batches);
}

}  // namespace vitrail
