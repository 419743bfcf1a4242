#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/model_card.h"
#include "cli/model_choice.h"
#include "cli/verify_manifest.h"
#include "data/decode.h"
#include "data/preprocess.h"
#include "io/find_model.h"
#include "models/rule_weights.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;

// Everything of a model that is compared; the model itself is gone by then.
struct Trace {
  ModelCard card;
  std::vector<std::pair<std::string, std::vector<float>>> layers;  // in the order of computation
};

std::vector<float> picture_of(const Options& options, const ModelCard& card) {
  const VitConfig& c = card.config;
  std::vector<float> input(static_cast<size_t>(c.channels * c.image_height * c.image_width));
  if (options.given("picture"))
    preprocess(load_image(options.text("picture")), card.preprocess, input);
  else
    fill_by_rule({"input", {{'B', 1}, {'C', c.channels}, {'Y', c.image_height}, {'X', c.image_width}}},
                 input);
  return input;
}

Trace trace(const Options& options, size_t which, const std::vector<float>* input, Console& console) {
  const std::unique_ptr<OpenedModel> model =
      open_model(find_model(options.positional(which), model_places()), read_open_options(options));
  EngineOptions how = read_engine_options(options);
  how.batch = 1;
  how.layers = how.features = true;
  Engine engine(*model, how);
  Trace result{model->card(), {}};
  result.layers.emplace_back("pictures", input ? *input : picture_of(options, model->card()));
  engine.run(result.layers[0].second, 1);
  std::vector<std::string> names = {"embed"};
  for (int64_t i = 0; i < model->card().config.depth; ++i) names.push_back("blocks." + std::to_string(i));
  for (const char* name : {"tokens", "features", "logits"}) names.emplace_back(name);
  for (const std::string& name : names)
    if (engine.has_output(name)) result.layers.emplace_back(name, engine.output(name));
  say_checked(options, engine, console);
  return result;
}

struct LayerDifference {
  std::string name;
  double max = 0, relative = 0;  // relative to the largest magnitude of A
};

// NaN on one side only is an infinite difference.
LayerDifference difference_of(const std::string& name, const std::vector<float>& a,
                              const std::vector<float>& b) {
  VT_REQUIRE(a.size() == b.size(), ErrorKind::kCheck, "%s has %zu numbers in A and %zu in B", name.c_str(),
             a.size(), b.size());
  LayerDifference result{name, 0, 0};
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    const double apart = same ? 0 : std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    result.max = std::max(result.max, std::isnan(apart) ? INFINITY : apart);
    if (std::isfinite(a[i])) largest = std::max(largest, std::fabs(static_cast<double>(a[i])));
  }
  result.relative = result.max == 0 ? 0 : result.max / std::max(largest, 1e-30);
  return result;
}

void refuse_other_shapes(const VitConfig& a, const VitConfig& b) {
  const auto shapes = [](const VitConfig& c) {
    std::vector<std::string> names;
    for (const ParamSpec& spec : vit_params(c)) names.push_back(spec.name + " " + to_string(spec.shape));
    return names;
  };
  const std::vector<std::string> of_a = shapes(a), of_b = shapes(b);
  for (size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i)
    VT_REQUIRE(of_a[i] == of_b[i], ErrorKind::kCheck,
               "the models have different parameters: A has %s, B has %s", of_a[i].c_str(), of_b[i].c_str());
  VT_REQUIRE(of_a.size() == of_b.size(), ErrorKind::kCheck, "A has %zu parameters, B has %zu", of_a.size(),
             of_b.size());
}

std::string layer_table(const std::vector<LayerDifference>& layers, double tolerance) {
  Table table({{"layer"}, {"largest difference", Align::kRight}, {"relative", Align::kRight}, {""}});
  for (const LayerDifference& one : layers)
    table.row({one.name, format_significant(one.max), format_significant(one.relative),
               one.relative > tolerance ? "differs" : ""});
  return table.text();
}

void run_verify(const Options& options, Console& console) {
  if (options.flag("manifest")) {
    if (options.positionals().size() > 1)
      throw Error(ErrorKind::kUsage, "verify --manifest takes one folder", "leave out B or --manifest");
    return verify_manifest(options, console);
  }
  if (options.positionals().size() < 2 || options.flag("update"))
    throw Error(
        ErrorKind::kUsage,
        options.flag("update") ? "--update goes with --manifest" : "verify compares two models: B is missing",
        "verify A B, or verify --manifest FOLDER");
  const double tolerance = options.number("tolerance");
  const Trace a = trace(options, 0, nullptr, console);
  const Trace b = trace(options, 1, options.flag("same-input") ? &a.layers[0].second : nullptr, console);
  refuse_other_shapes(a.card.config, b.card.config);
  const std::vector<std::string> facts = card_differences(a.card, b.card);
  std::vector<LayerDifference> layers;
  std::string first;
  for (size_t i = 0; i < std::min(a.layers.size(), b.layers.size()); ++i) {
    layers.push_back(difference_of(a.layers[i].first, a.layers[i].second, b.layers[i].second));
    if (first.empty() && layers.back().relative > tolerance) first = layers.back().name;
  }
  const std::string verdict = first.empty() ? "A and B compute the same"
                                            : strf("A and B differ from %s on, by more than %g of its values",
                                                   first.c_str(), tolerance);
  ordered_json json = {{"a", a.card.path},
                       {"b", b.card.path},
                       {"same", first.empty()},
                       {"verdict", verdict},
                       {"tolerance", tolerance}};
  json["first"] = first.empty() ? ordered_json(nullptr) : ordered_json(first);
  json["card"] = facts;
  for (const LayerDifference& one : layers)
    json["layers"].push_back({{"name", one.name}, {"max_difference", one.max}, {"relative", one.relative}});
  console.print_json(json);
  for (const std::string& fact : facts) console.print("A and B differ in " + fact + "\n");
  console.print(layer_table(layers, tolerance) + verdict + "\n");
  if (!first.empty())
    throw Error(ErrorKind::kCheck, verdict,
                first == "pictures" ? "--same-input leaves the preprocessing of B out of it" : "");
}
}  // namespace

Command verify_command() {
  std::vector<OptionSpec> shared = model_options() + engine_options(1);
  std::erase_if(shared, [](const OptionSpec& spec) { return spec.name == "batch" || spec.name == "model"; });
  const std::vector<OptionSpec> own = {
      {.name = "picture",
       .help = "a picture to run; a fixed pattern unless given",
       .metavar = "FILE",
       .letter = 'i'},
      {.name = "manifest",
       .help = "hold the files of one model folder or checkpoint against its manifest.json instead",
       .kind = ValueKind::kFlag},
      {.name = "update",
       .help = "with --manifest: accept the files as they are (edited by hand), and write manifest.json anew",
       .kind = ValueKind::kFlag},
      {.name = "same-input", .help = "B sees the picture as A prepared it", .kind = ValueKind::kFlag},
      {.name = "tolerance",
       .help = "what counts as a difference, relative to a layer's largest value",
       .kind = ValueKind::kNumber,
       .metavar = "X",
       .fallback = "1e-4",
       .least = 0}};
  return {
      {.name = "verify",
       .summary = "runs two models on one picture and names the first layer that differs; checks a manifest",
       .examples = {{"verify vit.npz vit_folder", "a conversion against its source"},
                    {"verify a.safetensors b.safetensors --picture cat.jpg",
                     "on a picture, each with its own preprocessing"},
                    {"verify a b --tolerance 1e-2", "models stored in f16 or bf16"},
                    {"verify --manifest runs/pets", "whether any bit of the files has changed"}},
       .options = own + shared,
       .positionals = {{"A", "a model: folder, file or bundled name", 1, 1},
                       {"B", "the other one; not with --manifest", 0, 1}}},
      run_verify};
}

}  // namespace vitrail::cli
