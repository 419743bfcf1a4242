// The options by which commands name a model and say how to run it, declared once, and what they mean.
// Used by predict, explain, verify, bench, profile and plan.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/engine.h"
#include "api/precision.h"
#include "cli/console.h"
#include "cli/options.h"
#include "plan/devices.h"

namespace vitrail::cli {

// -m, --arch, --image: a model that is a file, a folder or bundled.
std::vector<OptionSpec> model_options();
// The same plus --weights, --classes and model.* settings: an architecture by name will do.
std::vector<OptionSpec> architecture_options();
// --batch, --dtype, --backend, --isa, --parallel, --no-fuse, --check.
std::vector<OptionSpec> engine_options(int default_batch);
OptionSpec isa_option();  // --isa, which the engine's options hold too

std::vector<OptionSpec> operator+(std::vector<OptionSpec> first, const std::vector<OptionSpec>& second);

// "384" or "384x512"; Error(kUsage) otherwise.
std::pair<int64_t, int64_t> parse_image_size(const std::string& text);

OpenOptions read_open_options(const Options& options);
EngineOptions read_engine_options(const Options& options);
// The same on another device than --device names.
EngineOptions read_engine_options(const Options& options, const std::string& device);
// What --batch means for `count` images: obeyed where it is given, even where it is not.
int64_t batch_for(const Options& options, int64_t count);

// Whether --model names a file, a folder or a bundled model rather than an architecture.
bool model_is_there(const std::string& model);

// Opens what model_options() name and says in -v where its facts came from.
std::unique_ptr<OpenedModel> open_chosen(const Options& options, Console& console);

// For architecture_options(): a file when there is one, else an architecture of the zoo with weights by rule.
struct ModelChoice {
  VitConfig config;
  std::unique_ptr<OpenedModel> opened;  // null: weights by rule
  std::string name;

  Engine engine(const EngineOptions& options) const;
};
ModelChoice choose_model(const Options& options, Console& console);

// With --check ref, after runs that found no difference: says on stderr how much was compared.
void say_checked(const Options& options, const Engine& engine, Console& console);
void say_checked(const Options& options, size_t nodes, Console& console);

}  // namespace vitrail::cli
