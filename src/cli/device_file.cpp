#include "cli/device_file.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "backend/cpu/cpu_isa.h"
#include "backend/cpu/kernels.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/machine.h"
#include "cli/shown.h"
#include "telemetry/format.h"
#include "telemetry/spread.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;
constexpr size_t kMaxDeviceBytes = 1 << 20;
constexpr const char* kFormat = "vitrail device 1";

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::kData, strf("%s is no device file: %s", path.c_str(), why.c_str()),
              "one written by: vitrail bench calibrate --out FILE");
}

// Reads members, naming what is missing.
struct Reader {
  const Json& object;
  const std::string& path;

  Json member(const char* name) const {
    const Json value = object.is_object() ? object.value(name, Json()) : Json();
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
    const Json value = member(name);
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
}  // namespace

DeviceFile read_device_file(const std::string& path) {
  const Json json = read_json(path);
  const Reader all{json, path};
  if (all.text("format") != kFormat) refuse(path, strf("its format is not '%s'", kFormat));
  if (const std::string kind = all.text("kind"); kind != "cpu")
    refuse(path, strf("it describes a %s, and plans are for a cpu", shown(kind).c_str()));
  DeviceFile device{.name = shown(all.text("name")),
                    .isa = all.text("isa"),
                    .cores = all.threads("cores"),
                    .memory_bytes = static_cast<uint64_t>(all.count("memory_bytes")),
                    .rates = {},
                    .products = {}};
  for (const Json& row : all.list("rates")) {
    const Reader one{row, path};
    device.rates.push_back({one.threads("threads"), one.number("fma_gflops"), one.number("copy_gbps")});
  }
  for (const Json& row : all.list("products")) {
    const Reader one{row, path};
    device.products.push_back(
        {one.count("m"), one.count("n"), one.count("k"), one.threads("threads"), one.number("gflops")});
  }
  std::sort(device.rates.begin(), device.rates.end(),
            [](const auto& a, const auto& b) { return a.threads < b.threads; });
  return device;
}

ordered_json to_json(const DeviceFile& device) {
  ordered_json json = {{"format", kFormat},
                       {"kind", "cpu"},
                       {"name", device.name},
                       {"isa", device.isa},
                       {"cores", device.cores},
                       {"memory_bytes", device.memory_bytes},
                       {"rates", ordered_json::array()},
                       {"products", ordered_json::array()}};
  for (const DeviceFile::Rate& rate : device.rates)
    json["rates"].push_back(
        {{"threads", rate.threads}, {"fma_gflops", rate.fma_gflops}, {"copy_gbps", rate.copy_gbps}});
  for (const DeviceFile::Product& p : device.products)
    json["products"].push_back(
        {{"m", p.m}, {"n", p.n}, {"k", p.k}, {"threads", p.threads}, {"gflops", p.gflops}});
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

double DeviceFile::product_share() const {
  std::vector<double> shares;
  for (const Product& p : products) shares.push_back(p.gflops / rate(p.threads).fma_gflops);
  return spread_of(shares).median;
}

DeviceInfo DeviceFile::info(int threads) const {
  return planned_cpu_device(threads > 0 ? threads : cores, isa, memory_bytes);
}

namespace {
// What the file has no figures of.
void refuse_unmeasured(const DeviceFile& device, const std::string& isa, int threads) {
  if (!isa.empty() && isa != device.isa)
    throw Error(ErrorKind::kUsage,
                strf("--target was measured with %s, not with %s", device.isa.c_str(), isa.c_str()),
                "leave out --isa, or make another file there: vitrail bench calibrate --isa NAME");
  if (threads > device.cores)
    throw Error(
        ErrorKind::kUsage,
        strf("--target has %s, not the %d of --threads", format_count(device.cores, "core").c_str(), threads),
        "fewer --threads, or none for all of its cores");
}
}  // namespace

PlanTarget read_plan_target(const Options& options) {
  PlanTarget target;
  const auto threads = static_cast<int>(options.integer("threads"));
  const std::string& isa = options.text("isa");
  if (!options.given("target")) {
    target.device = planned_cpu_device(threads, isa);
    target.available_bytes = read_machine().memory_available_bytes;
    return target;
  }
  target.file = read_device_file(options.text("target"));
  refuse_unmeasured(*target.file, isa, threads);
  target.device = target.file->info(threads);
  target.available_bytes = target.device.memory_bytes;
  return target;
}

bool runs_here(const DeviceInfo& device) {
  const std::vector<IsaLevel> levels = available_isa_levels();
  return std::find(levels.begin(), levels.end(), static_cast<IsaLevel>(device.isa)) != levels.end();
}

double estimate_seconds(const Program& program, const DeviceFile& device, int threads) {
  const DeviceFile::Rate rate = device.rate(threads);
  const double flops_per_s = rate.fma_gflops * 1e9 * device.product_share(),
               bytes_per_s = rate.copy_gbps * 1e9;
  double seconds = 0;
  for (const Node& node : program.nodes) {
    const Cost cost = node.op->cost(program.descs(node.ins), program.descs(node.outs));
    seconds += std::max(cost.flops / flops_per_s, cost.bytes / bytes_per_s);
  }
  return seconds;
}

}  // namespace vitrail::cli
