// The update of a step whose masters, moments and averages lie on the host, before it runs: a host program a
// bucket of parameters, and which bytes travel between the device and the host's staging memory for each.
// Buckets take turns in two staging places, so that one's gradients come down and another's copies go up
// while a third is updated. Allocates nothing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "passes/offload.h"
#include "plan/kernel_choice.h"

namespace vitrail {

// Host values that every bucket's update reads: what the device's control program decided, and its inputs.
inline constexpr const char* kHostControl = "offload/control";
inline constexpr const char* kHostHyper = "offload/hyper";

struct OffloadPlan {
  static constexpr size_t kPlaces = 2;

  // Bytes that lie together on both sides.
  struct Span {
    std::string first;  // the device's value that it begins with
    size_t host = 0;    // where it begins in the staging place
    size_t bytes = 0;
  };
  struct Bucket {
    std::vector<Span> gradients, copies;
    std::optional<ExecutionPlan> update;   // of trained parameters
    std::optional<ExecutionPlan> refresh;  // fills the copies from the masters
    std::optional<ExecutionPlan> average;  // fills them from the averages, where there are some
  };
  std::vector<Bucket> buckets;          // those that are trained first
  size_t trained = 0;                   // buckets
  bool sends = false;                   // the copies lie on the device and go up; else they lie on the host
  std::optional<ExecutionPlan> gather;  // on the device: ranks give each other what they have updated
  DeviceInfo device;                    // the host, as its programs see it

  // The names of the two staging places of a bucket.
  static std::string gradients_at(size_t bucket) { return place("gradients", bucket); }
  static std::string copies_at(size_t bucket) { return place("copies", bucket); }

  std::vector<const ExecutionPlan*> host_programs() const;
  size_t transient_bytes() const;  // of the host programs, which take turns in one arena

 private:
  static std::string place(const char* what, size_t bucket) {
    return std::string("offload/") + what + "/" + std::to_string(bucket % kPlaces);
  }
};

// The host's parts of the programs that change persistent values.
struct HostPrograms {
  Program update, refresh, average;
};

// Plans them in buckets of about `bucket_bytes` of gradients (0: a quarter of them, 25 MiB at most), for the
// kernels of `backend` on the host. What the device holds of them is placed in `layout` where it has no place
// yet, and what lies on the host.
OffloadPlan plan_offload(const HostPrograms& programs, size_t bucket_bytes,
                         const std::shared_ptr<PersistentLayout>& layout, const Backend& backend,
                         const DeviceInfo& host);

}  // namespace vitrail
