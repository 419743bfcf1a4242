#include "backend/cuda/kernels.h"

#include <algorithm>

#include "backend/cuda/launch.h"
#include "ops/linear.h"

namespace vitrail {

namespace {

// Families may each have kernels of one op ("fused" above all): asked in this order.
std::vector<OpKernels> all_kernels() {
  std::vector<OpKernels> list;
  for (const auto& family : {cuda::product_kernels(), cuda::fp8_kernels(), cuda::attention_kernels(),
                             cuda::norm_kernels(), cuda::row_kernels(), cuda::token_kernels(),
                             cuda::picture_kernels(), cuda::loss_kernels(), cuda::update_kernels()})
    for (const OpKernels& row : family) {
      const auto same =
          std::find_if(list.begin(), list.end(), [&](const OpKernels& r) { return r.op == row.op; });
      if (same == list.end())
        list.push_back(row);
      else
        same->kernels.insert(same->kernels.end(), row.kernels.begin(), row.kernels.end());
    }
  return list;
}

// What is rounded to fp8 is best rounded by what makes it.
bool is_fp8(const Op& product) {
  return arithmetic_of(product) == Arithmetic::kFp8;
}

class CudaBackend : public Backend {
 public:
  const char* name() const override { return "cuda"; }
  RewriteTraits fusing() const override { return {.norms = is_fp8, .chains = is_fp8, .few_launches = true}; }
  std::string lacks(Arithmetic arithmetic, const DeviceInfo& device) const override {
    return cuda::lacks_arithmetic(arithmetic, device);
  }
  std::optional<TuneKey> tune_key(const NodeView& node, const DeviceInfo& device) const override {
    return cuda::product_key(node, device);
  }
  const std::vector<OpKernels>& kernels() const override {
    static const std::vector<OpKernels> list = all_kernels();
    return list;
  }
};

// Of all sessions: opening one, allocating, and the first launch of a kernel each end another's recording.
std::mutex& turn() {
  static std::mutex mutex;
  return mutex;
}

class CudaRecording : public Recording {
 public:
  CudaRecording(cuda::Session& session, void* graph) : session_(session), graph_(graph) {}
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;
  ~CudaRecording() override {
    const std::lock_guard lock(turn());
    cuda::api().session.drop(session_, graph_);
  }
  void replay() override { cuda::api().session.replay(session_, graph_); }

 private:
  cuda::Session& session_;
  void* graph_;
};

// The driver loads kernels and graphs as they are first used; arenas leave them this much.
constexpr size_t kForeignReserve = size_t{256} << 20;

// Page-locked: the card fetches from it without the driver's copy in between.
class HostMemory : public MemorySource {
 public:
  explicit HostMemory(cuda::Session& session) : session_(session) {}
  std::byte* allocate(size_t bytes) override {
    const std::lock_guard lock(turn());
    return cuda::api().session.allocate_host(session_, bytes);
  }
  void release(std::byte* data) override {
    const std::lock_guard lock(turn());
    cuda::api().session.release_host(session_, data);
  }

 private:
  cuda::Session& session_;
};

class CudaDevice : public Device {
 public:
  explicit CudaDevice(int ordinal)
      : api_(cuda::api().session), session_(open(ordinal)), host_memory_(session_) {}
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice() override {
    const std::lock_guard lock(turn());
    api_.close(&session_);
  }

  std::byte* allocate(size_t bytes) override {
    const std::lock_guard lock(turn());
    return api_.allocate(session_, bytes);
  }
  void release(std::byte* data) override {
    const std::lock_guard lock(turn());
    api_.release(session_, data);
  }
  bool shares_host_memory() const override { return false; }
  MemorySource* host_memory() override { return &host_memory_; }
  void upload(void* target, const void* host, size_t bytes) override {
    api_.upload(session_, target, host, bytes);
  }
  void download(void* host, const void* source, size_t bytes) override {
    api_.download(session_, host, source, bytes);
  }
  void copy(void* target, const void* source, size_t bytes) override {
    api_.copy(session_, target, source, bytes);
  }
  void clear(void* target, size_t bytes) override { api_.clear(session_, target, bytes); }
  void finish() override { api_.finish(session_); }
  void upload_aside(void* landing, const void* host, size_t bytes) override {
    api_.upload_aside(session_, landing, host, bytes);
  }
  void take(void* target, const void* landing, size_t bytes) override {
    api_.take(session_, target, landing, bytes);
  }
  size_t free_bytes() const override { return api_.free_bytes(session_); }
  size_t usable_bytes() const override {
    const size_t free = free_bytes();
    return free > kForeignReserve ? free - kForeignReserve : 1;  // 0 would mean unknown
  }
  size_t foreign_bytes() const override { return api_.foreign_bytes(session_); }
  void* stream() override { return &session_; }

  std::unique_lock<std::mutex> alone() override { return std::unique_lock(turn()); }
  bool records() const override { return true; }
  void start_recording() override {
    std::unique_lock lock = alone();
    api_.start_capture(session_);
    recording_ = std::move(lock);
  }
  std::unique_ptr<Recording> end_recording() override {
    const std::unique_lock lock = std::move(recording_);
    return std::make_unique<CudaRecording>(session_, api_.end_capture(session_));
  }
  void mark(size_t slot) override { api_.mark(session_, slot); }
  double seconds_between(size_t from, size_t to) override { return api_.seconds_between(session_, from, to); }

 private:
  static cuda::Session& open(int ordinal) {
    const std::lock_guard lock(turn());
    return *cuda::api().session.open(ordinal);
  }

  const cuda::SessionApi& api_;
  cuda::Session& session_;
  HostMemory host_memory_;
  std::unique_lock<std::mutex> recording_;  // while it records
};

}  // namespace

const Backend& cuda_backend() {
  static const CudaBackend backend;
  return backend;
}

DeviceInfo cuda_device(int ordinal) {
  std::string why;
  const int count = cuda::api().session.count(why);
  VT_REQUIRE(ordinal >= 0 && ordinal < count, ErrorKind::kDevice, "there is no GPU %d: this machine has %d",
             ordinal, std::max(count, 0));
  const cuda::CardFacts card = cuda::api().session.facts(ordinal);
  return {.kind = DeviceKind::kCuda,
          .name = card.name,
          .memory_bytes = card.memory_bytes,
          .ordinal = ordinal,
          .compute = card.compute,
          .processors = card.processors,
          .l2_bytes = card.l2_bytes};
}

std::unique_ptr<Device> open_cuda_device(const DeviceInfo& info) {
  return std::make_unique<CudaDevice>(info.ordinal);
}

std::string cublas_version() {
  std::string driver, runtime, cublas;
  cuda::api().session.versions(driver, runtime, cublas);
  return cublas;
}

CudaReport cuda_report() {
  CudaReport report{.problem = cuda::why_unusable(), .cards = {}, .plugin = cuda::plugin_path()};
  if (!report.problem.empty()) return report;
  const cuda::SessionApi& api = cuda::api().session;
  api.versions(report.driver, report.runtime, report.cublas);
  std::string why;
  for (int i = 0; i < api.count(why); ++i) {
    const cuda::CardFacts card = api.facts(i);
    const bool fp8 = cuda::lacks_arithmetic(Arithmetic::kFp8, {.compute = card.compute}).empty();
    report.cards.push_back(strf("%s, compute capability %d.%d%s, %d multiprocessors, %.1f GiB",
                                card.name.c_str(), card.compute / 10, card.compute % 10,
                                fp8 ? " (with fp8)" : "", card.processors,
                                static_cast<double>(card.memory_bytes) / (1 << 30)));
    if (const size_t free = api.free_on_card(i))
      report.cards.back() += strf(", %.1f GiB free", static_cast<double>(free) / (1 << 30));
  }
  return report;
}

}  // namespace vitrail
