#include "runtime/slow_device.h"

#include <unistd.h>

#include <thread>

#include "base/text.h"
#include "base/values.h"

namespace vitrail {

void SlowDevice::stamp(Timestamp& time) {
  if (began_ != Clock::time_point() && (marker_.empty() || ::access(marker_.c_str(), F_OK) == 0))
    std::this_thread::sleep_for((Clock::now() - began_) * share_);
  began_ = {};
  WrappedDevice::stamp(time);
}

std::unique_ptr<Device> open_rank_device(const DeviceInfo& info, int rank, const char* setting) {
  std::unique_ptr<Device> device = open_device(info);
  if (!setting || !device->shares_host_memory()) return device;
  const std::vector<std::string_view> parts = split(setting, ':');
  const auto wanted = parse_integer(std::string(parts[0]));
  const auto share = parts.size() > 1 ? parse_number(std::string(parts[1])) : std::nullopt;
  if (!wanted || *wanted != rank || !share || !(*share > 0)) return device;
  return std::make_unique<SlowDevice>(std::move(device), *share,
                                      std::string(parts.size() > 2 ? parts[2] : std::string_view()));
}

}  // namespace vitrail
