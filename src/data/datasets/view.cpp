#include "data/datasets/view.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"
#include "data/datasets/tables.h"

namespace vitrail {

namespace {

class View : public Dataset {
 public:
  View(SharedDataset base, std::vector<int64_t> indices, const std::vector<int32_t>& numbers,
       std::vector<std::string> classes)
      : base_(std::move(base)), indices_(std::move(indices)), labels_(base_->multi_label()) {
    size_ = static_cast<int64_t>(indices_.size());
    classes_ = std::move(classes);
    multi_label_ = base_->multi_label();
    std::vector<int32_t> kept;
    for (const int64_t index : indices_) {
      kept.clear();
      for (const int32_t label : base_->labels(index))
        if (numbers[static_cast<size_t>(label)] != kDropped)
          kept.push_back(numbers[static_cast<size_t>(label)]);
      labels_.add(kept);
    }
  }

  std::string sample_name(int64_t index) const override { return base_->sample_name(at(index)); }
  std::span<const int32_t> labels(int64_t index) const override {
    return labels_[static_cast<size_t>(index)];
  }
  Image load(int64_t index, int64_t least_side) const override { return base_->load(at(index), least_side); }
  std::optional<std::string> encoded(int64_t index) const override { return base_->encoded(at(index)); }
  uint64_t stored_bytes(int64_t index) const override { return base_->stored_bytes(at(index)); }
  std::optional<PixelShape> pixel_shape() const override { return base_->pixel_shape(); }

 private:
  int64_t at(int64_t index) const { return indices_[static_cast<size_t>(index)]; }

  SharedDataset base_;
  std::vector<int64_t> indices_;
  LabelTable labels_;
};

std::vector<int64_t> all_of(const Dataset& dataset) {
  std::vector<int64_t> indices(static_cast<size_t>(dataset.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

std::vector<int32_t> unchanged(size_t classes) {
  std::vector<int32_t> numbers(classes);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// Finds classes by name.
class ClassFinder {
 public:
  ClassFinder(const std::vector<std::string>& classes, const char* where) : classes_(classes), where_(where) {
    for (size_t i = 0; i < classes.size(); ++i) numbers_.emplace(classes[i], i);
  }

  // Returns the index of `name` among them; an error suggests the nearest.
  size_t operator()(const std::string& name) const {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return found->second;
    const std::string near = nearest_name(name, classes_);
    throw Error(
        ErrorKind::kData,
        strf("the class %s is not among the %zu classes of %s", quoted(name).c_str(), classes_.size(),
             where_),
        near.empty() ? "vitrail data stats lists them" : strf("did you mean %s?", quoted(near).c_str()));
  }

 private:
  const std::vector<std::string>& classes_;
  const char* where_;
  std::unordered_map<std::string_view, size_t> numbers_;
};

uint64_t draw(const Dataset& dataset, int64_t index, const char* purpose) {
  return counter_hash(name_key(dataset.sample_name(index)), name_key(purpose));
}

}  // namespace

std::unique_ptr<Dataset> make_view(SharedDataset base, std::vector<int64_t> indices,
                                   const std::vector<int32_t>& numbers, std::vector<std::string> classes) {
  VT_CHECK(numbers.size() == base->classes().size());
  return std::make_unique<View>(std::move(base), std::move(indices), numbers, std::move(classes));
}

std::unique_ptr<Dataset> take_samples(SharedDataset base, std::vector<int64_t> indices) {
  const std::vector<std::string> classes = base->classes();
  return make_view(std::move(base), std::move(indices), unchanged(classes.size()), classes);
}

std::unique_ptr<Dataset> keep_classes(SharedDataset base, const std::vector<std::string>& names) {
  const std::vector<std::string>& all = base->classes();
  std::vector<int32_t> numbers(all.size(), kDropped);
  const ClassFinder find_class(all, "the data");
  for (const std::string& name : names) numbers[find_class(name)] = 0;
  std::vector<std::string> classes;
  for (size_t i = 0; i < all.size(); ++i) {
    if (numbers[i] == kDropped) continue;
    numbers[i] = static_cast<int32_t>(classes.size());
    classes.push_back(all[i]);
  }
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < base->size(); ++i)
    if (base->multi_label() || numbers[static_cast<size_t>(base->labels(i)[0])] != kDropped)
      indices.push_back(i);
  return make_view(std::move(base), std::move(indices), numbers, std::move(classes));
}

std::unique_ptr<Dataset> rename_classes(SharedDataset base, std::vector<std::string> names) {
  VT_REQUIRE(names.size() == base->classes().size(), ErrorKind::kConfig,
             "data.class_names has %zu names, the data has %zu classes", names.size(),
             base->classes().size());
  std::vector<int64_t> indices = all_of(*base);
  const std::vector<int32_t> numbers = unchanged(names.size());
  return make_view(std::move(base), std::move(indices), numbers, std::move(names));
}

std::unique_ptr<Dataset> align_classes(SharedDataset base, const std::vector<std::string>& classes) {
  std::vector<int32_t> numbers;
  const ClassFinder find_class(classes, "the training data");
  for (const std::string& name : base->classes()) numbers.push_back(static_cast<int32_t>(find_class(name)));
  std::vector<int64_t> indices = all_of(*base);
  return make_view(std::move(base), std::move(indices), numbers, classes);
}

std::vector<int64_t> stratified_share(const Dataset& dataset, double fraction) {
  // The last group holds images without any label.
  std::vector<std::vector<std::pair<uint64_t, int64_t>>> groups(dataset.classes().size() + 1);
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const auto labels = dataset.labels(i);
    const size_t group = labels.empty() ? groups.size() - 1 : static_cast<size_t>(labels[0]);
    groups[group].emplace_back(draw(dataset, i, "fraction"), i);
  }
  std::vector<int64_t> indices;
  for (auto& group : groups) {
    std::sort(group.begin(), group.end());
    const double wanted = std::ceil(fraction * static_cast<double>(group.size()) - 1e-9);
    for (size_t i = 0; i < static_cast<size_t>(wanted); ++i) indices.push_back(group[i].second);
  }
  std::sort(indices.begin(), indices.end());
  return indices;
}

HashSplit split_by_name(const Dataset& dataset, double fraction) {
  HashSplit split;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const double share = static_cast<double>(draw(dataset, i, "validation") >> 11) * 0x1p-53;
    (share < fraction ? split.split_off : split.kept).push_back(i);
  }
  return split;
}

}  // namespace vitrail
