// A device as a file (configs/devices/*.json, docs/device-files.md): its description and its speed, measured
// or from its data sheet, so that a step can be planned and its time predicted on a machine that lacks it.
// What the format says of processors and of GPUs differs, so each has a specification of its own.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

#include "backend/registry.h"
#include "plan/cost_curves.h"

namespace vitrail {

// The types in which a GPU's GEMMs are measured, where the GPU supports them; f32 at least.
inline constexpr const char* kGpuTypes[] = {"f32", "bf16", "f16", "tf32", "fp8"};

// A processor: its speed by threads.
struct CpuSpec {
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

  std::string isa = {};
  int cores = 0;
  std::vector<Rate> rates = {};  // by threads, ascending; one at least
  std::vector<Gemm> gemms = {};

  // Returns the rate of that many threads: measured, or scaled from the nearest number measured.
  Rate rate(int threads) const;
  // Returns the median speed of GEMMs in that type as a share of the multiply-add peak (f32); 0: none was
  // measured. For f32 there is at least one.
  double gemm_share(const std::string& dtype = "f32") const;
  Roofline roofline(int threads) const;
  double peak_gflops(int threads, const std::string& dtype) const;
  void describe(PlannedDevice& device) const;
  void require_measured(int threads, const std::string& wanted_isa) const;
  std::string mismatch(const DeviceInfo& device, int cores_here) const;
};

// A GPU: its speed as a whole.
struct GpuSpec {
  int compute = 0, processors = 0;
  uint64_t l2_bytes = 0;
  double copy_gbps = 0;
  std::map<std::string, double> tflops = {};  // of large GEMMs, by type

  Roofline roofline(int threads) const;
  double peak_gflops(int threads, const std::string& dtype) const;
  void describe(PlannedDevice& device) const;
  void require_measured(int threads, const std::string& wanted_isa) const;
  std::string mismatch(const DeviceInfo&, int) const { return {}; }
};

struct DeviceFile {
  // Holds what the vendor's data sheet says of a GPU.
  struct Sheet {
    std::string url;  // where it says so
    std::map<std::string, double> tflops;
    double gbps = 0;  // 0: there is no sheet
  };

  std::string kind = "cpu";  // the backend whose device it is
  std::string name;
  std::string source = "measured";  // where the figures come from, as text
  std::variant<CpuSpec, GpuSpec> spec;
  CostCurves curves;  // measured nodes; none: the roofline alone is known
  uint64_t memory_bytes = 0;
  uint64_t foreign_bytes = 0;  // held by the driver and its libraries; 0: none, or unknown
  double watts = 0;            // that the whole device may draw, by its data sheet; 0: not known
  Sheet sheet;
  // A GPU that was not measured reaches the same share of its data sheet as this one does.
  std::string like_name;
  std::shared_ptr<const DeviceFile> like;

  Roofline roofline(int threads) const;
  // The peak against which estimates are judged, GFLOP/s: of the multiply-adds, or of a GPU's GEMMs in that
  // type (f32 where it was not measured).
  double peak_gflops(int threads, const std::string& dtype) const;
  DeviceInfo info(int threads) const;  // 0: all cores; for planning alone
  // Throws Error(kUsage) where the file has no figures for these settings of a processor.
  void require_measured(int threads, const std::string& wanted_isa) const;
  // Returns why the file does not describe a device of its name, with the processor's cores that this process
  // may use; empty: it does.
  std::string mismatch(const DeviceInfo& device, int cores_here) const;
  bool is_measured() const { return !like; }
  uint64_t available_bytes() const { return memory_bytes - foreign_bytes; }
};

// Throws Error(kData) when the file is not a valid device file. One that is like another is read with that.
DeviceFile read_device_file(const std::string& path);
nlohmann::ordered_json to_json(const DeviceFile& device);
// Returns the text of the file: the JSON with one curve a line.
std::string file_text(const DeviceFile& device);
std::string to_text(const DeviceFile& file);

}  // namespace vitrail
