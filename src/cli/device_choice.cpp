#include "cli/device_choice.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/environment.h"
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

DeviceChoice chosen_device(const Options& options) {
  return chosen_device(options, 0, 1);
}

DeviceChoice chosen_device(const Options& options, int local, int sharing) {
  const std::string backend = chosen_backend(options);
  DeviceInfo info =
      device_of_rank(backend, options.text("device"), static_cast<int>(options.integer("threads")),
                     options.text("isa"), {local, sharing, ranks_share_gpus(environment_variable)});
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
