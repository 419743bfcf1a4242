#include "train/learned_from.h"

#include <cinttypes>
#include <cstdio>

#include "base/error.h"
#include "io/config_json.h"

namespace vitrail {

namespace {

constexpr int64_t kMarks = 256;

std::string hex(uint64_t number) {
  return strf("%016llx", static_cast<unsigned long long>(number));
}

std::string text_of(const ImageMark& mark) {
  return strf("%llu-", static_cast<unsigned long long>(mark.bytes)) + hex(mark.key);
}

std::optional<ImageMark> mark_from(const std::string& text) {
  ImageMark mark;
  if (std::sscanf(text.c_str(), "%" SCNu64 "-%" SCNx64, &mark.bytes, &mark.key) != 2) return std::nullopt;
  return mark;
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
  std::vector<std::string> images;
  for (const ImageMark& mark : learned.images) images.push_back(text_of(mark));
  return {{"names", learned.names},
          {"contents", learned.contents},
          {"size", learned.size},
          {"split", learned.split},
          {"val_fraction", learned.division.val_fraction},
          {"fraction", learned.division.fraction},
          {"classes", learned.division.classes},
          {"class_names", learned.division.class_names},
          {"images", images}};
}

std::optional<LearnedFrom> read_learned_from(const Json& facts) try {
  const Json* json = json_find(facts, kLearnedFrom);
  if (!json) return std::nullopt;
  LearnedFrom learned;
  json->at("names").get_to(learned.names);
  json->at("contents").get_to(learned.contents);
  json->at("size").get_to(learned.size);
  json->at("split").get_to(learned.split);
  json->at("val_fraction").get_to(learned.division.val_fraction);
  json->at("fraction").get_to(learned.division.fraction);
  json->at("classes").get_to(learned.division.classes);
  json->at("class_names").get_to(learned.division.class_names);
  for (const Json& text : json->at("images"))
    if (const auto mark = mark_from(text.get<std::string>())) learned.images.push_back(*mark);
  return learned;
} catch (const Json::exception&) {
  return std::nullopt;
}

bool is_same(const LearnedFrom& learned, const Dataset& train) {
  return train.size() == learned.size && hex(train.fingerprint()) == learned.names &&
         hex(train.contents_fingerprint()) == learned.contents;
}

}  // namespace vitrail
