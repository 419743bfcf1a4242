// Device files as JSON: read and checked, and written.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "backend/registry.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/values.h"
#include "ops/grouped.h"
#include "plan/device_file.h"
#include "plan/device_reader.h"
#include "plan/devices.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;
constexpr size_t kMaxDeviceBytes = 16 << 20;
constexpr const char* kFormats[] = {"vitrail device 1", "vitrail device 2"};

Json read_json(const std::string& path) {
  try {
    return parse_json(read_file(path, kMaxDeviceBytes), path, {.comments = true});
  } catch (const Error& error) {
    refuse_device(path, error.message());
  }
}

void require_type(const std::string& type, const std::string& path) {
  constexpr std::string_view kTypes[] = {"f32", "bf16", "f16", "tf32", "fp8", "int8", "f64"};
  if (std::find(std::begin(kTypes), std::end(kTypes), type) == std::end(kTypes))
    refuse_device(path, strf("%s is no type that is computed in", quoted(type).c_str()));
}

// Files of older versions say "many adam_update".
std::string kind_of_curve(const std::string& kind) {
  constexpr std::string_view kOld = "many ";
  return kind.starts_with(kOld) ? GroupedOp::kind_of(kind.substr(kOld.size())) : kind;
}

void read_curves(const DeviceReader& all, DeviceFile& device) {
  if (!all.has("curves")) return;
  for (const Json& row : all.list("curves")) {
    const DeviceReader one{row, all.path, "curves."};
    one.only({"kind", "kernel", "type", "threads", "points"});
    const CostCurve curve{kind_of_curve(one.text("kind")),
                          one.text("kernel"),
                          one.text("type"),
                          one.small("threads", kThreadBounds),
                          {}};
    if (curve.kind.empty()) refuse_device(all.path, "a curve has no kind");
    require_type(curve.type, all.path);
    for (const Json& point : one.list("points")) {
      if (!point.is_array() || point.size() != 5)
        refuse_device(all.path,
                      strf("a point of '%s' is not [FLOPs, bytes, elements of the first input, of the "
                           "output, seconds]",
                           shown(curve.kind).c_str()));
      for (size_t i = 0; i < 5; ++i) {
        const bool fits = point[i].is_number() && point[i].get<double>() <= kSizeBounds.most &&
                          point[i].get<double>() >= (i == 4 ? kSecondBounds.least : 0) &&
                          (i < 4 || point[i].get<double>() <= kSecondBounds.most);
        if (!fits)
          refuse_device(all.path,
                        strf("a point of '%s' has %s", shown(curve.kind).c_str(), point[i].dump().c_str()));
      }
      device.curves.add(curve, {{point[0], point[1], point[2], point[3]}, point[4]});
    }
  }
}

// A processor is one that this program has kernels for, measured on the cores it has.
void check_processor(const std::string& path, const CpuSpec& device) {
  const std::vector<std::string> known = isa_names();
  if (std::find(known.begin(), known.end(), device.isa) == known.end())
    refuse_device(path,
                  strf("'isa' is %s, none of %s", quoted(device.isa).c_str(), join(known, ", ").c_str()));
  const auto refuse_beyond = [&](const char* list, int threads) {
    if (threads > device.cores)
      refuse_device(path, strf("'%s' has %d threads, and there are %d cores", list, threads, device.cores));
  };
  for (size_t i = 0; i < device.rates.size(); ++i) {
    refuse_beyond("rates", device.rates[i].threads);
    if (i > 0 && device.rates[i].threads == device.rates[i - 1].threads)
      refuse_device(path, strf("'rates' has two rows for %d threads", device.rates[i].threads));
  }
  for (const CpuSpec::Gemm& gemm : device.gemms) {
    refuse_beyond("products", gemm.threads);
    require_type(gemm.dtype, path);
  }
}

CpuSpec read_processor(const DeviceReader& all) {
  all.only({"format", "kind", "name", "source", "comment", "memory_bytes", "watts", "isa", "cores", "rates",
            "products", "curves"});
  CpuSpec device;
  device.isa = all.text("isa");
  device.cores = all.small("cores", kThreadBounds);
  for (const Json& row : all.list("rates")) {
    const DeviceReader one{row, all.path, "rates."};
    one.only({"threads", "fma_gflops", "copy_gbps"});
    device.rates.push_back({one.small("threads", kThreadBounds), one.number("fma_gflops", kGflopsBounds),
                            one.number("copy_gbps", kGbpsBounds)});
  }
  for (const Json& row : all.list("products")) {
    const DeviceReader one{row, all.path, "products."};
    one.only({"m", "n", "k", "threads", "gflops", "dtype"});
    device.gemms.push_back({one.count("m", kSizeBounds), one.count("n", kSizeBounds),
                            one.count("k", kSizeBounds), one.small("threads", kThreadBounds),
                            one.number("gflops", kGflopsBounds),
                            one.has("dtype") ? one.text("dtype") : "f32"});
  }
  std::sort(device.rates.begin(), device.rates.end(),
            [](const auto& a, const auto& b) { return a.threads < b.threads; });
  check_processor(all.path, device);
  if (device.gemm_share() <= 0) refuse_device(all.path, "'products' has none in f32");
  return device;
}

std::map<std::string, double> read_tflops(const DeviceReader& all) {
  const Json tflops = all.member("tflops");
  const DeviceReader types{tflops, all.path, all.inside + "tflops."};
  types.only({"f32", "bf16", "f16", "tf32", "fp8"});
  std::map<std::string, double> rates;
  for (const char* type : kGpuTypes)
    if (type == std::string("f32") || types.has(type)) rates[type] = types.number(type, kTflopsBounds);
  return rates;
}

// The measured figures of a device that was not measured: its sheet's, by the share of its sheet that the
// other one reaches.
void estimate_from_like(const DeviceReader& all, DeviceFile& device, GpuSpec& gpu) {
  device.like_name = all.text("like");
  const bool is_name = device.like_name.find_first_of("/.") == std::string::npos;
  if (!is_name) refuse_device(all.path, "'like' is not the name of a device file beside it");
  const auto beside = std::filesystem::path(all.path).parent_path() / (device.like_name + ".json");
  if (device.sheet.gbps <= 0) refuse_device(all.path, "'sheet' is missing: the figures that 'like' scales");
  if (all.has("copy_gbps") || all.has("tflops"))
    refuse_device(all.path, "it has 'like' and measured figures: one of them");
  // A chain of 'like' could lead back here.
  if (const Json other = read_json(beside.string()); other.is_object() && other.contains("like"))
    refuse_device(all.path,
                  strf("'like' names %s, which is itself like another", shown(device.like_name).c_str()));
  device.like = std::make_shared<DeviceFile>(read_device_file(beside.string()));
  const DeviceFile& other = *device.like;
  const GpuSpec* measured_gpu = std::get_if<GpuSpec>(&other.spec);
  if (other.like || other.sheet.gbps <= 0 || !measured_gpu)
    refuse_device(all.path, strf("'like' names %s, which is no measured GPU with a data sheet",
                                 shown(device.like_name).c_str()));
  const auto share = [&](const std::string& type) {
    const bool known = measured_gpu->tflops.contains(type) && other.sheet.tflops.contains(type);
    const std::string& measured = known ? type : "f32";
    return measured_gpu->tflops.at(measured) / other.sheet.tflops.at(measured);
  };
  gpu.copy_gbps = device.sheet.gbps * measured_gpu->copy_gbps / other.sheet.gbps;
  for (const auto& [type, rate] : device.sheet.tflops) gpu.tflops[type] = rate * share(type);
}

GpuSpec read_gpu(const DeviceReader& all, DeviceFile& device) {
  all.only({"format", "kind", "name", "source", "comment", "memory_bytes", "watts", "compute", "processors",
            "l2_bytes", "foreign_bytes", "copy_gbps", "tflops", "sheet", "like", "curves"});
  GpuSpec gpu;
  gpu.compute = all.small("compute", {30, 999});
  gpu.processors = all.small("processors", {1, 1 << 16});
  gpu.l2_bytes = static_cast<uint64_t>(all.count("l2_bytes", {1 << 10, 1e12}));
  if (all.has("foreign_bytes"))
    device.foreign_bytes = static_cast<uint64_t>(all.count("foreign_bytes", {1, kMemoryBounds.most}));
  if (device.foreign_bytes >= device.memory_bytes)
    refuse_device(all.path, "'foreign_bytes' leaves no memory");
  if (all.has("sheet")) {
    const Json sheet = all.member("sheet");
    const DeviceReader one{sheet, all.path, "sheet."};
    one.only({"url", "tflops", "gbps"});
    device.sheet = {one.text("url"), read_tflops(one), one.number("gbps", kGbpsBounds)};
  }
  if (all.has("like")) {
    estimate_from_like(all, device, gpu);
    return gpu;
  }
  gpu.copy_gbps = all.number("copy_gbps", kGbpsBounds);
  gpu.tflops = read_tflops(all);
  return gpu;
}

const BackendEntry& backend_of(const std::string& path, const std::string& kind) {
  const auto& rows = backend_registry();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const BackendEntry& row) {
    return row.names_devices() && row.name == kind;
  });
  if (found == rows.end())
    refuse_device(path, strf("it describes a %s, and plans are for a cpu or cuda", shown(kind).c_str()));
  return *found;
}
}  // namespace

DeviceFile read_device_file(const std::string& path) {
  const Json json = read_json(path);
  const DeviceReader all{json, path};
  const std::string format = all.text("format");
  if (std::find(std::begin(kFormats), std::end(kFormats), format) == std::end(kFormats))
    refuse_device(path, strf("its format is %s, neither '%s' nor '%s'", quoted(format).c_str(), kFormats[0],
                             kFormats[1]));
  DeviceFile device;
  device.kind = all.text("kind");
  const BackendEntry& backend = backend_of(path, device.kind);
  device.name = shown(all.text("name"));
  if (device.name.empty()) refuse_device(path, "'name' is empty");
  if (format == kFormats[1]) device.source = shown(all.text("source"));
  device.memory_bytes = static_cast<uint64_t>(all.count("memory_bytes", kMemoryBounds));
  if (all.has("watts")) device.watts = all.number("watts", kWattBounds);
  if (backend.on_host)
    device.spec = read_processor(all);
  else
    device.spec = read_gpu(all, device);
  read_curves(all, device);
  return device;
}

namespace {
void write_spec(const DeviceFile& device, const CpuSpec& processor, ordered_json& json) {
  json.update({{"isa", processor.isa},
               {"cores", processor.cores},
               {"memory_bytes", device.memory_bytes},
               {"rates", ordered_json::array()},
               {"products", ordered_json::array()}});
  for (const CpuSpec::Rate& rate : processor.rates)
    json["rates"].push_back(
        {{"threads", rate.threads}, {"fma_gflops", rate.fma_gflops}, {"copy_gbps", rate.copy_gbps}});
  for (const CpuSpec::Gemm& p : processor.gemms)
    json["products"].push_back({{"m", p.m},
                                {"n", p.n},
                                {"k", p.k},
                                {"dtype", p.dtype},
                                {"threads", p.threads},
                                {"gflops", p.gflops}});
}

void write_spec(const DeviceFile& device, const GpuSpec& gpu, ordered_json& json) {
  json.update({{"compute", gpu.compute},
               {"processors", gpu.processors},
               {"memory_bytes", device.memory_bytes},
               {"l2_bytes", gpu.l2_bytes}});
  if (device.foreign_bytes > 0) json["foreign_bytes"] = device.foreign_bytes;
  if (device.sheet.gbps > 0)
    json["sheet"] = {{"url", device.sheet.url}, {"tflops", device.sheet.tflops}, {"gbps", device.sheet.gbps}};
  if (device.like) {
    json["like"] = device.like_name;
    return;
  }
  json["copy_gbps"] = gpu.copy_gbps;
  json["tflops"] = gpu.tflops;
}

ordered_json curve_json(const CostCurve& curve) {
  ordered_json json = {{"kind", curve.kind},
                       {"kernel", curve.kernel},
                       {"type", curve.type},
                       {"threads", curve.threads},
                       {"points", ordered_json::array()}};
  const auto whole = [](double number) { return static_cast<int64_t>(number); };
  for (const auto& [size, seconds] : curve.points)
    json["points"].push_back({whole(size.flops), whole(size.bytes), whole(size.first), whole(size.last),
                              std::stod(strf("%.4g", seconds))});
  return json;
}
}  // namespace

ordered_json to_json(const DeviceFile& device) {
  ordered_json json = {
      {"format", kFormats[1]}, {"kind", device.kind}, {"name", device.name}, {"source", device.source}};
  if (device.watts > 0) json["watts"] = device.watts;
  std::visit([&](const auto& one) { write_spec(device, one, json); }, device.spec);
  for (const CostCurve& curve : device.curves.curves()) json["curves"].push_back(curve_json(curve));
  return json;
}

std::string file_text(const DeviceFile& device) {
  ordered_json json = to_json(device);
  const ordered_json curves = json.value("curves", ordered_json::array());
  json.erase("curves");
  std::string text = json.dump(2);
  if (curves.empty()) return text + "\n";
  text.erase(text.rfind('\n'));
  text += ",\n  \"curves\": [";
  for (size_t i = 0; i < curves.size(); ++i) text += (i > 0 ? ",\n    " : "\n    ") + curves[i].dump();
  return text + "\n  ]\n}\n";
}

}  // namespace vitrail
