#include "cli/train_settings.h"

#include "cli/environment.h"
#include "cli/field_settings.h"
#include "cli/model_settings.h"
#include "io/find_model.h"

namespace vitrail::cli {

std::vector<OptionSpec> train_settings() {
  std::vector<OptionSpec> specs = {
      {.name = "model.init", .help = "model to start from; empty: from scratch", .metavar = "MODEL"},
      {.name = "model.arch", .help = "timm's name of an architecture", .metavar = "NAME"},
      field_spec<InitStyle>("model.style", "how fresh weights are drawn: timm or jax"),
      {.name = "model.image",
       .help = "rows and columns of the pictures the model takes",
       .kind = ValueKind::kInteger,
       .metavar = "N"}};
  for (OptionSpec& spec : model_settings()) specs.push_back(std::move(spec));
  const TrainConfig config;
  visit_preprocess_fields(config.model.preprocess, DeclareFields{"preprocess", specs, false});
  TrainConfig::sections(config, [&](const char* name, const auto& section) {
    std::decay_t<decltype(section)>::fields(section, DeclareFields{name, specs});
  });
  return specs;
}

namespace {

// A side that differs from model.image, unless that was given to replace it: nobody knows which was meant.
void require_one_size(const Options& options) {
  for (const char* side : {"model.image_height", "model.image_width"}) {
    if (!options.given(side) || options.integer(side) == options.integer("model.image")) continue;
    if (options.origin("model.image") > options.origin(side)) continue;
    throw Error(
        ErrorKind::kConfig,
        strf("model.image is %s and %s is %s: which of them?", options.text("model.image").c_str(), side,
             options.text(side).c_str()),
        "model.image for images as high as wide; else model.image_height and model.image_width alone");
  }
}

}  // namespace

TrainConfig read_train_config(const Options& options) {
  TrainConfig config;
  ModelSettings& model = config.model;
  if (options.given("model.init") && !options.text("model.init").empty())
    model.init = find_model(options.text("model.init"), model_places());
  model.arch = options.text("model.arch");
  if (options.given("model.style")) assign_field(options, "model.style", model.style);
  visit_fields(model.fields, AssignFields{"model", options, &model.given});
  if (options.given("model.image")) {
    require_one_size(options);
    model.fields.image_height = model.fields.image_width = options.integer("model.image");
    model.given.insert({"image_height", "image_width"});
  }
  visit_preprocess_fields(model.preprocess, AssignFields{"preprocess", options, &model.preprocess_given});
  TrainConfig::sections(config, [&](const char* name, auto& section) {
    std::decay_t<decltype(section)>::fields(section, AssignFields{name, options});
  });
  if (!config.distill.teacher.empty())
    config.distill.teacher = find_model(config.distill.teacher, model_places());
  if (options.origin("seed") > Origin::kConfig) config.train.seed = options.integer("seed");
  if (options.origin("dtype") > Origin::kConfig) assign_field(options, "dtype", config.train.dtype);
  return config;
}

}  // namespace vitrail::cli
