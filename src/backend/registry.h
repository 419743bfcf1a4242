// The backends of this build, one row each: what their devices are, how one is opened and measured, and which
// kernels it has. The only place that knows which backends there are; everything else goes by the facts of a
// DeviceInfo.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/device.h"
#include "backend/kernel.h"

namespace vitrail {

// What may be chosen of a device; each backend reads what concerns it.
struct DeviceRequest {
  int ordinal = 0;       // which of several
  int threads = 0;       // of a processor; 0: one per core
  std::string isa = {};  // of a processor; empty: the best it has
};

struct DevicePeaks {
  double gflops = 0;
  double gbps = 0;  // of copying, bytes read and bytes written both counted; 0 where it was not asked for
};

struct BackendEntry {
  const char* name;
  const Backend& (*kernels)();
  // Whether its devices are named after it ("cuda:1"); else it runs on another's.
  bool names_devices;
  bool numbered;  // it may have several devices
  // Why it has no device on this machine; empty: it has one.
  std::string (*problem)();
  // The devices of this machine, a line each.
  std::vector<std::string> (*devices)();
  DeviceInfo (*find)(const DeviceRequest&);  // Error(kDevice) or Error(kUsage) when there is none such
  std::unique_ptr<Device> (*open)(const DeviceInfo&);
  // The most the device computes in GEMMs of a type, and copies where that is asked for, measured here.
  DevicePeaks (*measure)(const DeviceInfo&, const std::string& type, bool copying);
};

const std::vector<BackendEntry>& backend_registry();
// Error(kUsage) for an unknown one.
const BackendEntry& find_entry(std::string_view backend);

// A device by name: "cpu", "cuda", "cuda:1". Error(kUsage), naming `option`, for anything else.
struct DeviceName {
  const BackendEntry* entry;
  int ordinal;
};
DeviceName parse_device_name(const std::string& name, const char* option = "--device");

}  // namespace vitrail
