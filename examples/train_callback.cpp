// Trains from a config, prints the loss on the way and stops early when it is small enough:
// train_callback CONFIG FOLDER [LOSS]
#include <vitrail/vitrail.h>

#include <cstdio>
#include <cstdlib>
#include <stop_token>

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: train_callback CONFIG FOLDER [LOSS]\n");
    return 64;
  }
  try {
    const vitrail::Plan plan = vitrail::plan_training(argv[1]);
    std::printf("%.1f MiB planned\n", static_cast<double>(plan.peak_bytes) / (1 << 20));
    const double enough = argc > 3 ? std::atof(argv[3]) : 0;
    std::stop_source stop;
    vitrail::TrainCallbacks callbacks;
    callbacks.on_step = [&](const vitrail::StepReport& step) {
      std::printf("step %lld of %lld: loss %.3f\n", static_cast<long long>(step.step),
                  static_cast<long long>(step.total_steps), step.loss);
      if (step.loss < enough) stop.request_stop();  // saved first; Resume::kNewest goes on from here
    };
    callbacks.on_eval = [](const vitrail::EvalReport& eval) {
      if (eval.top1) std::printf("%.1f %% right%s\n", 100 * *eval.top1, eval.best ? ", the best so far" : "");
    };
    const auto result = vitrail::train(argv[1], {.folder = argv[2]}, callbacks, stop.get_token());
    std::printf("%s at step %lld\n", result.reason.c_str(), static_cast<long long>(result.step));
  } catch (const vitrail::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
