#include "data/loader_config.h"

#include "base/error.h"
#include "base/fields.h"
#include "data/sample_source.h"

namespace vitrail {
namespace {

// Returns the largest group not above the wanted one that divides the batch; 0 when there is none.
int64_t fitting_group(int64_t batch, int64_t wanted) {
  for (int64_t group = wanted; group >= 2; group -= 2)
    if (batch % group == 0) return group;
  return 0;
}

void check_mix_group(const LoaderSettings& s) {
  if (!s.augment.mixes() || s.micro_batch % s.augment.mix_group == 0) return;
  const int64_t fitting = fitting_group(s.micro_batch, s.augment.mix_group);
  throw Error(ErrorKind::kConfig,
              strf("augment.mix_group %lld does not divide the micro-batch of %lld",
                   static_cast<long long>(s.augment.mix_group), static_cast<long long>(s.micro_batch)),
              fitting ? strf("augment.mix_group=%lld, or a micro-batch that is a multiple of it",
                             static_cast<long long>(fitting))
                      : "an even micro-batch, since samples are mixed in pairs");
}

void check_training(const LoaderSettings& s, const Dataset& dataset) {
  validate(s.augment);
  check_mix_group(s);
  require_in_range("accumulation", s.accumulation, 1, 1 << 20);
  VT_REQUIRE(s.smoothing >= 0 && s.smoothing < 1, ErrorKind::kConfig,
             "label smoothing is %g: expected 0 or more and less than 1", s.smoothing);
  VT_REQUIRE(!(s.loader.class_weights && dataset.multi_label()), ErrorKind::kConfig,
             "loader.class_weights needs one label a sample; this set has several");
}

}  // namespace

void validate(const LoaderConfig& config) {
  require_in_range("loader.workers", config.workers, 0, 1024);
  require_in_range("loader.prefetch", config.prefetch, 1, 64);
  VT_REQUIRE(config.max_bad_fraction >= 0 && config.max_bad_fraction <= 1, ErrorKind::kConfig,
             "loader.max_bad_fraction is %g: expected 0..1", config.max_bad_fraction);
}

void validate(const LoaderSettings& s, const Dataset& dataset, Purpose purpose) {
  validate(s.loader);
  require_in_range("the micro-batch", s.micro_batch, 1, 1 << 20);
  require_in_range("the samples a worker takes", s.chunk, 1, 1 << 20);
  require_in_range("the number of classes", s.classes, 1, 1 << 24);
  require_in_range("the image's height", s.preprocess.height, 1, 65536);
  require_in_range("the image's width", s.preprocess.width, 1, 65536);
  require_in_range("the micro-batch of all ranks", s.all_rows(), s.micro_batch, 1 << 20);
  require_in_range("the first row of this rank", s.first_row, 0, s.all_rows() - s.micro_batch);
  VT_REQUIRE(s.channels == 1 || s.channels == 3, ErrorKind::kConfig,
             "the model takes %lld channels: an image can fill 1 (grey) or 3 (RGB)",
             static_cast<long long>(s.channels));
  VT_REQUIRE(std::ssize(dataset.classes()) <= s.classes, ErrorKind::kConfig,
             "the data has %zu classes, the model %lld", dataset.classes().size(),
             static_cast<long long>(s.classes));
  if (purpose == Purpose::kTrain) check_training(s, dataset);
}

}  // namespace vitrail
