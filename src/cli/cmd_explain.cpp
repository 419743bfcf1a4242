#include "api/explain_files.h"
#include "base/error.h"
#include "base/stop.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/images.h"
#include "cli/model_choice.h"
#include "cli/progress.h"
#include "data/image_list.h"
#include "io/checkpoint/durable.h"

namespace vitrail::cli {

namespace {

FileExplainer chosen_explainer(const Options& options, Console& console) {
  const std::unique_ptr<OpenedModel> model = open_chosen(options, console);
  const std::string& method = options.text("method");
  const AttentionRequest request = attention_request(
      method, options.given("layer") ? options.integer("layer") : -1, model->card().config, "--layer");
  VT_REQUIRE(request.one_block() || !options.given("layer"), ErrorKind::kUsage,
             "--method rollout goes through all blocks: it takes no --layer");
  return {*model, read_engine_options(options), request, method, options.flag("exif")};
}

void run_explain(const Options& options, Console& console) {
  const std::vector<std::string> paths = list_images(options.positionals());
  require_no_file(options.text("out"));
  std::vector<std::string> notes;
  const std::vector<std::string> folders = output_folders(paths, options.text("out"), notes);
  for (const std::string& note : notes) console.say(note);
  FileExplainer explainer = chosen_explainer(options, console);
  console.detail("running on " + device_text(explainer.plan()));
  FailedImages failed(console, paths.size());
  const SignalGuard stop;
  Progress progress(console, "explain", "images", std::ssize(paths));
  size_t not_turned = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    stop.check(i, paths.size());
    std::string note;
    try {
      const ExplainedFile explained = explainer.explain(paths[i], folders[i], note);
      console.print(console.bold(shown(paths[i])) + "\n" + explained.text);
      console.print_json(explained.json);
    } catch (const Error& error) {
      failed.add(paths[i], error);
    }
    not_turned += !note.empty();
    if (!note.empty()) console.detail(note);
    console.flush();
    progress.advance(1);
  }
  progress.finish();
  say_not_turned(not_turned, console);
  failed.throw_if_any();
  say_checked(options, explainer.plan().node_count(), console);
}
}  // namespace

Command explain_command() {
  std::vector<OptionSpec> engine = engine_options(1);
  std::erase_if(engine, [](const OptionSpec& spec) { return spec.name == "batch"; });
  const std::vector<OptionSpec> own = {
      {.name = "out",
       .help = "folder for the overlays; several images get one each below it",
       .metavar = "DIR",
       .letter = 'o',
       .fallback = "explain-out"},
      {.name = "method",
       .help = "which maps to draw",
       .metavar = "NAME",
       .fallback = "all",
       .choices = {"all", "heads", "mean", "rollout"}},
      {.name = "layer",
       .help = "block whose heads are shown, from 0; the last one unless given",
       .kind = ValueKind::kInteger,
       .metavar = "N",
       .least = 0},
      exif_option()};
  return {{.name = "explain",
           .summary = "where the model looks: attention per head, their mean, rollout, as overlays",
           .examples = {{"explain cat.jpg --out cat", "a sheet and one PNG a map in the folder cat"},
                        {"explain -m vit_folder cat.jpg --method rollout", "through all layers at once"},
                        {"explain cat.jpg --layer 3 --method heads", "the heads of an early block"},
                        {"explain photos/ --out seen", "every image of a folder, a folder each"}},
           .options = model_options() + own + engine,
           .positionals = {{"IMAGE...", kImagesHelp, 1, SIZE_MAX}},
           .infers = true},
          run_explain};
}

}  // namespace vitrail::cli
