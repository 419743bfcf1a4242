#include "cli/device_choice.h"

#include "backend/registry.h"
#include "cli/kernels_file.h"

namespace vitrail::cli {

std::optional<int> parse_cuda(const std::string& device) {
  const DeviceName name = parse_device_name(device);
  return name.entry->numbered ? std::optional(name.ordinal) : std::nullopt;
}

const char* chosen_backend(const Options& options) {
  return chosen_backend(options, options.text("device"));
}

const char* chosen_backend(const Options& options, const std::string& device) {
  const BackendEntry& entry = *parse_device_name(device).entry;
  if (!entry.numbered) return find_backend(options.text("backend")).name();
  if (options.given("backend") && options.text("backend") != "cpu")
    throw Error(ErrorKind::kUsage,
                strf("--backend %s runs on the CPU, --device %s does not", options.text("backend").c_str(),
                     device.c_str()),
                "leave one of them out; --check ref compares each step with the reference");
  return entry.name;
}

DeviceChoice chosen_device(const Options& options) {
  const BackendEntry& entry = find_entry(chosen_backend(options));
  DeviceInfo info = entry.find({parse_device_name(options.text("device")).ordinal,
                                static_cast<int>(options.integer("threads")), options.text("isa")});
  info.kernels = chosen_kernels(options).table;
  return {&entry.kernels(), std::move(info)};
}

}  // namespace vitrail::cli
