// The backends of this build, one row each: what their devices are, how one is opened and measured, and which
// kernels it has. Only this file knows which backends there are; everything else goes by the facts of a
// DeviceInfo.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/device.h"
#include "backend/kernel.h"

namespace vitrail {

// The choices a user may make about a device. Each backend reads those that concern it.
struct DeviceRequest {
  int ordinal = 0;       // which of several
  int threads = 0;       // of a CPU; 0: one per core
  std::string isa = {};  // of a CPU; empty: the best it has
};

struct DevicePeaks {
  double gflops = 0;
  double gbps = 0;  // of copying, bytes read and bytes written both counted; 0 where it was not measured
};

struct BackendEntry {
  const char* name;
  const Backend& (*kernels)();
  // Whether its devices are named after it ("cuda:1"); otherwise the backend runs on another backend's
  // devices.
  bool names_devices;
  bool numbered;  // it may have several devices, told apart by a number
  // Why the backend has no device on this machine; empty: it has one.
  std::string (*problem)();
  // The devices of this machine, one line of text each.
  std::vector<std::string> (*devices)();
  DeviceInfo (*find)(const DeviceRequest&);  // Error(kDevice) or Error(kUsage) when there is none
  std::unique_ptr<Device> (*open)(const DeviceInfo&);
  // Measures the device's peak in GEMMs of a type and, where `copying`, its copy bandwidth.
  DevicePeaks (*measure)(const DeviceInfo&, const std::string& type, bool copying);
};

const std::vector<BackendEntry>& backend_registry();
// The row of a backend; throws Error(kUsage) for an unknown name.
const BackendEntry& find_entry(std::string_view backend);

// A device by name: "cpu", "cuda", "cuda:1". Any other name throws Error(kUsage), which names `option`.
struct DeviceName {
  const BackendEntry* entry;
  int ordinal;
};
DeviceName parse_device_name(const std::string& name, const char* option = "--device");

}  // namespace vitrail
