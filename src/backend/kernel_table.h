// Says which kernels are fastest for GEMMs of given sizes, as measured on one machine by `bench tune`. It is
// plain data that goes to the kernel choice with the device; knows no file and no processor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace vitrail {

// The facts that the speed of a GEMM's kernels depends on. A fused node counts as the GEMM in it.
struct TuneKey {
  std::string op;  // "linear"
  int64_t m = 0, n = 0, k = 0;
  int threads = 1;  // of a processor; 0: of a GPU
  // Says what the device's kernels are for: on a processor its IsaLevel, on a GPU DeviceInfo::compute.
  int level = 0;

  auto tied() const { return std::tie(op, level, threads, k, n, m); }
  bool operator<(const TuneKey& other) const { return tied() < other.tied(); }
  bool operator==(const TuneKey& other) const { return tied() == other.tied(); }
};

class KernelTable {
 public:
  struct Row {
    TuneKey key;
    std::vector<std::string> kernels;  // names, fastest first
  };

  // Adds a row, or replaces the one with the same key.
  void set(Row row);
  // The kernels measured for a key; null: the table has no such row.
  const std::vector<std::string>* find(const TuneKey& key) const;
  bool names(std::string_view kernel) const;              // in any row
  const std::vector<Row>& rows() const { return rows_; }  // in the order of keys
  // A hash of the table's contents; 0 when it is empty.
  uint64_t hash() const;

 private:
  std::vector<Row> rows_;
};

}  // namespace vitrail
