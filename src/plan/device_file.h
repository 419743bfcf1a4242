// A device as a file (configs/devices/*.json): what it is and how fast it was measured to be, so that a step
// can be planned and its time estimated on a machine that lacks it. Written by bench calibrate, read by plan
// --target.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "backend/device_info.h"
#include "plan/roofline.h"

namespace vitrail {

// What a GPU's products are measured in: on every card, and where it can.
inline constexpr const char* kGpuTypes[] = {"f32", "bf16", "f16"};
inline constexpr const char* kOtherGpuTypes[] = {"tf32", "fp8"};

struct DeviceFile {
  struct Rate {
    int threads = 1;
    double fma_gflops = 0;  // multiply-adds in registers
    double copy_gbps = 0;   // bytes read and written by a copy between memories, each counted
  };
  struct Product {
    int64_t m = 0, n = 0, k = 0;
    int threads = 1;
    double gflops = 0;
    std::string dtype = "f32";  // what it was computed in: f32, bf16, int8
  };

  DeviceKind kind = DeviceKind::kCpu;
  std::string name;
  uint64_t memory_bytes = 0;

  // Of a processor.
  std::string isa;
  int cores = 0;
  std::vector<Rate> rates;  // by threads, ascending; one at least
  std::vector<Product> products;

  // Of a GPU.
  int compute = 0, processors = 0;
  uint64_t l2_bytes = 0, foreign_bytes = 0;  // foreign: of the driver and its libraries; 0: not known
  double copy_gbps = 0;
  std::map<std::string, double> tflops;  // of large products by type

  // Of so many threads: those measured, or those of the nearest number in proportion.
  Rate rate(int threads) const;
  // Median speed of the products of matrices in that type, as a share of the multiply-add peak (of f32); 0:
  // none was measured. Of f32 there is one at least.
  double product_share(const std::string& dtype = "f32") const;
  Roofline roofline(int threads) const;
  // By which estimates are judged, GFLOP/s: of the multiply-adds, or of a GPU's products in that type (of f32
  // where it was not measured).
  double peak_gflops(int threads, const std::string& dtype) const;
  DeviceInfo info(int threads) const;  // 0: all cores; for planning alone
  uint64_t available_bytes() const { return memory_bytes - foreign_bytes; }
};

// Error(kData) for a file that is none.
DeviceFile read_device_file(const std::string& path);
nlohmann::ordered_json to_json(const DeviceFile& device);

}  // namespace vitrail
