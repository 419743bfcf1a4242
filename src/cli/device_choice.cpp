#include "cli/device_choice.h"

#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels.h"
#include "base/text.h"
#include "base/values.h"
#include "cli/kernels_file.h"

namespace vitrail::cli {

std::optional<int> parse_cuda(const std::string& device) {
  if (device == "cpu") return std::nullopt;
  if (device == "cuda") return 0;
  const auto number = device.starts_with("cuda:") ? parse_integer(device.substr(5)) : std::nullopt;
  if (!number || *number < 0 || *number > 1023)
    throw Error(ErrorKind::kUsage, strf("--device expects cpu or cuda[:i], not %s", quoted(device).c_str()),
                "--device cpu, --device cuda, or --device cuda:1 for the second card");
  return static_cast<int>(*number);
}

const char* chosen_backend(const Options& options) {
  return chosen_backend(options, options.text("device"));
}

const char* chosen_backend(const Options& options, const std::string& device) {
  const bool cuda = parse_cuda(device).has_value();
  if (!cuda) return find_backend(options.text("backend")).name();
  if (options.given("backend") && options.text("backend") != "cpu")
    throw Error(ErrorKind::kUsage,
                strf("--backend %s runs on the CPU, --device %s does not", options.text("backend").c_str(),
                     device.c_str()),
                "leave one of them out; --check ref compares each step with the reference");
  return cuda_backend().name();
}

DeviceChoice chosen_device(const Options& options) {
  const Backend& backend = find_backend(chosen_backend(options));
  const auto ordinal = parse_cuda(options.text("device"));
  DeviceInfo info = ordinal ? cuda_device(*ordinal)
                            : cpu_device(static_cast<int>(options.integer("threads")), options.text("isa"));
  info.kernels = chosen_kernels(options).table;
  return {&backend, std::move(info)};
}

}  // namespace vitrail::cli
