// Uploads on a stream beside the work of a GPU: the bytes copied are the bytes sent, however far the two
// streams drift apart.
#include <algorithm>
#include <vector>

#include "backend/device.h"
#include "cuda_test.h"
#include "tensor/buffer.h"

namespace vitrail {
namespace {

class CudaStreams : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    device_ = open_device(cuda_device());
    beside_ = device_->create_stream();
    landed_ = device_->create_event();
    taken_ = device_->create_event();
  }

  Buffer on_gpu(size_t bytes) { return Buffer(bytes, Category::kTransient, device_.get()); }
  // Page-locked memory in as many parts, each filled with its number.
  Buffer numbered(size_t parts, size_t bytes) {
    Buffer host(parts * bytes, Category::kStaging, device_->host_memory());
    for (size_t i = 0; i < parts; ++i)
      std::fill_n(host.data() + i * bytes, bytes, static_cast<std::byte>(i + 1));
    return host;
  }
  void expect_numbered(const Buffer& found, size_t parts, size_t bytes) {
    std::vector<std::byte> host(parts * bytes);
    device_->download(host.data(), found.data(), host.size());
    for (size_t i = 0; i < parts; ++i)
      EXPECT_EQ(
          std::count(host.begin() + static_cast<ptrdiff_t>(i * bytes),
                     host.begin() + static_cast<ptrdiff_t>((i + 1) * bytes), static_cast<std::byte>(i + 1)),
          static_cast<ptrdiff_t>(bytes))
          << "round " << i << " of parts of " << bytes;
  }

  // Some hundred microseconds of work.
  void keep_busy(const Buffer& from, const Buffer& to) {
    for (int i = 0; i < 8; ++i) device_->copy(to.data(), from.data(), from.bytes());
  }

  void send(const Buffer& landing, const std::byte* host, size_t bytes) {
    beside_->upload(landing.data(), host, bytes);
    beside_->record(*landed_);
  }
  void take(std::byte* target, const Buffer& landing, size_t bytes) {
    device_->stream().wait(*landed_);
    device_->copy(target, landing.data(), bytes);
    device_->stream().record(*taken_);
    beside_->wait(*taken_);
  }

  static constexpr size_t kRounds = 100, kBusy = size_t{64} << 20;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> beside_;
  std::unique_ptr<Event> landed_, taken_;
};

// The host runs ahead of both streams: nothing but their own order keeps a part in the prefetch buffer until
// it is copied, and work from reading a part that has not arrived.
TEST_F(CudaStreams, EveryPartIsTakenOnce) {
  for (size_t bytes : {size_t{1}, size_t{4099}, size_t{1} << 20}) {
    const Buffer host = numbered(kRounds, bytes), landing = on_gpu(bytes), target = on_gpu(bytes);
    const Buffer results = on_gpu(kRounds * bytes), busy = on_gpu(kBusy), other = on_gpu(kBusy);
    for (size_t i = 0; i < kRounds; ++i) {
      if (i % 3 == 0) keep_busy(busy, other);  // the uploads overtake the work, or wait for it
      send(landing, host.data() + i * bytes, bytes);
      if (i % 5 == 0) keep_busy(other, busy);
      take(target.data(), landing, bytes);
      device_->copy(results.data() + i * bytes, target.data(), bytes);
    }
    expect_numbered(results, kRounds, bytes);
  }
}

// This is the order of a training step: the next part is sent while a recording that reads the present one is
// replayed.
TEST_F(CudaStreams, RecordingsReadWhatWasTaken) {
  constexpr size_t kBytes = size_t{3} << 20, kParts = 50;
  const Buffer host = numbered(kParts, kBytes), landing = on_gpu(kBytes), target = on_gpu(kBytes);
  const Buffer result = on_gpu(kBytes), results = on_gpu(kParts * kBytes);
  const Buffer busy = on_gpu(kBusy), other = on_gpu(kBusy);
  const auto work = [&] {
    keep_busy(busy, other);
    device_->copy(result.data(), target.data(), kBytes);
  };
  work();
  const std::unique_ptr<Recording> recording = record(*device_, work);
  send(landing, host.data(), kBytes);
  for (size_t i = 0; i < kParts; ++i) {
    take(target.data(), landing, kBytes);
    recording->replay();
    if (i + 1 < kParts) send(landing, host.data() + (i + 1) * kBytes, kBytes);
    device_->copy(results.data() + i * kBytes, result.data(), kBytes);
  }
  expect_numbered(results, kParts, kBytes);
}

// The host's bytes may be overwritten once either call has returned.
TEST_F(CudaStreams, FinishAndTheWorkBehindATakeWaitForUploads) {
  constexpr size_t kBytes = size_t{64} << 20, kParts = 10;
  const Buffer host(kBytes, Category::kStaging, device_->host_memory());
  const Buffer landing = on_gpu(kBytes), results = on_gpu(kParts * kBytes);
  for (size_t i = 0; i < kParts; ++i) {
    std::fill_n(host.data(), kBytes, static_cast<std::byte>(i + 1));
    send(landing, host.data(), kBytes);
    if (i % 2 == 0) {
      device_->finish();
      std::fill_n(host.data(), kBytes, std::byte{0xff});
    }
    take(results.data() + i * kBytes, landing, kBytes);
    std::byte last;
    device_->download(&last, results.data() + (i + 1) * kBytes - 1, 1);
    EXPECT_EQ(last, static_cast<std::byte>(i + 1));
  }
  expect_numbered(results, kParts, kBytes);
}

// The driver takes its memory once for a process, so what a first session holds is not counted again.
TEST_F(CudaStreams, EverySessionTellsWhatTheDriverTook) {
  const size_t taken = device_->foreign_bytes();
  EXPECT_GT(taken, 0u);
  const Buffer held = on_gpu(kBusy);
  device_->clear(held.data(), held.bytes());
  device_->finish();
  EXPECT_EQ(open_device(cuda_device())->foreign_bytes(), taken);
}

}  // namespace
}  // namespace vitrail
