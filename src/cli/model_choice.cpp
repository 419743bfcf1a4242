#include "cli/model_choice.h"

#include <filesystem>

#include "api/image_stream.h"
#include "api/packed_cache.h"
#include "api/precision.h"
#include "base/error.h"
#include "base/text.h"
#include "base/values.h"
#include "cli/device_choice.h"
#include "cli/environment.h"
#include "cli/train_settings.h"
#include "io/find_model.h"
#include "measure/profile_sweep.h"
#include "models/zoo.h"
#include "plan/largest_batch.h"

namespace vitrail::cli {

std::vector<OptionSpec> operator+(std::vector<OptionSpec> first, const std::vector<OptionSpec>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<OptionSpec> model_options() {
  return {{.name = "model",
           .help = "a folder, a file, or a bundled model's name",
           .metavar = "MODEL",
           .letter = 'm',
           .fallback = "deit_tiny_patch16_224"},
          {.name = "arch", .help = "timm's name, when the file leaves a choice", .metavar = "NAME"},
          {.name = "image", .help = "another input size; positions are resized", .metavar = "N|HxW"}};
}

std::vector<OptionSpec> architecture_options() {
  std::vector<OptionSpec> options = model_options();
  options[0].help = "a folder, a file, a bundled model's name, or an architecture under timm's name";
  options.push_back({.name = "weights",
                     .help = "from the file, or made by a fixed rule (speed is the same)",
                     .metavar = "KIND",
                     .fallback = "auto",
                     .choices = {"auto", "file", "rule"}});
  options.push_back({.name = "classes",
                     .help = "another number of classes (not with a file)",
                     .kind = ValueKind::kInteger,
                     .metavar = "K",
                     .least = 0,
                     .most = 1 << 22});
  return options + model_settings();
}

OptionSpec isa_option() {
  return {.name = "isa",
          .help = "instruction set to use instead of the best here: " + join(isa_names(), ", "),
          .metavar = "NAME"};
}

OptionSpec cache_option() {
  return {.name = "cache",
          .help = "keep the packed weights beside the model for the next start",
          .kind = ValueKind::kFlag};
}

std::vector<std::string> cache_places(const Options& options, const std::string& model_path) {
  if (!options.flag("cache")) return {};
  const auto variable = [](const char* name) {
    const char* value = environment_variable(name);
    return std::string(value ? value : "");
  };
  return packed_cache_places(model_path, variable("XDG_CACHE_HOME"), variable("HOME"));
}

std::vector<OptionSpec> engine_options(int default_batch) {
  return {{.name = "batch",
           .help = "images at a time",
           .kind = ValueKind::kInteger,
           .metavar = "N",
           .letter = 'b',
           .fallback = std::to_string(default_batch),
           .least = 1,
           .most = kLargestBatch},
          {.name = "dtype",
           .help = "what the blocks' GEMMs are computed in, the rest in f32; on a GPU bf16 and f16 hold for "
                   "activations too, and fp8 leaves the rest in bf16",
           .metavar = "TYPE",
           .fallback = "f32",
           .choices = model_types()},
          {.name = "backend",
           .help = "whose kernels run",
           .metavar = "NAME",
           .fallback = "cpu",
           .choices = {"cpu", "ref"}},
          isa_option(),
          {.name = "parallel",
           .help = "what threads share: heads (of attention), rows (of GEMMs), softmax (and other row-wise "
                   "operations); any of them, or none",
           .metavar = "LIST",
           .fallback = "heads,rows,softmax"},
          {.name = "no-fuse", .help = "run every operation by itself", .kind = ValueKind::kFlag},
          {.name = "check",
           .help = "compare each step with the reference backend",
           .metavar = "WITH",
           .choices = {"ref"}}};
}

std::pair<int64_t, int64_t> parse_image_size(const std::string& text) {
  const size_t cross = text.find('x');
  const auto height = parse_integer(text.substr(0, cross));
  const auto width = cross == std::string::npos ? height : parse_integer(text.substr(cross + 1));
  if (!height || !width || *height < 1 || *width < 1)
    throw Error(ErrorKind::kUsage, strf("--image expects N or HxW, not %s", quoted(text).c_str()),
                "--image 384, or --image 224x448 (rows first)");
  return {*height, *width};
}

OpenOptions read_open_options(const Options& options) {
  OpenOptions open{.arch = options.text("arch")};
  if (options.given("image"))
    std::tie(open.image_height, open.image_width) = parse_image_size(options.text("image"));
  return open;
}

namespace {
ModelChoice choose_architecture(const Options& options) {
  ModelChoice choice;
  const std::string& model = options.text("model");
  if (model.find('/') != model.npos) find_model(model, model_places());  // throws what the path lacks
  choice.config = find_architecture(model).config;
  choice.name = choice.config.arch;
  if (options.given("image"))
    std::tie(choice.config.image_height, choice.config.image_width) = parse_image_size(options.text("image"));
  if (options.given("classes")) choice.config.classes = options.integer("classes");
  apply_model_settings(options, choice.config);
  validate(choice.config);
  require_patches_cover(choice.config, find_architecture(model).config);
  return choice;
}
}  // namespace

ModelSource model_source(const Options& options) {
  return options.origin("model") == Origin::kDefault ? ModelSource::kBundled : ModelSource::kAny;
}

int64_t batch_for(const Options& options, int64_t count) {
  const int64_t most = options.integer("batch");
  return options.origin("batch") == Origin::kDefault ? even_batch(count, most) : std::min(most, count);
}

EngineOptions read_engine_options(const Options& options) {
  return read_engine_options(options, options.text("device"));
}

EngineOptions read_engine_options(const Options& options, const std::string& device) {
  EngineOptions engine;
  engine.backend = chosen_backend(options, device);
  engine.threads = static_cast<int>(options.integer("threads"));
  engine.isa = options.text("isa");
  engine.kernels = chosen_kernels(options, device).table;
  if (options.declared("batch")) engine.batch = options.integer("batch");
  engine.ordinal = named_device(device, "--device").ordinal;
  engine.dash = "--";
  set_precision(options.text("dtype"), device, engine, engine.dash);
  engine.fuse = !options.flag("no-fuse");
  engine.check_reference = options.given("check");
  if (engine.check_reference && is_reference(engine.backend))
    throw Error(ErrorKind::kUsage, "--check ref with --backend ref would compare the reference with itself",
                "leave out --backend ref");
  const ParallelKinds kinds = parse_parallel(options.text("parallel"), ',', "--parallel");
  engine.parallel_heads = kinds.heads;
  engine.parallel_rows = kinds.rows;
  engine.parallel_softmax = kinds.softmax;
  return engine;
}

std::unique_ptr<OpenedModel> open_chosen(const Options& options, Console& console) {
  const std::string& given = options.text("model");
  const ModelSource source = model_source(options);
  const std::string path = find_model(given, model_places(), source);
  if (source == ModelSource::kAny && is_run_folder(given)) console.say(given + " is a run: taking " + path);
  std::unique_ptr<OpenedModel> model = open_model(path, read_open_options(options));
  for (const std::string& note : model->card().notes) console.detail(note);
  return model;
}

Engine ModelChoice::engine(const EngineOptions& options) const {
  return opened ? Engine(*opened, options) : Engine(config, options);
}

ModelChoice choose_model(const Options& options, Console& console) {
  const std::string weights = options.declared("weights") ? options.text("weights") : "file";
  const bool file =
      weights == "file" ||
      (weights == "auto" && model_is_there(options.text("model"), model_places(), model_source(options)));
  if (!file) return choose_architecture(options);
  if (options.given_beyond("classes", Origin::kDefault) || has_model_settings(options))
    throw Error(
        ErrorKind::kUsage,
        strf("%s is a file: its classes and dimensions are what they are", options.text("model").c_str()),
        "--weights rule takes the architecture of that name without its weights");
  ModelChoice choice;
  choice.opened = open_chosen(options, console);
  choice.config = choice.opened->card().config;
  choice.name = choice.config.arch.empty() ? options.text("model") : choice.config.arch;
  return choice;
}

void say_checked(const Options& options, size_t nodes, Console& console) {
  if (options.given("check")) console.say(strf("checked: %zu nodes agree with the reference backend", nodes));
}

}  // namespace vitrail::cli
