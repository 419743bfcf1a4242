#include "train/train_config.h"

#include "io/config_json.h"

namespace vitrail {

namespace {

void resolve_batch(RunConfig& c) {
  const auto bad = [&](const char* rule) {
    throw Error(ErrorKind::kConfig,
                strf("train.batch %lld, train.micro_batch %lld, train.accumulation %lld: %s",
                     static_cast<long long>(c.batch), static_cast<long long>(c.micro_batch),
                     static_cast<long long>(c.accumulation), rule),
                "batch = micro_batch x accumulation; give two of them, or batch alone");
  };
  if (c.batch < 0 || c.micro_batch < 0 || c.accumulation < 0) bad("none may be negative");
  if (c.batch == 0 && c.micro_batch == 0) c.batch = 64;
  if (c.accumulation == 0) c.accumulation = c.batch > 0 && c.micro_batch > 0 ? c.batch / c.micro_batch : 1;
  if (c.micro_batch == 0) c.micro_batch = c.batch / std::max<int64_t>(c.accumulation, 1);
  if (c.batch == 0) c.batch = c.micro_batch * c.accumulation;
  if (c.micro_batch < 1 || c.accumulation < 1 || c.micro_batch * c.accumulation != c.batch)
    bad("the product does not match");
}

void require(bool holds, const char* key, double value, const char* rule) {
  VT_REQUIRE(holds, ErrorKind::kConfig, "%s is %g; %s", key, value, rule);
}

void validate(const RunConfig& c) {
  require(c.epochs >= 1 || c.steps >= 1, "train.epochs", static_cast<double>(c.epochs),
          "expected at least 1, or train.steps");
  require(c.steps >= 0, "train.steps", static_cast<double>(c.steps), "expected 0 or more");
  require(c.smoothing >= 0 && c.smoothing < 1, "train.smoothing", c.smoothing, "expected 0 to below 1");
  require(c.dropout >= 0 && c.dropout < 1, "train.dropout", c.dropout, "expected 0 to below 1");
  require(c.drop_path >= 0 && c.drop_path < 1, "train.drop_path", c.drop_path, "expected 0 to below 1");
  require(c.log_every >= 1, "train.log_every", static_cast<double>(c.log_every), "expected at least 1");
  require(c.recompute_every >= 1, "train.recompute_every", static_cast<double>(c.recompute_every),
          "expected at least 1");
  require(c.save_every > 0 || c.save_minutes > 0, "train.save_every", static_cast<double>(c.save_every),
          "expected a number of updates or train.save_minutes above 0: a run without checkpoints loses all");
  require(c.skip_limit >= 1, "train.skip_limit", static_cast<double>(c.skip_limit), "expected at least 1");
  VT_REQUIRE(c.loss != LossKind::kDivergence, ErrorKind::kConfig,
             "train.loss is divergence; expected softmax, bce_sum or bce_mean");
}

void validate(const DistillConfig& c) {
  if (c.kind == DistillKind::kNone) return;
  VT_REQUIRE(!c.teacher.empty(), ErrorKind::kConfig, "distill.kind is %s but distill.teacher names no model",
             enum_name(c.kind));
  require(c.alpha >= 0 && c.alpha <= 1, "distill.alpha", c.alpha, "expected 0 to 1");
  require(c.temperature > 0, "distill.temperature", c.temperature, "expected more than 0");
}

template <typename Section>
Json section_json(const Section& section) {
  Json json = Json::object();
  Section::fields(section,
                  [&](const char* name, const auto& field, const char*) { json[name] = json_value(field); });
  return json;
}

// Where a run is told to look, how it reports and when it ends: nothing of the result.
constexpr const char* kNoResult[] = {"train.log_every",
                                     "train.save_every",
                                     "train.save_minutes",
                                     "train.max_minutes",
                                     "train.tensorboard",
                                     "train.eval_every",
                                     "train.eval_batch",
                                     "train.patience",
                                     "train.save_adapters",
                                     "train.recompute",
                                     "train.recompute_every",
                                     "loader.workers",
                                     "loader.prefetch",
                                     "data.train",
                                     "data.val"};

}  // namespace

TrainConfig resolved(TrainConfig config) {
  resolve_batch(config.train);
  if (config.train.eval_batch == 0) config.train.eval_batch = config.train.micro_batch;
  validate(config.train);
  validate(config.data);
  validate(config.augment);
  validate(config.loader);
  config.optim = resolved(config.optim);
  validate(config.params);
  validate(config.schedule);
  validate(config.loss_scale);
  validate(config.distill);
  validate(config.lora);
  validate(config.checkpoint);
  return config;
}

Json to_json(const TrainConfig& config) {
  Json json = Json::object();
  Json model = Json::object();
  model["init"] = config.model.init;
  model["arch"] = config.model.arch;
  model["style"] = enum_name(config.model.style);
  visit_fields(config.model.fields, [&](const char* name, const auto& field, const char*) {
    if (config.model.given.contains(name)) model[name] = json_value(field);
  });
  json["model"] = model;
  Json preprocess = Json::object();
  visit_preprocess_fields(config.model.preprocess, [&](const char* name, const auto& field, const char*) {
    if (config.model.preprocess_given.contains(name)) preprocess[name] = json_value(field);
  });
  json["preprocess"] = preprocess;
  TrainConfig::sections(config,
                        [&](const char* name, const auto& section) { json[name] = section_json(section); });
  return json;
}

Json result_identity(const TrainConfig& config) {
  Json json = to_json(config);
  for (const std::string key : kNoResult) {
    const size_t dot = key.find('.');
    json[key.substr(0, dot)].erase(key.substr(dot + 1));
  }
  json.erase("checkpoint");
  json["model"].erase("init");
  return json;
}

}  // namespace vitrail
