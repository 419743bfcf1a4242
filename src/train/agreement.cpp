#include "train/agreement.h"

#include <algorithm>
#include <numeric>

#include "base/json_text.h"
#include "base/text.h"

namespace vitrail {

namespace {

constexpr const char* kMayDiffer[] = {"loader.workers", "loader.prefetch", "data.train",
                                      "data.val",       "model.init",      "distill.teacher"};

std::string value_text(const Json& facts, const std::string& key) {
  const auto found = facts.find(key);
  return found == facts.end() ? "nothing" : shown(json_text(*found));
}

template <typename T>
T number_of_first(Communicator& ranks, DType dtype, T number) {
  ranks.run({.kind = Collective::Kind::kBroadcast,
             .dtype = dtype,
             .in = nullptr,
             .out = &number,
             .counts = {1},
             .peer = 0});
  return number;
}

}  // namespace

std::vector<std::string> from_all(Communicator& ranks, const std::string& text) {
  const auto size = static_cast<size_t>(ranks.size());
  const auto mine = static_cast<int64_t>(text.size());
  std::vector<int64_t> lengths(size);
  ranks.run({.kind = Collective::Kind::kAllGather,
             .dtype = DType::kI64,
             .in = &mine,
             .out = lengths.data(),
             .counts = std::vector<size_t>(size, 1)});
  const std::vector<size_t> counts(lengths.begin(), lengths.end());
  std::string all(std::accumulate(counts.begin(), counts.end(), size_t{0}), '\0');
  ranks.run({.kind = Collective::Kind::kAllGather,
             .dtype = DType::kU8,
             .in = text.data(),
             .out = all.data(),
             .counts = counts});
  std::vector<std::string> texts;
  size_t at = 0;
  for (const size_t count : counts) {
    texts.push_back(all.substr(at, count));
    at += count;
  }
  return texts;
}

std::string from_first(Communicator& ranks, const std::string& text) {
  return from_all(ranks, ranks.rank() == 0 ? text : std::string())[0];
}

double from_first(Communicator& ranks, double number) {
  return number_of_first(ranks, DType::kF64, number);
}

int64_t from_first(Communicator& ranks, int64_t number) {
  return number_of_first(ranks, DType::kI64, number);
}

// A rank has two lines: its group, its facts.
void require_same_facts(Communicator& ranks, const Json& facts, const std::string& group) {
  const std::vector<std::string> all = from_all(ranks, group + "\n" + json_text(facts));
  const auto in_group = [&](const std::string& text) { return text.starts_with(group + "\n"); };
  const auto reference = std::find_if(all.begin(), all.end(), in_group);
  const auto first_rank = reference - all.begin();
  const Json first =
      parse_json(reference->substr(group.size() + 1), strf("the facts of rank %td", first_rank));
  Json keys = first;
  keys.update(facts);
  for (const auto& [key, value] : keys.items()) {
    if (value_text(first, key) == value_text(facts, key)) continue;
    throw Error(ErrorKind::kConfig,
                strf("%s is %s on rank %d and %s on rank %td", key.c_str(), value_text(facts, key).c_str(),
                     ranks.rank(), value_text(first, key).c_str(), first_rank),
                "all ranks run one program with one config on the same data and models");
  }
}

Json config_facts(const Json& config) {
  Json facts = Json::object();
  const Json flat = config.flatten();
  for (const auto& [key, value] : flat.items()) {
    std::string name = key.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    if (std::find(std::begin(kMayDiffer), std::end(kMayDiffer), name) == std::end(kMayDiffer))
      facts[name] = value;
  }
  return facts;
}

}  // namespace vitrail
