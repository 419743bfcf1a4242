#include "train/learned_from.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "base/error.h"
#include "io/config_json.h"

namespace vitrail {

namespace {

constexpr int64_t kMarks = 256;
constexpr const char* kEarlier = "earlier";
constexpr size_t kMostEarlier = 16;  // sets that are read; each is looked for in all of a dataset

std::string hex(uint64_t number) {
  return strf("%016llx", static_cast<unsigned long long>(number));
}

std::string text_of(const ImageMark& mark) {
  return strf("%llu-", static_cast<unsigned long long>(mark.bytes)) + hex(mark.key);
}

Json texts_of(const std::vector<ImageMark>& images) {
  std::vector<std::string> texts;
  texts.reserve(images.size());
  for (const ImageMark& mark : images) texts.push_back(text_of(mark));
  return texts;
}

std::optional<ImageMark> mark_from(const std::string& text) {
  ImageMark mark;
  if (std::sscanf(text.c_str(), "%" SCNu64 "-%" SCNx64, &mark.bytes, &mark.key) != 2) return std::nullopt;
  return mark;
}

std::vector<ImageMark> marks_from(const Json& texts) {
  std::vector<ImageMark> images;
  for (const Json& text : texts)
    if (const auto mark = mark_from(text.get<std::string>())) images.push_back(*mark);
  return images;
}

// Estimates add and multiply sizes, so that one beyond all reason is cut.
int64_t size_from(const Json& object) {
  return std::clamp<int64_t>(object.at("size").get<int64_t>(), 0, int64_t{1} << 50);
}

}  // namespace

LearnedFrom learned_from(const DataConfig& config, const Dataset& train) {
  LearnedFrom learned{.division = config,
                      .split = config.val.empty(),
                      .names = hex(train.fingerprint()),
                      .contents = hex(train.contents_fingerprint()),
                      .size = train.size(),
                      .images = marks_of(train, kMarks)};
  learned.division.train.clear();
  learned.division.val.clear();
  return learned;
}

Json to_json(const LearnedFrom& learned) {
  Json earlier = Json::array();
  for (const EarlierImages& set : learned.earlier)
    earlier.push_back({{"size", set.size}, {"images", texts_of(set.images)}});
  return {{"names", learned.names},
          {"contents", learned.contents},
          {"size", learned.size},
          {"split", learned.split},
          {"val_fraction", learned.division.val_fraction},
          {"fraction", learned.division.fraction},
          {"classes", learned.division.classes},
          {"class_names", learned.division.class_names},
          {"images", texts_of(learned.images)},
          {kEarlier, earlier}};
}

std::optional<LearnedFrom> read_learned_from(const Json& facts) try {
  const Json* json = json_find(facts, kLearnedFrom);
  if (!json) return std::nullopt;
  LearnedFrom learned;
  json->at("names").get_to(learned.names);
  json->at("contents").get_to(learned.contents);
  learned.size = size_from(*json);
  json->at("split").get_to(learned.split);
  json->at("val_fraction").get_to(learned.division.val_fraction);
  json->at("fraction").get_to(learned.division.fraction);
  json->at("classes").get_to(learned.division.classes);
  json->at("class_names").get_to(learned.division.class_names);
  learned.images = marks_from(json->at("images"));
  if (const Json* earlier = json_find(*json, kEarlier))
    for (size_t i = 0; i < std::min(earlier->size(), kMostEarlier); ++i) {
      const Json& set = earlier->at(i);
      learned.earlier.push_back({.size = size_from(set), .images = marks_from(set.at("images"))});
    }
  return learned;
} catch (const Json::exception&) {
  return std::nullopt;
}

bool knows_earlier(const Json& facts) {
  const Json* json = json_find(facts, kLearnedFrom);
  return json && json->is_object() && json_find(*json, kEarlier);
}

bool is_same(const LearnedFrom& learned, const Dataset& train) {
  return train.size() == learned.size && hex(train.fingerprint()) == learned.names &&
         hex(train.contents_fingerprint()) == learned.contents;
}

}  // namespace vitrail
