// Opens the data that data.* configures: parts, splits, classes, fractions; every decision is noted.
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "data/datasets/view.h"

namespace vitrail {

namespace {

void require_distinct(const char* key, const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const std::string& name : names)
    VT_REQUIRE(!name.empty() && seen.insert(name).second, ErrorKind::kConfig,
               "data.%s holds %s: names must be distinct and not empty", key,
               name.empty() ? "an empty name" : (quoted(name) + " twice").c_str());
}

std::string images(const Dataset& dataset) {
  return strf("%lld images of %zu classes%s", static_cast<long long>(dataset.size()),
              dataset.classes().size(), dataset.multi_label() ? " (several labels an image)" : "");
}

// Returns the samples of a set with its classes chosen and named by the config.
std::unique_ptr<Dataset> with_classes(std::unique_ptr<Dataset> dataset, const DataConfig& config) {
  if (!config.class_names.empty()) dataset = rename_classes(std::move(dataset), config.class_names);
  if (!config.classes.empty()) dataset = keep_classes(std::move(dataset), config.classes);
  VT_REQUIRE(dataset->size() > 0, ErrorKind::kData, "no image belongs to the classes of data.classes");
  return dataset;
}

std::unique_ptr<Dataset> open_named_val(const DataConfig& config, DataSplits& splits) {
  auto val = open_part_if_any(config.val, Part::kVal);
  const char* which = val ? "the validation part of " : "all of ";
  if (!val) val = open_dataset(config.val, Part::kAll);
  splits.notes.push_back(strf("validation: %s%s", which, config.val.c_str()));
  return val;
}

// The split is by name alone, so a small class may have no sample in it.
void note_missing_classes(DataSplits& splits) {
  const std::vector<int64_t> trained = class_counts(*splits.train), held_out = class_counts(*splits.val);
  std::vector<std::string> missing;
  for (size_t i = 0; i < trained.size(); ++i)
    if (trained[i] > 0 && held_out[i] == 0) missing.push_back(quoted(splits.train->classes()[i]));
  if (missing.empty()) return;
  splits.notes.push_back(
      strf("validation: %zu of %zu classes have no sample in it, as %s; a folder with train and "
           "val parts decides itself",
           missing.size(), trained.size(), missing.front().c_str()));
}

void split_off_val(const DataConfig& config, DataSplits& splits) {
  if (config.val_fraction == 0) {
    splits.notes.emplace_back("validation: none; the data has no such part and data.val_fraction is 0");
    return;
  }
  const SharedDataset whole = std::move(splits.train);
  HashSplit split = split_by_name(*whole, config.val_fraction);
  VT_REQUIRE(!split.kept.empty() && !split.split_off.empty(), ErrorKind::kData,
             "data.val_fraction=%g of %lld images leaves %zu to train on and %zu for validation",
             config.val_fraction, static_cast<long long>(whole->size()), split.kept.size(),
             split.split_off.size());
  splits.notes.push_back(strf("validation: %.3g %% of %s by hash of the samples' names, %zu samples",
                              100 * config.val_fraction, config.train.c_str(), split.split_off.size()));
  splits.train = take_samples(whole, std::move(split.kept));
  splits.val = take_samples(whole, std::move(split.split_off));
  note_missing_classes(splits);
}

void check_val(const DataSplits& splits) {
  VT_REQUIRE(splits.val->multi_label() == splits.train->multi_label(), ErrorKind::kData,
             "the training data has %s an image, the validation data %s",
             splits.train->multi_label() ? "several labels" : "one label",
             splits.val->multi_label() ? "several" : "one");
}

void take_fraction(const DataConfig& config, DataSplits& splits) {
  if (config.fraction == 1) return;
  const SharedDataset whole = std::move(splits.train);
  splits.train = take_samples(whole, stratified_share(*whole, config.fraction));
  splits.notes.push_back(
      strf("training: %.3g %% of every class by hash of the samples' names, %lld of %lld samples",
           100 * config.fraction, static_cast<long long>(splits.train->size()),
           static_cast<long long>(whole->size())));
}

}  // namespace

void validate(const DataConfig& config) {
  if (config.train.empty())
    throw Error(ErrorKind::kConfig, "data.train is empty: which images?",
                "--set data.train=FORMAT:PLACE, as folder:DIR with a folder of images for every class; or "
                "--config FILE");
  VT_REQUIRE(config.val_fraction >= 0 && config.val_fraction < 1, ErrorKind::kConfig,
             "data.val_fraction is %g: expected at least 0 and less than 1", config.val_fraction);
  VT_REQUIRE(config.fraction > 0 && config.fraction <= 1, ErrorKind::kConfig,
             "data.fraction is %g: expected more than 0 and at most 1", config.fraction);
  require_distinct("classes", config.classes);
  require_distinct("class_names", config.class_names);
}

DataSplits open_data(const DataConfig& config) {
  validate(config);
  DataSplits splits;
  splits.train = with_context("data.train", [&] { return open_dataset(config.train, Part::kTrain); });
  if (!config.val.empty()) {
    splits.val = with_context("data.val", [&] { return open_named_val(config, splits); });
  } else if ((splits.val = open_part_if_any(config.train, Part::kVal))) {
    splits.notes.push_back(strf("validation: the data's own part of %s", config.train.c_str()));
  } else {
    split_off_val(config, splits);
  }
  if (splits.val) {
    check_val(splits);
    if (splits.val->classes() != splits.train->classes())
      splits.val = align_classes(std::move(splits.val), splits.train->classes());
    splits.val = with_classes(std::move(splits.val), config);
  }
  splits.train = with_classes(std::move(splits.train), config);
  take_fraction(config, splits);
  splits.notes.push_back("training on " + images(*splits.train) +
                         (splits.val ? ", validating on " + images(*splits.val) : ""));
  return splits;
}

}  // namespace vitrail
