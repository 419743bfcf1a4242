#include "data/sample_source.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "data/augment/mix.h"
#include "data/preprocess.h"
#include "tensor/buffer.h"

namespace vitrail {
namespace {

int64_t image_elems(const LoaderSettings& s) {
  return s.channels * s.preprocess.height * s.preprocess.width;
}

template <typename T>
std::span<T> part_at(std::byte* memory, size_t& offset, int64_t count) {
  T* first = memory ? reinterpret_cast<T*>(memory + offset) : nullptr;
  offset = round_up(offset + static_cast<size_t>(count) * sizeof(T), Buffer::kAlignment);
  return {first, memory ? static_cast<size_t>(count) : 0};
}

size_t lay_parts(std::byte* memory, const LoaderSettings& s, BatchParts* parts) {
  size_t offset = 0;
  const int64_t pixels = s.micro_batch * image_elems(s);
  const auto used = [&](bool is, int64_t count) { return is && !s.targets_only ? count : 0; };
  parts->images = part_at<float>(memory, offset, used(s.form == ImageForm::kFloats, pixels));
  parts->pixels = part_at<uint8_t>(memory, offset, used(s.form == ImageForm::kPixels, pixels));
  parts->recipes = part_at<ImageRecipe>(memory, offset, used(s.form != ImageForm::kFloats, s.micro_batch));
  parts->targets = part_at<float>(memory, offset, s.micro_batch * s.classes);
  parts->weights = part_at<float>(memory, offset, s.micro_batch);
  parts->labels = part_at<int32_t>(memory, offset, s.micro_batch);
  parts->samples = part_at<int64_t>(memory, offset, s.micro_batch);
  return offset;
}

LoaderSettings settled(LoaderSettings settings, const Dataset& dataset, Purpose purpose) {
  validate(settings, dataset, purpose);
  if (purpose == Purpose::kEval) settings.smoothing = 0;
  VT_CHECK(purpose == Purpose::kTrain || settings.form == ImageForm::kFloats, "evaluation takes floats");
  return settings;
}

Order order_of(const LoaderSettings& settings, Purpose purpose) {
  if (purpose == Purpose::kEval) return Order::kSequential;
  return settings.loader.balanced ? Order::kBalanced : Order::kShuffled;
}

int64_t steps_of(const LoaderSettings& s, int64_t size, Purpose purpose) {
  const int64_t global = s.all_rows() * (purpose == Purpose::kEval ? 1 : s.accumulation);
  return purpose == Purpose::kEval ? ceil_div(size, global) : steps_per_epoch(size, global);
}

template <typename T>
std::span<T> row_of(std::span<T> rows, int64_t row, int64_t elems) {
  return rows.subspan(static_cast<size_t>(row * elems), static_cast<size_t>(elems));
}

}  // namespace

size_t BatchParts::bytes(const LoaderSettings& settings) {
  BatchParts unused;
  return lay_parts(nullptr, settings, &unused);
}

BatchParts BatchParts::over(std::byte* memory, const LoaderSettings& settings) {
  BatchParts parts;
  lay_parts(memory, settings, &parts);
  return parts;
}

SampleSource::SampleSource(const Dataset& dataset, const LoaderSettings& settings, Purpose purpose)
    : dataset_(dataset),
      settings_(settled(settings, dataset, purpose)),
      purpose_(purpose),
      steps_per_epoch_(steps_of(settings_, dataset.size(), purpose)),
      sampler_(dataset, order_of(settings_, purpose), settings.seed, settings.augment.repeats) {
  if (purpose == Purpose::kEval) return;
  augmenter_.emplace(settings_.augment, settings_.preprocess, settings_.channels, settings_.seed);
  if (!settings_.loader.class_weights) return;
  class_weights_ = class_weights(dataset);
  class_weights_.resize(static_cast<size_t>(settings_.classes), 1.0);
}

int64_t bad_allowed(const LoaderConfig& config, const Dataset& dataset) {
  return static_cast<int64_t>(std::ceil(config.max_bad_fraction * static_cast<double>(dataset.size())));
}

Error too_many_bad(size_t count, const std::string& last, const std::string& reason,
                   const LoaderConfig& config) {
  return Error(
      ErrorKind::kData,
      strf("%zu samples could not be read, the last of them %s: %s", count, last.c_str(), reason.c_str()),
      strf("vitrail data check lists them all; loader.max_bad_fraction, now %g, says how many may be skipped",
           config.max_bad_fraction));
}

int64_t SampleSource::chunks() const {
  const bool mixes = purpose_ == Purpose::kTrain && settings_.augment.mixes();
  const int64_t chunk = mixes ? settings_.augment.mix_group : settings_.chunk;
  return ceil_div(settings_.micro_batch, chunk);
}

// Positions run step by step, micro-batch by micro-batch, rank by rank: a step sees the same samples however
// it is split into micro-batches and ranks.
SampleSource::Place SampleSource::place_of(int64_t batch, int64_t row) const {
  const int64_t accumulation = purpose_ == Purpose::kEval ? 1 : settings_.accumulation;
  const int64_t step = batch / accumulation, micro = batch % accumulation;
  const int64_t turn = (step % steps_per_epoch_) * accumulation + micro;
  return {step / steps_per_epoch_, turn * settings_.all_rows() + settings_.first_row + row};
}

void SampleSource::fill_chunk(int64_t batch, int64_t chunk, const BatchParts& parts,
                              std::vector<BadSample>& bad) const {
  const int64_t begin = chunk * settings_.micro_batch / chunks();
  const int64_t end = (chunk + 1) * settings_.micro_batch / chunks();
  for (int64_t row = begin; row < end; ++row) fill_row(place_of(batch, row), row, parts, bad);
  if (purpose_ == Purpose::kTrain && settings_.augment.mixes())
    mix_chunk(place_of(batch, begin), begin, end, parts);
}

void SampleSource::fill_row(Place place, int64_t row, const BatchParts& parts,
                            std::vector<BadSample>& bad) const {
  const auto at = static_cast<size_t>(row);
  const int64_t sample = sampler_.sample_at(place.epoch, place.position);
  parts.samples[at] = sample;
  parts.labels[at] = -1;
  if (sample >= 0) {
    try {
      load_row(sample, place, row, parts);
      return;
    } catch (const Error& error) {
      if (settings_.loader.on_error == OnError::kFail || error.kind() != ErrorKind::kData) throw;
      bad.push_back({sample, dataset_.sample_name(sample), error.what(), error});
    }
  }
  if (!parts.images.empty()) std::ranges::fill(row_of(parts.images, row, image_elems(settings_)), 0.0f);
  if (!parts.recipes.empty()) parts.recipes[at] = {};
  std::ranges::fill(row_of(parts.targets, row, settings_.classes), 0.0f);
  parts.weights[at] = 0;
}

void SampleSource::load_row(int64_t sample, Place place, int64_t row, const BatchParts& parts) const {
  const std::span<const int32_t> labels = dataset_.labels(sample);
  for (int32_t label : labels)
    VT_REQUIRE(label >= 0 && label < settings_.classes, ErrorKind::kData, "%s has label %d: expected 0..%lld",
               dataset_.sample_name(sample).c_str(), label, static_cast<long long>(settings_.classes - 1));
  const int32_t first = labels.empty() ? -1 : labels[0];
  if (!settings_.targets_only) load_sample_image(sample, place, row, parts);
  fill_target(labels, row_of(parts.targets, row, settings_.classes));
  const bool weighed = !class_weights_.empty() && first >= 0;
  parts.weights[static_cast<size_t>(row)] =
      weighed ? static_cast<float>(class_weights_[static_cast<size_t>(first)]) : 1.0f;
  parts.labels[static_cast<size_t>(row)] = first;
}

void SampleSource::load_sample_image(int64_t sample, Place place, int64_t row,
                                     const BatchParts& parts) const {
  const auto [epoch, position] = place;
  const int64_t elems = image_elems(settings_);
  if (settings_.form == ImageForm::kStored) {
    ImageRecipe& recipe = parts.recipes[static_cast<size_t>(row)];
    recipe = {.source = static_cast<int32_t>(sample)};
    return augmenter_->describe(epoch, position, recipe);
  }
  const int64_t least_side = augmenter_ ? augmenter_->least_side(epoch, position) : 0;
  Image image = with_channels(dataset_.load(sample, least_side), settings_.channels);
  if (settings_.form == ImageForm::kPixels) {
    ImageRecipe& recipe = parts.recipes[static_cast<size_t>(row)];
    recipe = {.source = static_cast<int32_t>(row)};
    image = augmenter_->prepare(std::move(image), epoch, position, recipe);
    VT_CHECK(std::ssize(image.pixels) == elems, "%zu pixels", image.pixels.size());
    std::ranges::copy(image.pixels, row_of(parts.pixels, row, elems).begin());
  } else if (augmenter_) {
    augmenter_->fill(std::move(image), epoch, position, row_of(parts.images, row, elems));
  } else {
    preprocess(image, settings_.preprocess, row_of(parts.images, row, elems));
  }
}

void SampleSource::fill_target(std::span<const int32_t> labels, std::span<float> target) const {
  const double off = settings_.smoothing / static_cast<double>(settings_.classes);
  std::ranges::fill(target, static_cast<float>(off));
  for (int32_t label : labels)
    target[static_cast<size_t>(label)] = static_cast<float>(1 - settings_.smoothing + off);
}

void SampleSource::mix_chunk(Place first, int64_t begin, int64_t end, const BatchParts& parts) const {
  const Size size{settings_.preprocess.height, settings_.preprocess.width};
  Draw draw(settings_.seed, first.epoch, first.position / settings_.augment.mix_group, "mix");
  const auto rows = [&](auto all, int64_t elems) {
    return all.empty()
               ? all
               : all.subspan(static_cast<size_t>(begin * elems), static_cast<size_t>((end - begin) * elems));
  };
  mix_samples(draw_mix(settings_.augment, size, draw), {.images = rows(parts.images, image_elems(settings_)),
                                                        .targets = rows(parts.targets, settings_.classes),
                                                        .weights = rows(parts.weights, 1),
                                                        .size = size,
                                                        .recipes = rows(parts.recipes, 1),
                                                        .first = begin});
}

}  // namespace vitrail
