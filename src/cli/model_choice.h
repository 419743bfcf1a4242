// The options by which commands name a model and say how to run it, declared once, and their meaning.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/engine.h"
#include "api/precision.h"
#include "cli/console.h"
#include "cli/options.h"
#include "io/find_model.h"
#include "plan/devices.h"

namespace vitrail::cli {

// The options -m, --arch and --image, for a model that is a file, a folder or bundled.
std::vector<OptionSpec> model_options();
// The same options plus --weights, --classes and model.* settings, for commands that accept an architecture
// by name.
std::vector<OptionSpec> architecture_options();
// The options --batch, --dtype, --backend, --isa, --parallel, --no-fuse and --check.
std::vector<OptionSpec> engine_options(int default_batch);
OptionSpec isa_option();  // --isa, which is among the engine's options, too

OptionSpec cache_option();  // --cache
// Returns where packed weights are kept from one start to the next; nothing without --cache.
std::vector<std::string> cache_places(const Options& options, const std::string& model_path);

std::vector<OptionSpec> operator+(std::vector<OptionSpec> first, const std::vector<OptionSpec>& second);

// Parses "384" or "384x512"; throws Error(kUsage) for any other text.
std::pair<int64_t, int64_t> parse_image_size(const std::string& text);

OpenOptions read_open_options(const Options& options);
EngineOptions read_engine_options(const Options& options);
// Returns the same for another device than --device names.
EngineOptions read_engine_options(const Options& options, const std::string& device);
// Returns the batch for `count` images: --batch where it is given, otherwise one that makes equal batches.
int64_t batch_for(const Options& options, int64_t count);

// Returns what --model may name: where nobody gave it, a bundled model alone.
ModelSource model_source(const Options& options);

// Opens the model that model_options() name; with -v, prints where its facts came from.
std::unique_ptr<OpenedModel> open_chosen(const Options& options, Console& console);

// A model named by architecture_options(): a file when there is one, else an architecture of the zoo with
// weights by rule; by model_options(): a file.
struct ModelChoice {
  VitConfig config;
  std::unique_ptr<OpenedModel> opened;  // null: weights by rule
  std::string name;

  Engine engine(const EngineOptions& options) const;
};
ModelChoice choose_model(const Options& options, Console& console);

// With --check ref, prints on stderr how much was compared, after runs that found no difference.
void say_checked(const Options& options, size_t nodes, Console& console);

}  // namespace vitrail::cli
