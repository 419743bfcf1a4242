#include "backend/device.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "base/error.h"
#include "base/rng.h"
#include "base/timing.h"
#include "tensor/narrow.h"

namespace vitrail {

namespace {

struct HostTimestamp : Timestamp {
  std::optional<Clock::time_point> at;
};

// On the host all work is done when a call returns, so streams are in order without any waiting.
class HostStream : public Stream {
 public:
  void upload(void* target, const void* host, size_t bytes) override { copy(target, host, bytes); }
  void copy(void* target, const void* source, size_t bytes) override {
    if (target != source && bytes > 0) std::memcpy(target, source, bytes);
  }
  void record(Event&) override {}
  void wait(const Event&) override {}
  void stamp(Timestamp& time) override { dynamic_cast<HostTimestamp&>(time).at = Clock::now(); }
};

class HostDevice : public Device {
 public:
  std::byte* allocate(size_t bytes) override { return process_memory().allocate(bytes); }
  void release(std::byte* data) override { process_memory().release(data); }

  bool shares_host_memory() const override { return true; }
  Stream& stream() override { return stream_; }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<HostStream>(); }
  std::unique_ptr<Event> create_event() override { return std::make_unique<Event>(); }
  void download(void* host, const void* source, size_t bytes) override { copy(host, source, bytes); }
  void clear(void* target, size_t bytes) override {
    if (bytes > 0) std::memset(target, 0, bytes);
  }
  void finish() override {}
  std::unique_ptr<Timestamp> create_timestamp() override { return std::make_unique<HostTimestamp>(); }
  std::optional<double> seconds_apart(const Timestamp& from, const Timestamp& to) override {
    const auto &begin = dynamic_cast<const HostTimestamp&>(from).at,
               &end = dynamic_cast<const HostTimestamp&>(to).at;
    if (!begin || !end) return {};
    return std::chrono::duration<double>(*end - *begin).count();
  }

 private:
  HostStream stream_;
};

}  // namespace

double awaited_seconds(Device& device, const Timestamp& from, Timestamp& to) {
  to.synchronize();
  const std::optional<double> seconds = device.seconds_apart(from, to);
  VT_CHECK(seconds, "a time was never set");
  return *seconds;
}

double timed_seconds(Device& device, const std::function<void()>& work) {
  const auto begin = device.create_timestamp(), end = device.create_timestamp();
  device.stamp(*begin);
  work();
  device.stamp(*end);
  return awaited_seconds(device, *begin, *end);
}

std::unique_ptr<Recording> record(Device& device, const std::function<void()>& work) {
  device.start_recording();
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  std::unique_ptr<Recording> recording;
  try {
    recording = device.end_recording();
  } catch (const Error&) {
    if (!failure) throw;  // else the first failure says why
    std::rethrow_exception(failure);
  }
  // Launches of a spoilt recording (null) fail as well, each with its library's own message. The caller may
  // try again, so only the failure of a whole recording is thrown.
  if (failure && recording) std::rethrow_exception(failure);
  return recording;
}

namespace {
// Converts f32 values to a type; bytes are e4m3 codes.
void convert(const std::vector<float>& values, DType dtype, std::vector<std::byte>& target) {
  if (dtype != DType::kU8)
    return convert_floats(values.data(), DType::kF32, target.data(), dtype, values.size());
  for (size_t i = 0; i < values.size(); ++i) target[i] = std::byte{f32_to_e4m3(values[i])};
}
}  // namespace

void fill_for_timing(Device& device, std::byte* target, DType dtype, size_t elems) {
  constexpr size_t kDrawn = size_t{1} << 18;
  std::vector<float> values(std::min(elems, kDrawn));
  for (size_t i = 0; i < values.size(); ++i) values[i] = counter_uniform(name_key("peak"), i);
  std::vector<std::byte> drawn(values.size() * size_of(dtype));
  convert(values, dtype, drawn);
  device.upload(target, drawn.data(), drawn.size());
  const size_t bytes = elems * size_of(dtype);
  for (size_t done = drawn.size(); done < bytes; done *= 2)
    device.copy(target + done, target, std::min(done, bytes - done));
}

std::unique_ptr<Device> open_host_device() {
  return std::make_unique<HostDevice>();
}

}  // namespace vitrail
