// DeepSpeed's schedules that begin with a warm-up: what their parameters are here.
#include <algorithm>

#include "base/text.h"
#include "train/deepspeed/keys.h"

namespace vitrail::deepspeed {

namespace {

const std::string kSchedulerParams = "scheduler.params";

struct SchedulerRow {
  std::string_view type;
  const char* kind;
  bool total;   // it ends, so it needs total_num_steps
  bool ratios;  // its limits are shares of the optimizer's rate
  std::vector<std::string_view> params;
};

const std::vector<SchedulerRow>& schedulers() {
  static const std::vector<SchedulerRow> rows = {
      {"WarmupLR",
       "warmup",
       false,
       false,
       {"warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "warmup_type", "last_batch_iteration"}},
      {"WarmupDecayLR",
       "warmup_decay",
       true,
       false,
       {"total_num_steps", "warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "warmup_type",
        "last_batch_iteration"}},
      {"WarmupCosineLR",
       "warmup_cosine",
       true,
       true,
       {"total_num_steps", "warmup_min_ratio", "cos_min_ratio", "warmup_num_steps", "warmup_type",
        "last_batch_iteration"}}};
  return rows;
}

void sort_params(Reader& reader, const SchedulerRow& row, const Json& params) {
  for (const auto& [name, value] : params.items()) {
    const std::string path = kSchedulerParams + "." + name_text(name);
    if (std::find(row.params.begin(), row.params.end(), name) == row.params.end())
      reader.refuse(path, std::string(row.type) + " has no such parameter" + nearest_key(name, row.params));
    else if (name == "last_batch_iteration" && value != -1)
      reader.refuse(path, "a schedule starts with the run (-1); --resume goes on where it was");
  }
}

// The rate that is warmed up to: the schedule's own, which replaces the optimizer's.
void read_peak(Reader& reader, const SchedulerRow& row) {
  const std::string path = kSchedulerParams + ".warmup_max_lr";
  const Json rate = reader.value_of("optim.lr");
  if (reader.is_auto(path))
    return reader.note(path, path + " is \"auto\": the optimizer's learning rate, " + rate.dump());
  const double usual = 1e-3;  // of WarmupDecayLR, and once of WarmupLR, whose default is now the optimizer's
  const auto given = reader.number(path, "", {1e-30, 1e30});
  if (!given && !row.total && rate != usual)
    return reader.refuse(path,
                         "it is missing, and DeepSpeed's default was 0.001 and became the optimizer's "
                         "learning rate, " +
                             rate.dump() + ": write which");
  const double peak = given.value_or(usual);
  if (rate != peak && reader.find("optimizer.params.lr"))
    reader.note(path, strf("%s %g replaces the optimizer's learning rate of %s, as in DeepSpeed",
                           path.c_str(), peak, rate.dump().c_str()));
  reader.set("optim.lr", peak, path);
}

void read_limits(Reader& reader, const SchedulerRow& row) {
  if (row.ratios) {
    const auto rate = reader.value_of("optim.lr").get<double>();
    const auto share = [&](const char* name, const char* key, double otherwise) {
      const std::string path = kSchedulerParams + "." + name;
      reader.set(key, rate * reader.number(path, "", {0, 1}).value_or(otherwise), path);
    };
    share("warmup_min_ratio", "schedule.warmup_lr", 0);
    return share("cos_min_ratio", "schedule.min_lr", 1e-4);
  }
  const std::string path = kSchedulerParams + ".warmup_min_lr";
  const double least = reader.is_auto(path) ? 0 : reader.number(path, "", {0, 1e30}).value_or(0);
  if (reader.is_auto(path)) reader.note(path, path + " is \"auto\": 0");
  reader.set("schedule.warmup_lr", least, path);
  reader.set("schedule.min_lr", least, path);  // where WarmupDecayLR ends
}

void read_warmup(Reader& reader) {
  const std::string steps = kSchedulerParams + ".warmup_num_steps", type = kSchedulerParams + ".warmup_type";
  if (const auto count = reader.number(steps, "schedule.warmup", {0, 1e15}); count || !reader.find(steps)) {
    if (count && *count != static_cast<double>(static_cast<int64_t>(*count)) && !reader.is_auto(steps))
      reader.wrong(steps, "a whole number");
    reader.set("schedule.warmup", count.value_or(1000), steps);
  }
  const std::string shape = reader.word(type);
  if (!shape.empty() && shape != "log" && shape != "linear")
    reader.note(type, type + " is " + name_text(shape) + ", which DeepSpeed takes for log");
  reader.set("schedule.warmup_shape", shape == "linear" ? "linear" : "log", type);
}

void read_length(Reader& reader, const SchedulerRow& row) {
  const std::string path = kSchedulerParams + ".total_num_steps";
  if (!row.total) return reader.set("schedule.length", 0, path);
  if (!reader.find(path)) reader.wrong(path, "the number of updates of " + std::string(row.type));
  if (reader.is_auto(path)) {
    reader.note(path, path + " is \"auto\": the run's own number of updates");
    return reader.set("schedule.length", 0, path);
  }
  reader.set("schedule.length", *reader.integer(path, "", {1, 1e15}), path);
}

}  // namespace

void read_scheduler(Reader& reader) {
  const Json* block = reader.find("scheduler");
  if (!block) return;
  if (!block->is_object()) reader.wrong("scheduler", "an object with type and params");
  const Json* params = reader.find(kSchedulerParams);
  if (params && !params->is_object()) reader.wrong(kSchedulerParams, "an object");
  for (const auto& [name, value] : block->items())
    if (name != "type" && name != "params")
      reader.note("scheduler." + name_text(name), "scheduler." + name_text(name) + " has no effect");
  const std::string type = reader.word("scheduler.type");
  if (type.empty() || type == "auto")
    reader.wrong("scheduler.type", "WarmupLR, WarmupDecayLR or WarmupCosineLR");
  const auto row = std::find_if(schedulers().begin(), schedulers().end(),
                                [&](const SchedulerRow& one) { return one.type == type; });
  if (row == schedulers().end())
    return reader.refuse("scheduler.type", "it is " + name_text(type) +
                                               "; there are WarmupLR, WarmupDecayLR and WarmupCosineLR");
  if (params) sort_params(reader, *row, *params);
  reader.set("schedule.kind", row->kind, "scheduler.type");
  if (!row->ratios) read_peak(reader, *row);
  read_limits(reader, *row);
  read_warmup(reader);
  read_length(reader, *row);
}

}  // namespace vitrail::deepspeed
