// What a model had learned from before a run began with it: read from what the model keeps, less the images
// that the run learns from, too, and held to a few sets of marks however often models begin with others.
#include <algorithm>
#include <cmath>

#include "io/sealed_folder.h"
#include "train/learned_from.h"

namespace vitrail {

namespace {

constexpr size_t kMostSets = 4, kMostMarks = 256;
constexpr SearchLimits kSearch{.images = 50'000};  // each of them may be a file whose size is asked for

double density(const EarlierImages& set) {
  return static_cast<double>(set.images.size()) / static_cast<double>(set.size);
}

// Keeps as many of the marks, spread evenly.
void thin(std::vector<ImageMark>& marks, size_t most) {
  if (marks.size() <= most) return;
  for (size_t i = 0; i < most; ++i) marks[i] = marks[(2 * i + 1) * marks.size() / (2 * most)];
  marks.resize(most);
}

EarlierImages without_those_of(const EarlierImages& set, const Dataset& train) {
  MarkSearch search = search_marks(set.images, train, kSearch);
  const double left = (1 - search.overlap.share()) * static_cast<double>(set.size);
  EarlierImages rest{.size = std::llround(left), .images = std::move(search.missing)};
  thin(rest.images, kMostMarks);
  return rest;
}

// Joins two sets, of each as many marks as are its share of the images.
EarlierImages joined(EarlierImages a, EarlierImages b) {
  const double all = static_cast<double>(a.size) + static_cast<double>(b.size);
  const double dense = std::min({density(a), density(b), static_cast<double>(kMostMarks) / all});
  for (EarlierImages* set : {&a, &b})
    thin(set->images, static_cast<size_t>(std::ceil(dense * static_cast<double>(set->size))));
  a.size += b.size;
  a.images.insert(a.images.end(), b.images.begin(), b.images.end());
  thin(a.images, kMostMarks);
  return a;
}

}  // namespace

std::vector<EarlierImages> learned_earlier(const std::string& model, const LearnedFrom& now,
                                           const Dataset& train) {
  if (model.empty()) return {};
  const std::optional<LearnedFrom> began = read_learned_from(kept_facts(model));
  if (!began) return {};
  std::vector<EarlierImages> sets = began->earlier;
  const bool same = began->size == now.size && began->names == now.names && began->contents == now.contents;
  if (!same) sets.insert(sets.begin(), {.size = began->size, .images = began->images});
  for (EarlierImages& set : sets) set = without_those_of(set, train);
  std::erase_if(sets, [](const EarlierImages& set) { return set.size == 0 || set.images.empty(); });
  while (sets.size() > kMostSets) {
    EarlierImages last = std::move(sets.back());
    sets.pop_back();
    sets.back() = joined(std::move(sets.back()), std::move(last));
  }
  return sets;
}

}  // namespace vitrail
