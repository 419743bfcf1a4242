#include "plan/device_file.h"

#include <algorithm>
#include <cstdlib>

#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels.h"
#include "base/error.h"
#include "base/timing.h"
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

std::string gpu_text(const DeviceFile& file) {
  Table table({{"GEMM in"}, {"rate", Align::kRight}});
  for (const auto& [dtype, tflops] : file.tflops) table.row({dtype, strf("%.1f TFLOP/s", tflops)});
  return format_pairs({{"name", file.name},
                       {"source", file.source},
                       {"compute capability", strf("%d.%d", file.compute / 10, file.compute % 10)},
                       {"multiprocessors", std::to_string(file.processors)},
                       {"memory", format_bytes(file.memory_bytes)},
                       {"foreign", format_bytes(file.foreign_bytes) + " of the driver and its libraries"},
                       {"copy", strf("%.0f GB/s", file.copy_gbps)},
                       {"curves", curves_text(file)}}) +
         "\n" + table.text();
}

}  // namespace

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
                       {"memory", format_bytes(file.memory_bytes)},
                       {"curves", curves_text(file)}}) +
         "\n" + rates.text() + "\n" + gemms.text();
}

}  // namespace vitrail
