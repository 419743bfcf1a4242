#include "train/train_config.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/text.h"
#include "io/config_json.h"
#include "train/balance.h"
#include "train/model_setup.h"

namespace vitrail {

namespace {

// The images of a micro-batch are cut among dp ranks, evenly where they divide; micro_batch is the largest
// part.
void resolve_batch(RunConfig& c, int64_t dp, int64_t shared) {
  const auto bad = [&](const char* rule) {
    const std::string ranks = dp > 1 ? strf(", mesh.dp %lld", static_cast<long long>(dp)) : "";
    throw Error(ErrorKind::kConfig,
                strf("train.batch %lld, train.micro_batch %lld, train.accumulation %lld%s: %s",
                     static_cast<long long>(c.batch), static_cast<long long>(c.micro_batch),
                     static_cast<long long>(c.accumulation), ranks.c_str(), rule),
                dp > 1 ? "batch = micro_batch x accumulation x mesh.dp; give two of them, or batch alone"
                       : "batch = micro_batch x accumulation; give two of them, or batch alone");
  };
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  if (c.batch < 0 || c.micro_batch < 0 || c.accumulation < 0) bad("none may be negative");
  if (std::max({c.batch, c.micro_batch, c.accumulation}) > kMost) bad("none may be over 2147483647");
  if (shared > 0 && c.micro_batch == 0 && c.accumulation == 0)  // shares by hand are of a micro-batch
    c.accumulation = std::max<int64_t>(1, c.batch % shared == 0 ? c.batch / shared : 1);
  if (c.batch == 0 && c.micro_batch == 0) c.batch = shared > 0 ? shared * c.accumulation : 64;
  if (c.accumulation == 0)
    c.accumulation = c.batch > 0 && c.micro_batch > 0 ? c.batch / (c.micro_batch * dp) : 1;
  const int64_t largest = ceil_div(c.batch / std::max<int64_t>(c.accumulation, 1), dp);
  const bool given = c.micro_batch > 0 && c.micro_batch != largest;
  if (!given) {
    if (c.accumulation > 0 && c.batch % c.accumulation != 0) bad("the product does not match");
    c.micro_batch = largest;
  }
  const double product = static_cast<double>(c.micro_batch) * static_cast<double>(c.accumulation * dp);
  if (product > static_cast<double>(kMost)) bad("the product may not be over 2147483647");
  if (c.batch == 0) c.batch = static_cast<int64_t>(product);
  if (c.micro_batch < 1 || c.accumulation < 1 || (given && product != static_cast<double>(c.batch)))
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
  const std::pair<const char*, double> kNotNegative[] = {
      {"train.patience", static_cast<double>(c.patience)},
      {"train.eval_every", static_cast<double>(c.eval_every)},
      {"train.eval_batch", static_cast<double>(c.eval_batch)},
      {"train.max_minutes", c.max_minutes},
      {"train.rollbacks", static_cast<double>(c.rollbacks)},
      {"train.save_every", static_cast<double>(c.save_every)},
      {"train.save_minutes", c.save_minutes}};
  for (const auto& [key, value] : kNotNegative) require(value >= 0, key, value, "expected 0 or more");
  require(c.skip_limit >= 1, "train.skip_limit", static_cast<double>(c.skip_limit), "expected at least 1");
}

void validate(const DistillConfig& c) {
  if (c.kind == DistillKind::kNone) return;
  if (c.teacher.empty())
    throw Error(ErrorKind::kConfig,
                strf("distill.kind is %s but distill.teacher names no model", enum_name(c.kind)),
                "--set distill.teacher=MODEL, a model of the same classes to learn from");
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

struct ChangeRow {
  std::string_view key;  // one ending in a dot stands for a whole section
  Change change;
};
// Changes on resume: paths, reporting and limits are free; settings that move the schedule or handle failures
// are reported; any other change makes it another run and is refused.
constexpr ChangeRow kChanges[] = {
    {"train.log_every", Change::kFree},
    {"train.save_every", Change::kFree},
    {"train.save_minutes", Change::kFree},
    {"train.max_minutes", Change::kFree},
    {"train.tensorboard", Change::kFree},
    {"train.breakdown", Change::kFree},
    {"train.eval_every", Change::kFree},
    {"train.eval_batch", Change::kFree},
    {"train.patience", Change::kFree},
    {"train.save_adapters", Change::kFree},
    {"train.recompute", Change::kFree},
    {"train.recompute_every", Change::kFree},
    {"loader.workers", Change::kFree},
    {"loader.prefetch", Change::kFree},
    {"loader.on_device", Change::kFree},
    {"data.train", Change::kFree},
    {"data.val", Change::kFree},
    {"model.init", Change::kFree},
    {"distill.teacher", Change::kTold},
    {"checkpoint.", Change::kFree},
    {"mesh.", Change::kFree},
    {"train.micro_batch", Change::kTold},
    {"train.accumulation", Change::kTold},
    {"train.epochs", Change::kTold},
    {"train.steps", Change::kTold},
    {"schedule.", Change::kTold},
    {"optim.lr", Change::kTold},
    {"train.skip_limit", Change::kTold},
    {"train.rollbacks", Change::kTold},
    {"loader.on_error", Change::kTold},
    {"loader.max_bad_fraction", Change::kTold},
};

}  // namespace

LossKind loss_kind(TrainLoss loss) {
  constexpr LossKind kKinds[] = {LossKind::kSoftmax, LossKind::kSigmoidSum, LossKind::kSigmoidMean};
  return kKinds[static_cast<size_t>(loss)];
}

Change change_of(std::string_view key) {
  for (const ChangeRow& row : kChanges)
    if (row.key == key || (row.key.ends_with('.') && key.starts_with(row.key))) return row.change;
  return Change::kRefused;
}

// config.json holds every setting, and JSON holds UTF-8 alone.
void require_utf8(const TrainConfig& config) {
  const Json settings = to_json(config).flatten();
  for (const auto& [key, value] : settings.items()) {
    if (!value.is_string() || is_valid_utf8(value.get_ref<const std::string&>())) continue;
    std::string name = key.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    throw Error(ErrorKind::kConfig,
                strf("%s is %s, which is not UTF-8 and could not be kept in config.json", name.c_str(),
                     quoted(value.get_ref<const std::string&>()).c_str()),
                "rename that folder or file, or give a link to it (ln -s) whose name is UTF-8");
  }
}

MeshConfig resolved_mesh(const TrainConfig& config, int world) {
  return resolved(config.mesh, world, [&] { return heads_of(config.model); });
}

TrainConfig resolved(TrainConfig config, int world) {
  config.mesh = resolved_mesh(config, world);
  const Balance balance = parse_balance(config.mesh.balance);
  config.mesh.balance = balance.texts();
  resolve_batch(config.train, config.mesh.dp,
                std::accumulate(balance.shares.begin(), balance.shares.end(), int64_t{0}));
  if (config.train.eval_batch == 0) config.train.eval_batch = config.train.micro_batch;
  validate(config.train);
  validate(config.data);
  validate(config.augment);
  if (!balance.shares.empty())
    require_shares(balance.shares, config.train.batch / config.train.accumulation, config.mesh.dp,
                   config.augment.mixes() ? config.augment.mix_group : 1);
  validate(config.loader);
  config.optim = resolved(config.optim);
  validate(config.params);
  validate(config.schedule);
  validate(config.loss_scale);
  validate(config.distill);
  validate(config.lora);
  VT_REQUIRE(config.lora.rank == 0 || !config.params.linear_probe, ErrorKind::kConfig,
             "lora.rank is %lld and params.linear_probe is true: a linear probe trains the head alone",
             static_cast<long long>(config.lora.rank));
  validate(config.checkpoint);
  require_utf8(config);
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
  for (auto& [section, fields] : json.items())
    for (auto field = fields.begin(); field != fields.end();)
      field =
          change_of(section + "." + field.key()) == Change::kFree ? fields.erase(field) : std::next(field);
  return json;
}

}  // namespace vitrail
