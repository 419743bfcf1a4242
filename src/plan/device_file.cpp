#include "plan/device_file.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/timing.h"
#include "plan/devices.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {
std::string curves_text(const DeviceFile& file) {
  if (file.like) return strf("none: as much of its data sheet as %s reaches", file.like->name.c_str());
  size_t points = 0;
  for (const CostCurve& curve : file.curves.curves()) points += curve.points.size();
  if (points == 0) return "none: times are at best those of the roofline";
  return strf("%s in %s", format_count(static_cast<int64_t>(points), "point").c_str(),
              format_count(static_cast<int64_t>(file.curves.curves().size()), "curve").c_str());
}

std::string spec_text(const DeviceFile& file, const GpuSpec& gpu) {
  Table table({{"GEMM in"}, {"rate", Align::kRight}});
  for (const auto& [dtype, tflops] : gpu.tflops) table.row({dtype, strf("%.1f TFLOP/s", tflops)});
  return format_pairs({{"name", file.name},
                       {"source", file.source},
                       {"compute capability", strf("%d.%d", gpu.compute / 10, gpu.compute % 10)},
                       {"multiprocessors", std::to_string(gpu.processors)},
                       {"memory", format_bytes(file.memory_bytes)},
                       {"foreign", format_bytes(file.foreign_bytes) + " of the driver and its libraries"},
                       {"copy", strf("%.0f GB/s", gpu.copy_gbps)},
                       {"curves", curves_text(file)}}) +
         "\n" + table.text();
}

std::string spec_text(const DeviceFile& file, const CpuSpec& processor) {
  Table rates({{"threads", Align::kRight}, {"multiply-adds", Align::kRight}, {"copy", Align::kRight}});
  for (const CpuSpec::Rate& rate : processor.rates)
    rates.row({std::to_string(rate.threads), strf("%.1f GFLOP/s", rate.fma_gflops),
               strf("%.1f GB/s", rate.copy_gbps)});
  Table gemms(
      {{"GEMM"}, {"in"}, {"threads", Align::kRight}, {"rate", Align::kRight}, {"of peak", Align::kRight}});
  for (const CpuSpec::Gemm& p : processor.gemms)
    gemms.row({strf("%lldx%lldx%lld", static_cast<long long>(p.m), static_cast<long long>(p.n),
                    static_cast<long long>(p.k)),
               p.dtype, std::to_string(p.threads), strf("%.1f GFLOP/s", p.gflops),
               format_percent(p.gflops / processor.rate(p.threads).fma_gflops)});
  return format_pairs({{"name", file.name},
                       {"instruction set", processor.isa},
                       {"cores", std::to_string(processor.cores)},
                       {"memory", format_bytes(file.memory_bytes)},
                       {"curves", curves_text(file)}}) +
         "\n" + rates.text() + "\n" + gemms.text();
}

[[noreturn]] void refuse_isa(const std::string& why) {
  throw Error(ErrorKind::kUsage, why,
              "leave out --isa, or make another file there: vitrail bench calibrate --isa NAME");
}

}  // namespace

CpuSpec::Rate CpuSpec::rate(int threads) const {
  const auto nearest = std::min_element(rates.begin(), rates.end(), [&](const Rate& a, const Rate& b) {
    return std::abs(a.threads - threads) < std::abs(b.threads - threads);
  });
  Rate rate = *nearest;
  rate.fma_gflops *= static_cast<double>(threads) / rate.threads;
  rate.threads = threads;
  return rate;
}

double CpuSpec::gemm_share(const std::string& dtype) const {
  std::vector<double> shares;
  for (const Gemm& p : gemms)
    if (p.dtype == dtype) shares.push_back(p.gflops / rate(p.threads).fma_gflops);
  return shares.empty() ? 0 : spread_of(shares).median;
}

Roofline CpuSpec::roofline(int threads) const {
  const Rate measured = rate(threads);
  Roofline roofline;
  roofline.bytes = measured.copy_gbps * 1e9;
  for (const Gemm& p : gemms) roofline.flops[p.dtype] = measured.fma_gflops * 1e9 * gemm_share(p.dtype);
  return roofline;
}

Roofline GpuSpec::roofline(int) const {
  Roofline roofline;
  roofline.bytes = copy_gbps * 1e9;
  for (const auto& [type, rate] : tflops) roofline.flops[type] = rate * 1e12;
  return roofline;
}

double CpuSpec::peak_gflops(int threads, const std::string&) const {
  return rate(threads).fma_gflops;
}

double GpuSpec::peak_gflops(int, const std::string& dtype) const {
  return tflops.at(tflops.contains(dtype) ? dtype : "f32") * 1e3;
}

void CpuSpec::describe(PlannedDevice& device) const {
  if (device.threads <= 0) device.threads = cores;
  device.isa = isa;
}

void GpuSpec::describe(PlannedDevice& device) const {
  device.compute = compute;
  device.processors = processors;
  device.l2_bytes = l2_bytes;
}

void CpuSpec::require_measured(int threads, const std::string& wanted_isa) const {
  if (!wanted_isa.empty() && wanted_isa != isa)
    refuse_isa(strf("--target was measured with %s, not with %s", isa.c_str(), wanted_isa.c_str()));
  if (threads > cores)
    throw Error(
        ErrorKind::kUsage,
        strf("--target has %s, not the %d of --threads", format_count(cores, "core").c_str(), threads),
        "fewer --threads, or none for all of its cores");
}

void GpuSpec::require_measured(int, const std::string& wanted_isa) const {
  if (!wanted_isa.empty())
    refuse_isa(strf("--target is a GPU and has no instruction set %s", wanted_isa.c_str()));
}

std::string CpuSpec::mismatch(const DeviceInfo& device, int cores_here) const {
  if (cores != cores_here)
    return strf("it is of %s, and this process has %d", format_count(cores, "core").c_str(), cores_here);
  const std::string here = isa_name(device.isa);
  return isa == here ? "" : strf("it was measured with %s, not with %s", isa.c_str(), here.c_str());
}

Roofline DeviceFile::roofline(int threads) const {
  return std::visit([&](const auto& one) { return one.roofline(threads); }, spec);
}

double DeviceFile::peak_gflops(int threads, const std::string& dtype) const {
  return std::visit([&](const auto& one) { return one.peak_gflops(threads, dtype); }, spec);
}

DeviceInfo DeviceFile::info(int threads) const {
  PlannedDevice device{.name = name, .memory_bytes = memory_bytes, .threads = threads};
  std::visit([&](const auto& one) { one.describe(device); }, spec);
  return find_entry(kind).planned(device);
}

void DeviceFile::require_measured(int threads, const std::string& isa) const {
  std::visit([&](const auto& one) { one.require_measured(threads, isa); }, spec);
}

std::string DeviceFile::mismatch(const DeviceInfo& device, int cores_here) const {
  return std::visit([&](const auto& one) { return one.mismatch(device, cores_here); }, spec);
}

std::string to_text(const DeviceFile& file) {
  return std::visit([&](const auto& one) { return spec_text(file, one); }, file.spec);
}

}  // namespace vitrail
