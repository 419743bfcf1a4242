// A GPU as a Device: its streams, events, memory and recordings, each a call of the plugin.
#include <algorithm>
#include <mutex>

#include "backend/cuda/kernels.h"
#include "backend/cuda/launch.h"
#include "ops/linear.h"

namespace vitrail {

namespace {

class CudaRecording : public Recording {
 public:
  CudaRecording(cuda::Session& session, void* graph) : session_(session), graph_(graph) {}
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;
  ~CudaRecording() override { cuda::api().streams.drop_graph(session_, graph_); }
  void replay() override { cuda::api().streams.replay(session_, graph_); }

 private:
  cuda::Session& session_;
  void* graph_;
};

class CudaEvent : public Event {
 public:
  explicit CudaEvent(cuda::Session& session)
      : session_(session), event_(cuda::api().streams.create_event(session)) {}
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() override { cuda::api().streams.drop_event(session_, event_); }
  void synchronize() override { cuda::api().streams.synchronize(session_, event_); }
  bool reached() override { return cuda::api().streams.reached(session_, event_); }
  void* get() const { return event_; }

 private:
  cuda::Session& session_;
  void* event_;
};

class CudaTimestamp : public Timestamp {
 public:
  explicit CudaTimestamp(cuda::Session& session)
      : session_(session), event_(cuda::api().streams.create_timestamp(session)) {}
  CudaTimestamp(const CudaTimestamp&) = delete;
  CudaTimestamp& operator=(const CudaTimestamp&) = delete;
  ~CudaTimestamp() override { cuda::api().streams.drop_event(session_, event_); }
  void synchronize() override { cuda::api().streams.synchronize(session_, event_); }
  void* get() const { return event_; }

 private:
  cuda::Session& session_;
  void* event_;
};

// The session's own stream, or an additional one that the session created.
class CudaStream : public Stream {
 public:
  CudaStream(cuda::Session& session, void* stream)
      : api_(cuda::api().streams), session_(session), stream_(stream) {}
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() override {
    if (stream_) api_.drop(session_, stream_);
  }
  void upload(void* target, const void* host, size_t bytes) override {
    api_.upload(session_, stream_, target, host, bytes);
  }
  void copy(void* target, const void* source, size_t bytes) override {
    api_.copy(session_, stream_, target, source, bytes);
  }
  void download(void* host, const void* source, size_t bytes) override {
    api_.download_later(session_, stream_, host, source, bytes);
  }
  void record(Event& event) override {
    api_.record(session_, stream_, dynamic_cast<CudaEvent&>(event).get());
  }
  void wait(const Event& event) override {
    api_.wait(session_, stream_, dynamic_cast<const CudaEvent&>(event).get());
  }
  void stamp(Timestamp& time) override {
    api_.stamp(session_, stream_, dynamic_cast<CudaTimestamp&>(time).get());
  }
  void* handle() override { return api_.handle(session_, stream_); }

 private:
  const cuda::StreamsApi& api_;
  cuda::Session& session_;
  void* stream_;  // null: the session's own
};

// The bytes that arenas leave free for kernels and graphs, which the driver loads at their first use.
constexpr size_t kForeignReserve = size_t{256} << 20;

// Page-locked host memory: the GPU reads it without the driver's copy in between.
class HostMemory : public MemorySource {
 public:
  explicit HostMemory(cuda::Session& session) : session_(session) {}
  std::byte* allocate(size_t bytes) override { return cuda::api().session.allocate_host(session_, bytes); }
  void release(std::byte* data) override { cuda::api().session.release_host(session_, data); }

 private:
  cuda::Session& session_;
};

class CudaDevice : public Device {
 public:
  explicit CudaDevice(int ordinal)
      : api_(cuda::api().session),
        streams_(cuda::api().streams),
        session_(open(ordinal)),
        stream_(session_, nullptr),
        host_memory_(session_) {}
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice() override { api_.close(&session_); }

  std::byte* allocate(size_t bytes) override { return api_.allocate(session_, bytes); }
  void release(std::byte* data) override { api_.release(session_, data); }
  bool shares_host_memory() const override { return false; }
  MemorySource* host_memory() override { return &host_memory_; }
  Stream& stream() override { return stream_; }
  std::unique_ptr<Stream> create_stream() override {
    return std::make_unique<CudaStream>(session_, streams_.create(session_, false));
  }
  std::unique_ptr<Stream> create_urgent_stream() override {
    return std::make_unique<CudaStream>(session_, streams_.create(session_, true));
  }
  std::unique_ptr<Event> create_event() override { return std::make_unique<CudaEvent>(session_); }
  std::unique_ptr<Timestamp> create_timestamp() override { return std::make_unique<CudaTimestamp>(session_); }
  std::optional<double> seconds_apart(const Timestamp& from, const Timestamp& to) override {
    const double seconds = streams_.seconds_apart(session_, dynamic_cast<const CudaTimestamp&>(from).get(),
                                                  dynamic_cast<const CudaTimestamp&>(to).get());
    return seconds < 0 ? std::nullopt : std::optional(seconds);
  }
  void make_current() override { api_.use(session_); }
  std::string identity() const override { return streams_.gpu_address(session_); }
  void* launch_handle() override { return &session_; }
  void download(void* host, const void* source, size_t bytes) override {
    streams_.download(session_, host, source, bytes);
  }
  void clear(void* target, size_t bytes) override { streams_.clear(session_, target, bytes); }
  void finish() override { streams_.finish(session_); }
  size_t free_bytes() const override { return api_.free_bytes(session_); }
  size_t usable_bytes() const override {
    const size_t free = free_bytes();
    return free > kForeignReserve ? free - kForeignReserve : 1;  // 0 would mean unknown
  }
  size_t foreign_bytes() const override { return api_.foreign_bytes(session_); }

  bool records() const override { return true; }
  void start_recording() override { streams_.start_capture(session_); }
  std::unique_ptr<Recording> end_recording() override {
    void* graph = streams_.end_capture(session_);
    return graph ? std::make_unique<CudaRecording>(session_, graph) : nullptr;
  }

 private:
  // Sessions are opened one at a time, since each measures the memory it takes.
  static cuda::Session& open(int ordinal) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    return *cuda::api().session.open(ordinal);
  }

  const cuda::SessionApi& api_;
  const cuda::StreamsApi& streams_;
  cuda::Session& session_;
  CudaStream stream_;
  HostMemory host_memory_;
};

}  // namespace

DeviceInfo planned_cuda_device(std::string name, int compute, int processors) {
  return {.backend = "cuda",
          .name = std::move(name),
          .shares_host_memory = false,
          .records_graphs = true,
          .compute = compute,
          .processors = processors};
}

DeviceInfo cuda_device(int ordinal) {
  std::string why;
  const int count = cuda::api().session.count(why);
  VT_REQUIRE(ordinal >= 0 && ordinal < count, ErrorKind::kDevice, "there is no GPU %d: this machine has %d",
             ordinal, std::max(count, 0));
  const cuda::GpuFacts gpu = cuda::api().session.facts(ordinal);
  DeviceInfo info = planned_cuda_device(gpu.name, gpu.compute, gpu.processors);
  info.memory_bytes = gpu.memory_bytes;
  info.ordinal = ordinal;
  info.l2_bytes = gpu.l2_bytes;
  return info;
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
  CudaReport report{.problem = cuda::why_unusable(), .gpus = {}, .plugin = cuda::plugin_path()};
  if (!report.problem.empty()) return report;
  const cuda::SessionApi& api = cuda::api().session;
  api.versions(report.driver, report.runtime, report.cublas);
  std::string why;
  for (int i = 0; i < api.count(why); ++i) {
    const cuda::GpuFacts gpu = api.facts(i);
    const bool fp8 = cuda::unsupported_arithmetic(Arithmetic::kFp8, {.compute = gpu.compute}).empty();
    report.gpus.push_back(strf("%s, compute capability %d.%d%s, %d multiprocessors, %.1f GiB",
                               gpu.name.c_str(), gpu.compute / 10, gpu.compute % 10, fp8 ? " (with fp8)" : "",
                               gpu.processors, static_cast<double>(gpu.memory_bytes) / (1 << 30)));
    if (const size_t free = api.free_on_gpu(i))
      report.gpus.back() += strf(", %.1f GiB free", static_cast<double>(free) / (1 << 30));
  }
  return report;
}

}  // namespace vitrail
