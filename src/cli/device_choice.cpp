#include "cli/device_choice.h"

#include <algorithm>

#include "base/error.h"
#include "cli/environment.h"
#include "dist/nccl_world.h"

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
  const std::string backend = chosen_backend(options);
  DeviceInfo info = device_of(backend, options.text("device"), static_cast<int>(options.integer("threads")),
                              options.text("isa"));
  info.kernels = chosen_kernels(options).table;
  return {&find_backend(backend), std::move(info)};
}

namespace {

// Ranks beyond the last GPU share them only where NCCL is told to allow it.
int gpu_of_rank(int local) {
  const int gpus = gpu_count();
  if (gpus < 1 || local < gpus) return local;
  const char* shared = environment_variable(kSharedGpuVariable);
  if (!shared || std::string_view(shared) != "1")
    throw Error(ErrorKind::kDevice,
                strf("rank %d of this host wants GPU %d: this machine has %d", local, local, gpus),
                strf("at most %d ranks here; or %s=1 (NCCL 2.30) or --device cuda:0, and they share", gpus,
                     kSharedGpuVariable));
  return local % gpus;
}

}  // namespace

DeviceChoice chosen_device(const Options& options, int local, int sharing) {
  if (sharing <= 1) return chosen_device(options);
  const std::string backend = chosen_backend(options);
  std::string device = options.text("device");
  if (device == "cuda") device += ":" + std::to_string(gpu_of_rank(local));
  int threads = static_cast<int>(options.integer("threads"));
  if (threads == 0) threads = std::max(1, processor_threads(0, options.text("isa")) / sharing);
  DeviceInfo info = device_of(backend, device, threads, options.text("isa"));
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
