#include "cli/device_choice.h"

#include "base/error.h"
#include "cli/environment.h"
#include "launch/launch_plan.h"
#include "train/device_transport.h"

namespace vitrail::cli {

const char* chosen_backend(const Options& options) {
  return chosen_backend(options, options.text("device"));
}

const char* chosen_backend(const Options& options, const std::string& device) {
  if (!parse_cuda(device)) return find_backend(options.text("backend")).name();
  if (options.given("backend") && options.text("backend") != "cpu")
    throw Error(ErrorKind::kUsage,
                strf("--backend %s runs on the CPU, --device %s does not", options.text("backend").c_str(),
                     device.c_str()),
                "leave one of them out; --check ref compares each step with the reference");
  return device_backend(device).name();
}

OptionSpec rank_threads_option() {
  return {.name = "threads",
          .help =
              "threads a rank computes with, or as many numbers as there are ranks: 4,4,2,1; 0 takes its "
              "share of the cores",
          .metavar = "N[,N...]",
          .letter = 't',
          .fallback = "0"};
}

DeviceChoice chosen_device(const Options& options) {
  return chosen_device(options, HostRank());
}

DeviceChoice chosen_device(const Options& options, HostRank seat, RankNumber rank) {
  seat.shares_gpus = ranks_share_gpus(environment_variable);
  const std::string backend = chosen_backend(options);
  DeviceInfo info = device_of_rank(backend, options.text("device"),
                                   threads_of_rank(options.text("threads"), rank.rank, rank.world),
                                   options.text("isa"), seat);
  info.kernels = chosen_kernels(options).table;
  return {&find_backend(backend), std::move(info)};
}

KernelsFile chosen_kernels(const Options& options) {
  return chosen_kernels(options, options.text("device"));
}

KernelsFile chosen_kernels(const Options& options, const std::string& device) {
  return kernels_for(device, options.text("kernels"), config_home());
}

}  // namespace vitrail::cli
