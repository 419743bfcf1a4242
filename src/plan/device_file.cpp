#include "plan/device_file.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels.h"
#include "backend/registry.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/timing.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;
constexpr size_t kMaxDeviceBytes = 1 << 20;
constexpr const char* kFormat = "vitrail device 1";

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::kData, strf("%s is no device file: %s", path.c_str(), why.c_str()),
              "one written by: vitrail bench calibrate --out FILE");
}

// Reads members of the JSON, naming what is missing.
struct Reader {
  const Json& object;
  const std::string& path;

  Json member(const char* name) const {
    Json value = object.is_object() ? object.value(name, Json()) : Json();
    if (value.is_null()) refuse(path, strf("'%s' is missing", name));
    return value;
  }
  std::string text(const char* name) const {
    const Json value = member(name);
    if (!value.is_string()) refuse(path, strf("'%s' is no text", name));
    return value.get<std::string>();
  }
  double number(const char* name) const {
    const Json value = member(name);
    if (!value.is_number() || !(value.get<double>() > 0) || value.get<double>() > 1e18)
      refuse(path, strf("'%s' is no number above 0", name));
    return value.get<double>();
  }
  int64_t count(const char* name) const {
    const double value = number(name);
    if (value != std::floor(value) || value > 9e15) refuse(path, strf("'%s' is no whole number", name));
    return static_cast<int64_t>(value);
  }
  int threads(const char* name) const { return static_cast<int>(std::min<int64_t>(count(name), 1024)); }
  Json list(const char* name) const {
    Json value = member(name);
    if (!value.is_array() || value.empty()) refuse(path, strf("'%s' is no list", name));
    return value;
  }
};

Json read_json(const std::string& path) {
  try {
    return parse_json(read_file(path, kMaxDeviceBytes), path, {.comments = true});
  } catch (const Error& error) {
    refuse(path, error.message());
  }
}

void read_processor(const Reader& all, DeviceFile& device) {
  device.isa = all.text("isa");
  device.cores = all.threads("cores");
  for (const Json& row : all.list("rates")) {
    const Reader one{row, all.path};
    device.rates.push_back({one.threads("threads"), one.number("fma_gflops"), one.number("copy_gbps")});
  }
  for (const Json& row : all.list("products")) {
    const Reader one{row, all.path};
    device.gemms.push_back({one.count("m"), one.count("n"), one.count("k"), one.threads("threads"),
                            one.number("gflops"), row.contains("dtype") ? one.text("dtype") : "f32"});
  }
  std::sort(device.rates.begin(), device.rates.end(),
            [](const auto& a, const auto& b) { return a.threads < b.threads; });
  if (device.gemm_share() <= 0) refuse(all.path, "'products' has none in f32");
}

void read_gpu(const Reader& all, DeviceFile& device) {
  const auto small = [&](const char* name) {
    return static_cast<int>(std::min<int64_t>(all.count(name), 1 << 20));
  };
  device.compute = small("compute");
  device.processors = small("processors");
  device.l2_bytes = static_cast<uint64_t>(all.count("l2_bytes"));
  device.copy_gbps = all.number("copy_gbps");
  if (all.object.contains("foreign_bytes"))
    device.foreign_bytes = static_cast<uint64_t>(all.count("foreign_bytes"));
  if (device.foreign_bytes >= device.memory_bytes) refuse(all.path, "'foreign_bytes' leaves no memory");
  const Json tflops = all.member("tflops");
  for (const char* dtype : kGpuTypes) device.tflops[dtype] = Reader{tflops, all.path}.number(dtype);
  for (const char* dtype : kOtherGpuTypes)
    if (tflops.contains(dtype)) device.tflops[dtype] = Reader{tflops, all.path}.number(dtype);
}

std::string gpu_text(const DeviceFile& file) {
  Table table({{"GEMM in"}, {"rate", Align::kRight}});
  for (const auto& [dtype, tflops] : file.tflops) table.row({dtype, strf("%.1f TFLOP/s", tflops)});
  return format_pairs({{"name", file.name},
                       {"compute capability", strf("%d.%d", file.compute / 10, file.compute % 10)},
                       {"multiprocessors", std::to_string(file.processors)},
                       {"memory", format_bytes(file.memory_bytes)},
                       {"foreign", format_bytes(file.foreign_bytes) + " of the driver and its libraries"},
                       {"copy", strf("%.0f GB/s", file.copy_gbps)}}) +
         "\n" + table.text();
}

}  // namespace

DeviceFile read_device_file(const std::string& path) {
  const Json json = read_json(path);
  const Reader all{json, path};
  if (all.text("format") != kFormat) refuse(path, strf("its format is not '%s'", kFormat));
  const std::string kind = all.text("kind");
  const auto has_devices = [&](const BackendEntry& row) { return row.names_devices && row.name == kind; };
  const auto& rows = backend_registry();
  const auto backend = std::find_if(rows.begin(), rows.end(), has_devices);
  if (backend == rows.end())
    refuse(path, strf("it describes a %s, and plans are for a cpu or cuda", shown(kind).c_str()));
  DeviceFile device;
  device.kind = kind;
  device.name = shown(all.text("name"));
  device.memory_bytes = static_cast<uint64_t>(all.count("memory_bytes"));
  if (backend->numbered)
    read_gpu(all, device);
  else
    read_processor(all, device);
  return device;
}

namespace {
void write_processor(const DeviceFile& device, ordered_json& json) {
  json.update({{"isa", device.isa},
               {"cores", device.cores},
               {"memory_bytes", device.memory_bytes},
               {"rates", ordered_json::array()},
               {"products", ordered_json::array()}});
  for (const DeviceFile::Rate& rate : device.rates)
    json["rates"].push_back(
        {{"threads", rate.threads}, {"fma_gflops", rate.fma_gflops}, {"copy_gbps", rate.copy_gbps}});
  for (const DeviceFile::Gemm& p : device.gemms)
    json["products"].push_back({{"m", p.m},
                                {"n", p.n},
                                {"k", p.k},
                                {"dtype", p.dtype},
                                {"threads", p.threads},
                                {"gflops", p.gflops}});
}
}  // namespace

ordered_json to_json(const DeviceFile& device) {
  ordered_json json = {{"format", kFormat}, {"kind", device.kind}, {"name", device.name}};
  if (!device.is_gpu()) {
    write_processor(device, json);
    return json;
  }
  json.update({{"compute", device.compute},
               {"processors", device.processors},
               {"memory_bytes", device.memory_bytes},
               {"l2_bytes", device.l2_bytes}});
  if (device.foreign_bytes > 0) json["foreign_bytes"] = device.foreign_bytes;
  json["copy_gbps"] = device.copy_gbps;
  json["tflops"] = device.tflops;
  return json;
}

DeviceFile::Rate DeviceFile::rate(int threads) const {
  const auto nearest = std::min_element(rates.begin(), rates.end(), [&](const Rate& a, const Rate& b) {
    return std::abs(a.threads - threads) < std::abs(b.threads - threads);
  });
  Rate rate = *nearest;
  rate.fma_gflops *= static_cast<double>(threads) / rate.threads;
  rate.threads = threads;
  return rate;
}

double DeviceFile::gemm_share(const std::string& dtype) const {
  std::vector<double> shares;
  for (const Gemm& p : gemms)
    if (p.dtype == dtype) shares.push_back(p.gflops / rate(p.threads).fma_gflops);
  return shares.empty() ? 0 : spread_of(shares).median;
}

Roofline DeviceFile::roofline(int threads) const {
  Roofline roofline;
  if (is_gpu()) {
    roofline.bytes = copy_gbps * 1e9;
    for (const auto& [type, rate] : tflops) roofline.flops[type] = rate * 1e12;
    return roofline;
  }
  const Rate measured = rate(threads);
  roofline.bytes = measured.copy_gbps * 1e9;
  for (const Gemm& p : gemms) roofline.flops[p.dtype] = measured.fma_gflops * 1e9 * gemm_share(p.dtype);
  return roofline;
}

double DeviceFile::peak_gflops(int threads, const std::string& dtype) const {
  if (!is_gpu()) return rate(threads).fma_gflops;
  return tflops.at(tflops.contains(dtype) ? dtype : "f32") * 1e3;
}

DeviceInfo DeviceFile::info(int threads) const {
  if (is_gpu()) {
    DeviceInfo info = planned_cuda_device(name, compute, processors);
    info.memory_bytes = memory_bytes;
    info.l2_bytes = l2_bytes;
    return info;
  }
  return planned_cpu_device(threads > 0 ? threads : cores, isa, memory_bytes);
}

std::string to_text(const DeviceFile& file) {
  if (file.is_gpu()) return gpu_text(file);
  Table rates({{"threads", Align::kRight}, {"multiply-adds", Align::kRight}, {"copy", Align::kRight}});
  for (const DeviceFile::Rate& rate : file.rates)
    rates.row({std::to_string(rate.threads), strf("%.1f GFLOP/s", rate.fma_gflops),
               strf("%.1f GB/s", rate.copy_gbps)});
  Table gemms(
      {{"GEMM"}, {"in"}, {"threads", Align::kRight}, {"rate", Align::kRight}, {"of peak", Align::kRight}});
  for (const DeviceFile::Gemm& p : file.gemms)
    gemms.row({strf("%lldx%lldx%lld", static_cast<long long>(p.m), static_cast<long long>(p.n),
                    static_cast<long long>(p.k)),
               p.dtype, std::to_string(p.threads), strf("%.1f GFLOP/s", p.gflops),
               format_percent(p.gflops / file.rate(p.threads).fma_gflops)});
  return format_pairs({{"name", file.name},
                       {"instruction set", file.isa},
                       {"cores", std::to_string(file.cores)},
                       {"memory", format_bytes(file.memory_bytes)}}) +
         "\n" + rates.text() + "\n" + gemms.text();
}

}  // namespace vitrail
