#include "measure/study/case_result.h"

#include <cmath>

#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "telemetry/metrics_file.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

double number(const Json& json, const char* key) {
  return metrics_number(json, key);
}

// Ranks that are started otherwise than asked measure something else.
void require_same(const StudyCase& one, const char* what, int64_t asked, double found) {
  if (static_cast<double>(asked) == found) return;
  throw Error(ErrorKind::kData, strf("%s: %lld %s were asked for and %g measured", one.point().c_str(),
                                     static_cast<long long>(asked), what, found));
}

Json parsed(const StudyCase& one, const std::string& out) {
  const size_t begin = out.find('{');
  VT_REQUIRE(begin != std::string::npos, ErrorKind::kData, "%s: the command printed no result",
             one.point().c_str());
  return parse_json(out.substr(begin), one.point());
}

struct TimeKey {
  const char* key;
  double RankTime::*value;
};
constexpr TimeKey kTimes[] = {{"compute_s", &RankTime::compute_s},
                              {"exposed_s", &RankTime::exposed_s},
                              {"data_wait_s", &RankTime::data_wait_s},
                              {"hidden_s", &RankTime::hidden_s},
                              {"imbalance_s", &RankTime::imbalance_s}};

ordered_json ranks_json(const std::vector<RankTime>& ranks) {
  ordered_json json = ordered_json::object();
  for (const TimeKey& row : kTimes) {
    json[row.key] = ordered_json::array();
    for (const RankTime& rank : ranks) json[row.key].push_back(rank.*row.value);
  }
  return json;
}

// Lists of seconds by rank, divided by the number of updates.
std::vector<RankTime> ranks_from(const Json& json, double updates) {
  std::vector<RankTime> ranks;
  for (const TimeKey& row : kTimes) {
    const auto found = json.find(row.key);
    if (found == json.end() || !found->is_array()) continue;
    ranks.resize(std::max(ranks.size(), found->size()));
    for (size_t r = 0; r < found->size(); ++r)
      if ((*found)[r].is_number()) ranks[r].*row.value = (*found)[r].get<double>() / updates;
  }
  return ranks;
}

ordered_json epoch_json(const EpochResult& e) {
  return {{"epoch", e.epoch},
          {"seconds", finite_or_null(e.seconds)},
          {"train_loss", finite_or_null(e.train_loss)},
          {"eval_loss", finite_or_null(e.eval_loss)},
          {"top1", finite_or_null(e.top1)},
          {"updates", finite_or_null(e.updates)}};
}

ordered_json gpu_json(const GpuReading& g) {
  return {{"id", g.id},
          {"name", g.name},
          {"load", finite_or_null(g.load)},
          {"temperature", finite_or_null(g.temperature)},
          {"used_bytes", finite_or_null(g.used_bytes)},
          {"total_bytes", finite_or_null(g.total_bytes)},
          {"watts", finite_or_null(g.watts)}};
}

// An error in a record names its file and tells the way out.
template <typename Body>
void in_record(const std::string& place, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    throw Error(error.kind(), place + ": " + error.message(),
                "remove the file, and the same command measures that case again");
  }
}

constexpr double kMostSeconds = 1e9, kMostBytes = 1e18, kMostImages = 1e12;

Json member(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) ? json[key] : Json();
}

// Refuses what no measurement gives. Nothing is an answer, too: not every kind of case measures everything.
void check_value(const Json& value, const std::string& key, double most) {
  if (value.is_null()) return;
  if (value.is_number() && value.get<double>() >= 0 && value.get<double>() <= most) return;
  throw Error(ErrorKind::kData,
              strf("%s is %s and no number from 0 to %g", key.c_str(), json_text(value).c_str(), most));
}

void check_lists(const Json& json) {
  for (const TimeKey& row : kTimes)
    for (const Json& value : member(member(json, "rank_times"), row.key))
      check_value(value, strf("rank_times.%s", row.key), kMostSeconds);
  for (const Json& epoch : member(json, "epochs")) {
    check_value(member(epoch, "seconds"), "epochs.seconds", kMostSeconds);
    check_value(member(epoch, "top1"), "epochs.top1", 1);
    check_value(member(epoch, "updates"), "epochs.updates", kMostImages);
    VT_REQUIRE(member(epoch, "epoch").is_number_integer(), ErrorKind::kData, "epochs.epoch is no number");
  }
  for (const Json& gpu : member(json, "gpus")) {
    for (const char* key : {"used_bytes", "total_bytes"})
      check_value(member(gpu, key), strf("gpus.%s", key), kMostBytes);
    VT_REQUIRE(member(gpu, "id").is_number_integer(), ErrorKind::kData, "gpus.id is no number");
  }
}

void check_record(const StudyCase& one, const Json& json) {
  require_same(one, "ranks", one.ranks, number(json, "ranks"));
  require_same(one, "images a rank", one.batch, number(json, "batch"));
  for (const char* key : {"took_s", "update_s", "message_s"})
    check_value(member(json, key), key, kMostSeconds);
  for (const char* key : {"sent_bytes", "memory_bytes"}) check_value(member(json, key), key, kMostBytes);
  check_value(member(json, "images_per_s"), "images_per_s", kMostImages);
  check_lists(json);
}

// A case that is done has times, of every rank, and a speed that is theirs.
void check_done(const CaseResult& r) {
  const StudyCase& one = r.which;
  if (one.kind == CaseKind::kAllReduce) {
    if (!(r.message_s > 0)) throw Error(ErrorKind::kData, "message_s: a message took no time");
    return;
  }
  require_same(one, "ranks", one.ranks, static_cast<double>(r.ranks.size()));
  if (!(r.update_s > 0)) throw Error(ErrorKind::kData, "update_s: an update took no time");
  const double speed = static_cast<double>(one.global_batch()) / r.update_s;
  if (!(std::abs(r.images_per_s / speed - 1) < 0.05))
    throw Error(ErrorKind::kData,
                strf("images_per_s is %g, and %lld images in update_s = %g are %g a second", r.images_per_s,
                     static_cast<long long>(one.global_batch()), r.update_s, speed));
}

}  // namespace

CaseResult from_bench(const StudyCase& one, const std::string& out) {
  const Json json = parsed(one, out);
  CaseResult result{.which = one};
  result.memory_bytes = number(json, "memory_peak");
  result.loss = number(json, "loss");
  if (!json.contains("ranks")) {  // a process that is alone
    require_same(one, "ranks", one.ranks, 1);
    result.update_s = number(json, "ms_median") / 1e3;
    result.images_per_s = number(json, "img_per_s");
    result.ranks = {{.compute_s = result.update_s}};
    result.sent_bytes = 0;
  } else {
    require_same(one, "ranks", one.ranks, number(json, "ranks"));
    const Json& timing = json.at("timing");
    result.update_s = number(json.at("update_s"), "median");
    result.images_per_s = number(json, "images_per_second");
    result.ranks = ranks_from(timing, number(timing, "updates"));
    result.sent_bytes = number(json, "sent_bytes");
  }
  require_same(one, "images", one.global_batch(), number(json, "batch"));
  VT_REQUIRE(result.update_s > 0, ErrorKind::kData, "%s: an update took no time", one.point().c_str());
  return result;
}

CaseResult from_all_reduce(const StudyCase& one, const std::string& out) {
  const Json json = parsed(one, out);
  const char* key = one.transport == "threads" ? "threads" : "mpi";
  const auto found = json.find(key);
  VT_REQUIRE(found != json.end() && found->is_object(), ErrorKind::kData, "%s: no all-reduce over %s came",
             one.point().c_str(), key);
  require_same(one, "ranks", one.ranks, number(*found, "ranks"));
  return {.which = one, .message_s = number(*found, "ms_median") / 1e3};
}

double from_plan(const StudyCase& one, const std::string& out) {
  const Json meshes = member(parsed(one, out), "meshes");
  const double seconds = meshes.is_array() && !meshes.empty() ? number(meshes[0], "update_s") : kUnknown;
  VT_REQUIRE(seconds > 0, ErrorKind::kData, "%s: the plan has no time of an update", one.point().c_str());
  return seconds;
}

ordered_json to_json(const CaseResult& r) {
  const StudyCase& one = r.which;
  ordered_json json = {{"case", one.name()},
                       {"kind", enum_name(one.kind)},
                       {"model", one.model},
                       {"device", one.device},
                       {"transport", one.transport},
                       {"ranks", one.ranks},
                       {"batch", one.batch},
                       {"fraction", one.fraction},
                       {"megabytes", one.megabytes},
                       {"repetition", one.repetition},
                       {"error", r.error},
                       {"time", finite_or_null(r.time)},
                       {"took_s", finite_or_null(r.took_s)},
                       {"update_s", finite_or_null(r.update_s)},
                       {"images_per_s", finite_or_null(r.images_per_s)},
                       {"rank_times", ranks_json(r.ranks)},
                       {"sent_bytes", finite_or_null(r.sent_bytes)},
                       {"memory_bytes", finite_or_null(r.memory_bytes)},
                       {"loss", finite_or_null(r.loss)},
                       {"message_s", finite_or_null(r.message_s)}};
  for (const EpochResult& epoch : r.epochs) json["epochs"].push_back(epoch_json(epoch));
  for (const GpuReading& gpu : r.gpus) json["gpus"].push_back(gpu_json(gpu));
  return json;
}

CaseResult result_from(const StudyCase& one, const Json& json, const std::string& place) {
  const std::string name = metrics_text(json, "case");
  if (name != one.name())
    throw Error(ErrorKind::kData, strf("%s holds the case %s", place.c_str(), quoted(name).c_str()),
                "remove the file, a record of another case, and the study measures this one again");
  in_record(place, [&] { check_record(one, json); });
  CaseResult r{.which = one, .error = metrics_text(json, "error")};
  r.time = number(json, "time");
  r.took_s = number(json, "took_s");
  r.update_s = number(json, "update_s");
  r.images_per_s = number(json, "images_per_s");
  if (json.contains("rank_times")) r.ranks = ranks_from(json["rank_times"], 1);
  r.sent_bytes = number(json, "sent_bytes");
  r.memory_bytes = number(json, "memory_bytes");
  r.loss = number(json, "loss");
  r.message_s = number(json, "message_s");
  if (r.done()) in_record(place, [&] { check_done(r); });
  if (json.contains("epochs"))
    for (const Json& e : json["epochs"])
      r.epochs.push_back({static_cast<int64_t>(number(e, "epoch")), number(e, "seconds"),
                          number(e, "train_loss"), number(e, "eval_loss"), number(e, "top1"),
                          number(e, "updates")});
  if (json.contains("gpus"))
    for (const Json& g : json["gpus"])
      r.gpus.push_back({static_cast<int64_t>(number(g, "id")), metrics_text(g, "name"), number(g, "load"),
                        number(g, "temperature"), number(g, "used_bytes"), number(g, "total_bytes"),
                        number(g, "watts")});
  return r;
}

}  // namespace vitrail
