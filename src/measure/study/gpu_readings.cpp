#include "measure/study/gpu_readings.h"

#include <dlfcn.h>

#include <cmath>

namespace vitrail {

namespace {

constexpr auto kEvery = std::chrono::milliseconds(500);
constexpr int kCore = 0;  // the sensor on the GPU itself

template <typename F>
F* find(void* library, const char* name) {
  return library ? reinterpret_cast<F*>(dlsym(library, name)) : nullptr;
}

double more(double known, double value) {
  return std::isnan(known) || value > known ? value : known;
}

}  // namespace

// The library comes with the driver and stays open like it.
GpuReadings::GpuReadings() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto init = find<int()>(library, "nvmlInit_v2");
  const auto count = find<int(unsigned*)>(library, "nvmlDeviceGetCount_v2");
  const auto handle = find<int(unsigned, Gpu*)>(library, "nvmlDeviceGetHandleByIndex_v2");
  const auto name = find<int(Gpu, char*, unsigned)>(library, "nvmlDeviceGetName");
  memory_ = find<int(Gpu, Memory*)>(library, "nvmlDeviceGetMemoryInfo");
  use_ = find<int(Gpu, Use*)>(library, "nvmlDeviceGetUtilizationRates");
  temperature_ = find<int(Gpu, int, unsigned*)>(library, "nvmlDeviceGetTemperature");
  power_ = find<int(Gpu, unsigned*)>(library, "nvmlDeviceGetPowerUsage");
  unsigned gpus = 0;
  if (!init || !count || !handle || !name || init() != 0 || count(&gpus) != 0) return;
  for (unsigned i = 0; i < gpus; ++i) {
    One one;
    char text[96] = {};
    if (handle(i, &one.handle) != 0) continue;
    if (name(one.handle, text, sizeof text) == 0) one.reading.name = text;
    one.reading.id = i;
    gpus_.push_back(one);
  }
}

void GpuReadings::start() {
  last_ = {};
  for (One& one : gpus_) one = {one.handle, {one.reading.id, one.reading.name}};
}

void GpuReadings::read() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < kEvery) return;
  last_ = now;
  for (One& one : gpus_) read_one(one);
}

void GpuReadings::read_one(One& one) {
  Memory memory = {};
  Use use = {};
  unsigned degrees = 0, milliwatts = 0;
  if (memory_ && memory_(one.handle, &memory) == 0) {
    one.reading.used_bytes = more(one.reading.used_bytes, static_cast<double>(memory.used));
    one.reading.total_bytes = static_cast<double>(memory.total);
  }
  if (use_ && use_(one.handle, &use) == 0) {
    one.load_sum += use.gpu / 100.0;
    ++one.loads;
  }
  if (temperature_ && temperature_(one.handle, kCore, &degrees) == 0)
    one.reading.temperature = more(one.reading.temperature, degrees);
  if (power_ && power_(one.handle, &milliwatts) == 0) {
    one.watt_sum += milliwatts / 1e3;
    ++one.powers;
  }
}

std::vector<GpuReading> GpuReadings::result() const {
  std::vector<GpuReading> readings;
  for (const One& one : gpus_) {
    readings.push_back(one.reading);
    if (one.loads > 0) readings.back().load = one.load_sum / one.loads;
    if (one.powers > 0) readings.back().watts = one.watt_sum / one.powers;
  }
  return readings;
}

}  // namespace vitrail
