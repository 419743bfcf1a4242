#include "backend/cuda/plugin.h"

#include <atomic>

#include "base/error.h"
#include "base/plugin_library.h"

namespace vitrail::cuda {

namespace {

Plugin<Api> open() {
  Plugin<Api> opened = open_plugin<Api>({.file = "libvitrail_cuda.so",
                                         .symbol = kApiSymbol,
                                         .brings = "CUDA",
                                         .absent = "",
                                         .broken = "CUDA 13 brings what it needs (cuBLASLt)"},
                                        VITRAIL_CUDA_API);
  std::string why;
  if (opened.api && opened.api->session.count(why) < 1) opened.problem = "no usable NVIDIA GPU: " + why;
  return opened;
}

const Plugin<Api>& plugin() {
  static const Plugin<Api> opened = open();
  return opened;
}

std::atomic<const Api*> replacement = nullptr;

}  // namespace

const std::string& why_unusable() {
  return plugin().problem;
}

const Api& api() {
  if (const Api* table = replacement.load(std::memory_order_relaxed)) return *table;
  if (!plugin().problem.empty())
    throw Error(ErrorKind::kDevice, "CUDA cannot be used: " + plugin().problem,
                "--device cpu; vitrail doctor shows what this machine can do");
  return *plugin().api;
}

void replace_api(const Api* table) {
  replacement = table;
}

std::string plugin_path() {
  return plugin().path;
}

}  // namespace vitrail::cuda
