#include "measure/study/study_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace vitrail {

namespace {

constexpr int64_t kMostRanks = 4096, kMostBatch = 1 << 20;
constexpr double kMostMegabytes = 4096;

[[noreturn]] void refuse(const char* name, const std::string& what, const std::string& remedy) {
  throw Error(ErrorKind::kUsage, strf("--%s: %s", name, what.c_str()), remedy);
}

// One text with commas is a list.
void split_list(std::vector<std::string>& list, const char* name) {
  std::vector<std::string> words;
  for (const std::string& text : list)
    for (const std::string_view word : split(text, ',')) words.emplace_back(word);
  std::set<std::string> seen;
  for (const std::string& word : words) {
    if (word.empty()) refuse(name, "an entry of the list is empty", strf("--%s A,B,C", name));
    if (!seen.insert(word).second) refuse(name, quoted(word) + " is there twice", "each once");
  }
  list = words;
}

void check_integers(const std::vector<std::string>& list, const char* name, int64_t most,
                    const char* example) {
  if (list.empty()) refuse(name, "nothing is given", example);
  for (const std::string& text : list) {
    const auto number = parse_integer(text);
    if (!number || *number < 1 || *number > most)
      refuse(name,
             strf("%s is no whole number from 1 to %lld", quoted(text).c_str(), static_cast<long long>(most)),
             example);
  }
}

void check_range(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value < least || value > most)
    refuse(name,
           strf("%lld is not between %lld and %lld", static_cast<long long>(value),
                static_cast<long long>(least), static_cast<long long>(most)),
           strf("--%s %lld", name, static_cast<long long>(least)));
}

void check_messages(std::vector<std::string>& list) {
  split_list(list, "messages");
  if (list.size() == 1 && list[0] == "0") list.clear();
  for (const std::string& text : list) {
    const auto number = parse_number(text);
    if (!number || !(*number >= 0.0001) || *number > kMostMegabytes)
      refuse("messages", quoted(text) + " is no number of megabytes from 0.0001 to 4096",
             "--messages 0.01,1,10, or 0 for none");
  }
}

void check_transports(const StudyConfig& c) {
  const auto& list = c.transports;
  for (const std::string& name : list)
    if (name != "threads" && name != "mpi" && name != "nodes")
      refuse("transports", quoted(name) + " is none of threads, mpi and nodes", "--transports threads,mpi");
  const bool nodes = std::find(list.begin(), list.end(), "nodes") != list.end();
  const bool named = !c.hosts.empty() || c.namespaces > 0;
  if (nodes && !named)
    refuse("transports", "nodes are named by nothing",
           "--hosts vt1:2,vt2:2, or as root --namespaces 2 for two on this host");
  if (named && !nodes) refuse("transports", "nodes are given, and not among them", "--transports mpi,nodes");
  if (!c.hosts.empty() && c.namespaces > 0)
    refuse("namespaces", "nodes are either namespaces or the hosts of --hosts", "one of the two");
  if (!c.rate.empty() && c.namespaces == 0)
    refuse("rate", "only links of --namespaces can be shaped", "--namespaces 2 --rate 1gbit");
}

void check_prediction(const StudyConfig& c) {
  if (c.cluster.empty() && c.target.empty()) return;
  const char* name = c.cluster.empty() ? "target" : "cluster";
  if (!c.predicted.empty()) refuse(name, "--predicted names what is predicted already", "one of the two");
  if (c.device.size() > 1)
    refuse(name, "one file does not describe several devices", "one --device, or --predicted FILE");
}

void check_division(const StudyConfig& c) {
  if (c.strong != StrongScaling::kGlobal) return;
  for (const int64_t batch : integers_of(c.batches))
    for (const int64_t ranks : integers_of(c.ranks))
      if (batch % ranks != 0)
        refuse("batches",
               strf("%lld images cannot be shared equally by %lld ranks", static_cast<long long>(batch),
                    static_cast<long long>(ranks)),
               "batches that all numbers of --ranks divide, or --strong per-rank");
}

struct ListOwn {
  std::vector<FieldSpec>& specs;
  template <typename T>
  void operator()(const char* name, const T& field, const char* help) const {
    specs.push_back(field_spec<T>(name, help));
    specs.back().usual = field_text(field);
  }
};

struct WriteJson {
  nlohmann::ordered_json& json;
  template <typename T>
  void operator()(const char* name, const T& field, const char*) const {
    if constexpr (std::is_enum_v<T>)
      json[name] = enum_name(field);
    else
      json[name] = field;
  }
};

}  // namespace

std::vector<FieldSpec> study_fields() {
  std::vector<FieldSpec> specs;
  const StudyConfig defaults;
  StudyConfig::fields(defaults, ListOwn{specs});
  return specs;
}

void check_study(StudyConfig& c) {
  split_list(c.models, "models");
  split_list(c.device, "device");
  split_list(c.transports, "transports");
  split_list(c.ranks, "ranks");
  split_list(c.batches, "batches");
  if (c.models.empty()) c.models = {c.recipe.empty() ? "vit_tiny_patch16_224" : kOfRecipe};
  check_integers(c.ranks, "ranks", kMostRanks, "--ranks 1,2,4");
  check_integers(c.batches, "batches", kMostBatch, "--batches 16,32,64");
  check_messages(c.messages);
  check_range("repeat", c.repeat, 1, 1000);
  check_range("updates", c.updates, 1, 1000000);
  check_range("warmup", c.warmup, 0, 1000000);
  check_range("epochs", c.epochs, 1, 100000);
  check_range("threads", c.threads, 0, 1024);
  check_range("images", c.images, 1, int64_t{1} << 40);
  check_range("namespaces", c.namespaces, 0, 9);
  if (!(c.timeout > 0)) refuse("timeout", "a case needs some time", "--timeout 900");
  if (c.strong == StrongScaling::kNone && !c.weak)
    refuse("strong", "neither strong nor weak scaling is left", "--weak, or --strong global");
  if (c.kind == StudyKind::kTrain && c.recipe.empty())
    refuse("kind", "a study that trains needs a training config",
           "--kind train --recipe configs/demo-fashion.json");
  check_transports(c);
  check_prediction(c);
  check_division(c);
}

nlohmann::ordered_json to_json(const StudyConfig& config) {
  nlohmann::ordered_json json;
  StudyConfig::fields(config, WriteJson{json});
  json["settings"] = config.settings;
  return json;
}

std::vector<int64_t> integers_of(const std::vector<std::string>& texts) {
  std::vector<int64_t> numbers;
  numbers.reserve(texts.size());
  for (const std::string& text : texts) numbers.push_back(parse_integer(text).value());
  return numbers;
}

std::vector<double> numbers_of(const std::vector<std::string>& texts) {
  std::vector<double> numbers;
  numbers.reserve(texts.size());
  for (const std::string& text : texts) numbers.push_back(parse_number(text).value());
  return numbers;
}

}  // namespace vitrail
