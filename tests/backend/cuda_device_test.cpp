// What a GPU's device and the measurements of its peaks ask of the plugin, a synthetic one here. No GPU is
// needed.
#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "backend/cuda/kernels.h"
#include "backend/cuda/peak.h"
#include "backend/cuda/plugin.h"

namespace vitrail {
namespace {

using cuda::Api;
using cuda::GemmCall;
using cuda::Session;

// What the synthetic plugin answers, and what it was asked.
struct FakePlugin {
  size_t free = 0;
  std::optional<double> apart;  // without it a piece of work takes a millisecond
  void* graph = nullptr;
  int opened = -1, work = 0;
  std::map<void*, int> stamped;  // the work done before
  std::vector<void*> dropped;
  std::vector<std::pair<std::string, void*>> streams;
  std::vector<size_t> copied;
  GemmCall gemm;
};
FakePlugin plugin;
int urgent_stream, other_stream;

void answer_sessions(cuda::SessionApi& api) {
  api.count = [](std::string&) { return 3; };
  api.facts = [](int ordinal) {
    return cuda::GpuFacts{strf("GPU %d", ordinal), 90, 132, size_t{8} << 30, size_t{50} << 20};
  };
  api.open = [](int ordinal) {
    plugin.opened = ordinal;
    static std::byte session;
    return reinterpret_cast<Session*>(&session);
  };
  api.close = [](Session*) {};
  api.use = [](Session&) {};
  // Nobody writes there; the next multiple of 256 bytes is 192 further on.
  api.allocate = [](Session&, size_t) { return std::bit_cast<std::byte*>(uintptr_t{1} << 40 | 64); };
  api.release = [](Session&, std::byte*) {};
  api.free_bytes = [](Session&) { return plugin.free; };
}

void answer_streams(cuda::StreamsApi& api) {
  api.create = [](Session&, bool urgent) -> void* { return urgent ? &urgent_stream : &other_stream; };
  api.drop = [](Session&, void* stream) { plugin.dropped.push_back(stream); };
  api.upload = [](Session&, void* stream, void*, const void*, size_t) {
    plugin.streams.emplace_back("upload", stream);
  };
  api.download_later = [](Session&, void* stream, void*, const void*, size_t) {
    plugin.streams.emplace_back("download", stream);
  };
  api.copy = [](Session&, void* stream, void*, const void*, size_t bytes) {
    plugin.streams.emplace_back("copy", stream);
    plugin.copied.push_back(bytes);
    ++plugin.work;
  };
  api.clear = [](Session&, void*, size_t) {};
  api.end_capture = [](Session&) { return plugin.graph; };
  api.replay = [](Session&, void* graph) { plugin.streams.emplace_back("replay", graph); };
  api.drop_graph = [](Session&, void* graph) { plugin.dropped.push_back(graph); };
  api.create_timestamp = [](Session&) -> void* { return new int; };
  api.drop_event = [](Session&, void* event) { delete static_cast<int*>(event); };
  api.stamp = [](Session&, void*, void* timestamp) { plugin.stamped[timestamp] = plugin.work; };
  api.synchronize = [](Session&, void*) {};
  api.seconds_apart = [](Session&, void* from, void* to) {
    return plugin.apart.value_or(1e-3 * (plugin.stamped[to] - plugin.stamped[from]));
  };
}

class CudaDeviceAsks : public ::testing::Test {
 protected:
  void SetUp() override {
    plugin = {};
    answer_sessions(api_.session);
    answer_streams(api_.streams);
    api_.gemms.gemm = [](Session&, const GemmCall& call) {
      plugin.gemm = call;
      ++plugin.work;
    };
    cuda::replace_api(&api_);
    device_ = open_cuda_device(cuda_device(2));
  }
  void TearDown() override {
    device_.reset();
    cuda::replace_api(nullptr);
  }

  Api api_ = {};
  std::unique_ptr<Device> device_;
};

TEST_F(CudaDeviceAsks, OfTheGpuThatIsNamed) {
  EXPECT_EQ(plugin.opened, 2);
  const DeviceInfo info = cuda_device(1);
  EXPECT_EQ(info.name, "GPU 1");
  EXPECT_EQ(std::tuple(info.ordinal, info.compute, info.processors), std::tuple(1, 90, 132));
  EXPECT_EQ(info.memory_bytes, size_t{8} << 30);
  EXPECT_EQ(info.l2_bytes, size_t{50} << 20);
  for (const int none : {-1, 3}) EXPECT_THROW(cuda_device(none), Error) << none;
}

TEST_F(CudaDeviceAsks, ForLessMemoryThanIsFree) {
  const size_t kept = size_t{256} << 20;
  for (const auto& [free, usable] : {std::pair<size_t, size_t>{kept + 5, 5}, {kept, 1}, {1, 1}}) {
    plugin.free = free;
    EXPECT_EQ(device_->usable_bytes(), usable) << "0 would mean that nobody knows";
  }
}

TEST_F(CudaDeviceAsks, EachStreamForItsOwnWork) {
  char byte = 0;
  {
    const std::unique_ptr<Stream> other = device_->create_stream(), urgent = device_->create_urgent_stream();
    other->upload(&byte, &byte, 1);
    urgent->copy(&byte, &byte, 1);
    other->download(&byte, &byte, 1);
    device_->stream().upload(&byte, &byte, 1);
  }
  const std::vector<std::pair<std::string, void*>> wanted = {
      {"upload", &other_stream}, {"copy", &urgent_stream}, {"download", &other_stream}, {"upload", nullptr}};
  EXPECT_EQ(plugin.streams, wanted);
  EXPECT_EQ(plugin.dropped, (std::vector<void*>{&urgent_stream, &other_stream}));
  plugin.dropped.clear();
  device_.reset();
  EXPECT_EQ(plugin.dropped, std::vector<void*>()) << "its own is the session's";
}

TEST_F(CudaDeviceAsks, WhatIsNotThereIsNone) {
  EXPECT_EQ(device_->end_recording(), nullptr) << "another thread spoilt it";
  plugin.graph = &other_stream;
  device_->end_recording()->replay();
  EXPECT_EQ(plugin.streams.back(), std::pair(std::string("replay"), plugin.graph));
  EXPECT_EQ(plugin.dropped, std::vector<void*>{plugin.graph});
  const std::unique_ptr<Timestamp> from = device_->create_timestamp(), to = device_->create_timestamp();
  for (const auto& [apart, seconds] : {std::pair{-1.0, std::optional<double>()}, {0.0, 0.0}, {0.5, 0.5}}) {
    plugin.apart = apart;
    EXPECT_EQ(device_->seconds_apart(*from, *to), seconds);
  }
}

// A GEMM takes a millisecond whatever its size, so the rate tells the size.
TEST_F(CudaDeviceAsks, ForThePeakOfEveryType) {
  const struct {
    const char* name;
    DType in, out;
    bool tf32, scaled;
  } rows[] = {{"f32", DType::kF32, DType::kF32, false, false},
              {"tf32", DType::kF32, DType::kF32, true, false},
              {"bf16", DType::kBF16, DType::kBF16, false, false},
              {"f16", DType::kF16, DType::kF16, false, false},
              {"fp8", DType::kU8, DType::kBF16, false, true}};
  for (const auto& row : rows)
    for (const auto& [side, spare] : {std::pair<int64_t, size_t>{8192, 0}, {4096, 0}, {512, 0}, {512, 9}}) {
      plugin.free = static_cast<size_t>(6 * side * side) * size_of(row.out) / (spare > 0 ? 64 : 1);
      const double flops = 2.0 * static_cast<double>(side * side * side);
      EXPECT_DOUBLE_EQ(measure_cuda_peak_gflops(*device_, row.name), flops / 1e-3 / 1e9) << row.name;
      const GemmCall& call = plugin.gemm;
      EXPECT_EQ(std::tuple(call.m, call.n, call.k), std::tuple(side, side, side));
      EXPECT_EQ(std::tuple(call.a.dtype, call.b.dtype, call.d.dtype), std::tuple(row.in, row.in, row.out));
      EXPECT_EQ(std::tuple(call.tf32, call.a_scales != nullptr, call.b_scales != nullptr),
                std::tuple(row.tf32, row.scaled, row.scaled));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(call.workspace), (uintptr_t{1} << 40) + 256);
    }
  EXPECT_THROW(measure_cuda_peak_gflops(*device_, "int8"), Error);
}

// What is copied is read and written.
TEST_F(CudaDeviceAsks, ForTheRateOfACopy) {
  const size_t least = size_t{1} << 16, most = size_t{1} << 30;
  for (const auto& [free, bytes] :
       {std::pair{size_t{1}, least}, {size_t{8} * 3 * least + 9, 3 * least}, {size_t{1} << 40, most}}) {
    plugin.free = free;
    EXPECT_DOUBLE_EQ(measure_cuda_copy_gbps(*device_), 2.0 * static_cast<double>(bytes) / 1e-3 / 1e9);
    EXPECT_EQ(plugin.copied.back(), bytes);
  }
}

}  // namespace
}  // namespace vitrail
