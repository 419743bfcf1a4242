#include "backend/device.h"

#include <chrono>
#include <cstring>

#include "backend/cuda/kernels.h"
#include "base/error.h"
#include "tensor/buffer.h"

namespace vitrail {

namespace {

class HostDevice : public Device {
 public:
  std::byte* allocate(size_t bytes) override {
    return new (std::align_val_t{Buffer::kAlignment}) std::byte[bytes];
  }
  void release(std::byte* data) override { operator delete[](data, std::align_val_t{Buffer::kAlignment}); }

  bool shares_host_memory() const override { return true; }
  void upload(void* target, const void* host, size_t bytes) override { copy(target, host, bytes); }
  void download(void* host, const void* source, size_t bytes) override { copy(host, source, bytes); }
  void copy(void* target, const void* source, size_t bytes) override {
    if (target != source && bytes > 0) std::memcpy(target, source, bytes);
  }
  void clear(void* target, size_t bytes) override {
    if (bytes > 0) std::memset(target, 0, bytes);
  }
  void finish() override {}

  void mark(size_t slot) override {
    if (slot >= marks_.size()) marks_.resize(slot + 1);
    marks_[slot] = Clock::now();
  }
  double seconds_between(size_t from, size_t to) override {
    return std::chrono::duration<double>(marks_.at(to) - marks_.at(from)).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> marks_;
};

}  // namespace

std::unique_ptr<Recording> record(Device& device, const std::function<void()>& work) {
  device.start_recording();
  try {
    work();
  } catch (...) {
    try {
      device.end_recording();
    } catch (const Error&) {  // the first failure says why
    }
    throw;
  }
  return device.end_recording();
}

std::unique_ptr<Device> open_device(const DeviceInfo& info) {
  if (info.kind == DeviceKind::kCuda) return open_cuda_device(info);
  return std::make_unique<HostDevice>();
}

}  // namespace vitrail
