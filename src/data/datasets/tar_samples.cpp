#include "data/datasets/tar_samples.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/datasets/formats.h"
#include "data/datasets/tar_reader.h"
#include "data/decode.h"

namespace vitrail {

namespace {

constexpr uint64_t kMaxLabelBytes = 1 << 20;
constexpr size_t kMaxLabels = 100'000;

// Splits "a/b.jpg" into {"a/b", "jpg"}; the ending in lowercase.
std::pair<std::string, std::string> split_name(const std::string& name) {
  const size_t slash = name.rfind('/');
  const size_t dot = name.find('.', slash == std::string::npos ? 0 : slash + 1);
  if (dot == std::string::npos) return {name, ""};
  return {name.substr(0, dot), lowercase(name.substr(dot + 1))};
}

std::string read_text(const ByteSource& file, const TarMember& member) {
  VT_REQUIRE(member.size <= kMaxLabelBytes, ErrorKind::kData, "a label of %llu bytes",
             static_cast<unsigned long long>(member.size));
  std::string text(member.size, '\0');
  file.read_at(member.offset, std::as_writable_bytes(std::span(text)));
  return text;
}

void add_json(const Json& value, TarLabel& label) {
  if (value.is_string())
    label.names.push_back(value);
  else if (value.is_number_integer())
    label.numbers.push_back(value);
  else
    throw Error(ErrorKind::kData, "a label that is neither a number nor a name");
}

// Assembles samples member by member.
class Grouping {
 public:
  void take(const ByteSource& file, const TarMember& member) {
    auto [key, ending] = split_name(member.name);
    if (key != key_) {
      finish();
      key_ = key;
    }
    if (is_image_ending(ending)) {
      VT_REQUIRE(sample_.name.empty(), ErrorKind::kData, "%s and %s are images of one sample",
                 quoted(sample_.name).c_str(), quoted(member.name).c_str());
      VT_REQUIRE(member.size <= formats::kMaxImageBytes, ErrorKind::kData,
                 "an image of %llu bytes, the limit is %llu", static_cast<unsigned long long>(member.size),
                 static_cast<unsigned long long>(formats::kMaxImageBytes));
      sample_.name = member.name;
      sample_.offset = member.offset;
      sample_.size = member.size;
    } else if (ending == "cls") {
      sample_.label = parse_cls(read_text(file, member));
      labelled_ = true;
    } else if (ending == "json" && !labelled_) {
      json_ = read_text(file, member);
    }
  }

  void finish() {
    if (!sample_.name.empty()) {
      if (!labelled_ && !json_.empty()) {
        sample_.label = with_context(quoted(key_ + ".json"), [&] { return parse_json_label(json_); });
        labelled_ = true;
      }
      if (!labelled_)
        throw Error(ErrorKind::kData, strf("%s has no label", quoted(sample_.name).c_str()),
                    "expected a file of the same key ending in .cls or .json after or before it");
      samples.push_back(std::move(sample_));
    }
    sample_ = {};
    json_.clear();
    labelled_ = false;
  }

  std::vector<TarSample> samples;

 private:
  std::string key_, json_;
  TarSample sample_;
  bool labelled_ = false;
};

}  // namespace

TarLabel parse_cls(const std::string& text) {
  const auto space = [](unsigned char c) { return std::isspace(c) != 0; };
  const auto begin = std::find_if_not(text.begin(), text.end(), space);
  const auto end = std::find_if_not(text.rbegin(), text.rend(), space).base();
  VT_REQUIRE(begin < end && is_valid_utf8(text), ErrorKind::kData, "a .cls file that is empty or no text");
  const std::string word(begin, end);
  TarLabel label;
  int64_t number = 0;
  const auto [stop, code] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (code == std::errc() && stop == word.data() + word.size())
    label.numbers = {number};
  else
    label.names = {word};
  return label;
}

TarLabel parse_json_label(const std::string& text) {
  const Json json = parse_json(text, "label");
  VT_REQUIRE(json.is_object(), ErrorKind::kData, "expected an object with \"label\" or \"labels\"");
  for (const char* key : {"label", "labels", "cls"}) {
    const auto found = json.find(key);
    if (found == json.end()) continue;
    TarLabel label;
    label.several = found->is_array();
    if (!label.several) {
      add_json(*found, label);
      return label;
    }
    VT_REQUIRE(found->size() <= kMaxLabels, ErrorKind::kData, "more than %zu labels", kMaxLabels);
    for (const Json& one : *found) add_json(one, label);
    return label;
  }
  throw Error(ErrorKind::kData, "the object has no \"label\", \"labels\" or \"cls\"");
}

std::vector<TarSample> index_tar(const ByteSource& file) {
  TarReader reader(file);
  Grouping grouping;
  while (const auto member = reader.next())
    with_context(quoted(member->name), [&] { grouping.take(file, *member); });
  grouping.finish();
  return std::move(grouping.samples);
}

}  // namespace vitrail
