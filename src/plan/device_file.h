// A device as a file (configs/devices/*.json): its description and its measured speed, so that a step can be
// planned and its time estimated on a machine that lacks it.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "backend/device_info.h"
#include "plan/roofline.h"

namespace vitrail {

// The types in which a GPU's GEMMs are measured, where the GPU supports them.
inline constexpr const char* kGpuTypes[] = {"f32", "bf16", "f16"};
inline constexpr const char* kOtherGpuTypes[] = {"tf32", "fp8"};

struct DeviceFile {
  struct Rate {
    int threads = 1;
    double fma_gflops = 0;  // multiply-adds from registers
    double copy_gbps = 0;   // bytes read and bytes written by a copy between memories, both counted
  };
  struct Gemm {
    int64_t m = 0, n = 0, k = 0;
    int threads = 1;
    double gflops = 0;
    std::string dtype = "f32";  // the type of the arithmetic: f32, bf16, int8
  };

  std::string kind = "cpu";  // the backend whose device it is
  std::string name;
  uint64_t memory_bytes = 0;

  // These fields describe a CPU.
  std::string isa;
  int cores = 0;
  std::vector<Rate> rates;  // by threads, ascending; one at least
  std::vector<Gemm> gemms;

  // These fields describe a GPU.
  int compute = 0, processors = 0;
  uint64_t l2_bytes = 0, foreign_bytes = 0;  // foreign: held by the driver and its libraries; 0: unknown
  double copy_gbps = 0;
  std::map<std::string, double> tflops;  // of large GEMMs, by type

  // Returns the rate of that many threads: measured, or scaled from the nearest number measured.
  Rate rate(int threads) const;
  // Returns the median speed of GEMMs in that type as a share of the multiply-add peak (f32); 0: none was
  // measured. For f32 there is at least one.
  double gemm_share(const std::string& dtype = "f32") const;
  Roofline roofline(int threads) const;
  // The peak against which estimates are judged, GFLOP/s: of the multiply-adds, or of a GPU's GEMMs in that
  // type (f32 where it was not measured).
  double peak_gflops(int threads, const std::string& dtype) const;
  DeviceInfo info(int threads) const;  // 0: all cores; for planning alone
  bool is_gpu() const { return compute > 0; }
  uint64_t available_bytes() const { return memory_bytes - foreign_bytes; }
};

// Throws Error(kData) when the file is not a valid device file.
DeviceFile read_device_file(const std::string& path);
nlohmann::ordered_json to_json(const DeviceFile& device);
std::string to_text(const DeviceFile& file);

}  // namespace vitrail
