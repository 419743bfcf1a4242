#include "base/stop.h"
#include "cli/commands.h"
#include "cli/field_settings.h"
#include "cli/progress.h"
#include "cli/train_plan.h"
#include "cli/train_settings.h"
#include "io/find_model.h"
#include "launch/hosts.h"
#include "launch/namespace_nodes.h"
#include "measure/study/study_predictor.h"
#include "measure/study/study_report.h"

namespace vitrail::cli {

namespace {
struct ReadStudy {
  const Options& options;
  template <typename T>
  void operator()(const char* name, T& field, const char*) const {
    if (options.given(name)) assign_field(options, name, field);
  }
};

StudyConfig read_study(const Options& options) {
  StudyConfig config;
  StudyConfig::fields(config, ReadStudy{options});
  // Settings of training that are given go to every case.
  for (const OptionSpec& spec : train_settings())
    if (options.origin(spec.name) > Origin::kDefault)
      for (const std::string& text : options.list(spec.name))
        config.settings.push_back(spec.name + "=" + text);
  check_study(config);
  return config;
}

// The nodes of --hosts or --namespaces; the latter are named after the folder, which one study has.
StudyPlaces places_of(const StudyConfig& config, const std::string& folder,
                      std::optional<NamespaceNodes>& nodes) {
  StudyPlaces places{.program = this_program().string()};
  for (const Host& host : hosts_from(config.hosts).all) places.hosts.push_back({host.name, host.slots});
  if (config.namespaces == 0) return places;
  nodes.emplace(folder, config.namespaces, config.rate);
  for (const std::string& name : nodes->names()) places.hosts.push_back({name, 4096});
  places.environment = nodes->environment();
  return places;
}

void run_scale(const Options& options, Console& console) {
  const StudyConfig config = read_study(options);
  const StudyPredictor predictor(config);  // what is named wrongly is refused before anything runs
  const StudyFolder folder(options.text("out"), config);
  const SignalGuard stop;
  std::optional<NamespaceNodes> nodes;
  const StudyPlaces places = places_of(config, folder.path(), nodes);
  Progress progress(console, "scale", "cases", std::ssize(list_cases(config)));
  const StudyHooks hooks{.run =
                             [](auto& words, auto& environment, auto& go_on) {
                               const auto [code, out, err] = run_program(words, environment, go_on);
                               return StudyHooks::End{code, out, err};
                             },
                         .progress =
                             [&](const StudyProgress& now) {
                               progress.advance(now.more, now.last ? now.last->which.name() : "");
                               if (now.last && !now.last->done())
                                 console.say(now.last->which.name() + " failed: " + now.last->error);
                             },
                         .stop = [&] { return stop.wanted(); }};
  StudyPrediction prediction = predictor.predict(places, hooks, folder.cores());
  for (const std::string& note : prediction.notes) console.say(note);
  const Study study(config, folder.header(), folder.cores(),
                    run_study(config, folder, places, hooks, options.flag("retry")), std::move(prediction));
  progress.finish();
  write_study(study, folder.path());
  console.print_json(to_json(study));
  console.print(to_text(study));
  console.say("written to " + folder.file("report.html"));
  require_no_failure(study);
}
}  // namespace

Command scale_command() {
  CommandSpec spec{
      .name = "scale",
      .summary = "a scaling study: strong and weak, over ranks, batches, models and transports",
      .examples =
          {{"scale -m vit_tiny_patch16_224 --image 64 --ranks 1,2,4 --batches 16,32 --out runs/study",
            "tables, CSV, figures and a report; the same command goes on where a killed one was"},
           {"scale --config configs/studies/strong.json", "a study kept in a file"},
           {"scale -m vit_tiny_patch16_224 --ranks 1,2,4 --weak --cluster ethernet-1g --target desk.json",
            "what plan --cluster predicts as dashed lines beside what is measured"},
           {"scale --kind train --recipe configs/demo-fashion.json --batches 32,128 --epochs 2",
            "short training runs: accuracy and loss as well"}},
      .options = {{.name = "out",
                   .help = "the study's folder",
                   .metavar = "DIR",
                   .letter = 'o',
                   .fallback = "runs/study"},
                  {.name = "retry", .help = "run cases again that failed before", .kind = ValueKind::kFlag}}};
  for (const FieldSpec& field : study_fields()) {
    OptionSpec option = option_of(field);
    if (field.kind == FieldKind::kBool) {
      option.kind = ValueKind::kFlag;
      option.metavar = "";
      option.choices = {};
    }
    if (field.key == "models") option.letter = 'm';
    if (field.key == "device") option.fallback = field.usual;
    spec.options.push_back(option);
  }
  add_train_settings(spec);
  return {spec, run_scale};
}

}  // namespace vitrail::cli
