// The parts of running a program that need no kernel: memory of collectives, their times, pieces of a
// recording, slow ranks, transfers.
#include <gtest/gtest.h>

#include <numeric>

#include "backend/cpu/kernels.h"
#include "runtime/collective_runners.h"
#include "runtime/collectives.h"
#include "runtime/recorded_pieces.h"
#include "runtime/slow_device.h"
#include "runtime/transfer.h"

namespace vitrail {
namespace {

TEST(CollectiveMemory, OfEveryKind) {
  using Kind = Collective::Kind;
  const struct {
    Kind kind;
    std::vector<size_t> counts;
    size_t in, out;  // bytes of rank 1
  } rows[] = {{Kind::kAllReduce, {10}, 40, 40},
              {Kind::kReduceScatter, {1, 2, 3}, 24, 8},
              {Kind::kAllGather, {1, 2, 3}, 8, 24},
              {Kind::kAllToAll, {1, 2, 3, 4, 5, 6}, 24, 60},
              {Kind::kSend, {7}, 28, 0},
              {Kind::kReceive, {7}, 0, 28},
              {Kind::kBroadcast, {5}, 20, 20}};
  for (const auto& row : rows) {
    const MovedBytes moved = bytes_of(
        {.kind = row.kind, .dtype = DType::kF32, .in = nullptr, .out = nullptr, .counts = row.counts}, 1);
    EXPECT_EQ(moved.in, row.in) << to_string(row.kind);
    EXPECT_EQ(moved.out, row.out) << to_string(row.kind);
  }
}

// In place the parts of all ranks lie in one value, a rank's own behind those of the ranks before it.
TEST(CollectiveMemory, InPlaceARankHasItsOwnPart) {
  std::vector<uint16_t> memory(12), other(12);
  const TensorView whole(memory.data(), {DType::kBF16, {{'D', 12}}}), apart(other.data(), whole.desc());
  const auto placed = [&](CollectiveKind kind, bool in_place) {
    const CollectiveOp op({.kind = kind,
                           .axes = Axis::kData,
                           .counts = kind == CollectiveKind::kAllReduce ? std::vector<size_t>{12}
                                                                        : std::vector<size_t>{3, 4, 5},
                           .in_place = in_place,
                           .peer = 6,
                           .channel = 1});
    return collective_of({&op, whole, in_place ? whole : apart}, 2);
  };
  EXPECT_EQ(placed(CollectiveKind::kReduceScatter, true).in, memory.data());
  EXPECT_EQ(placed(CollectiveKind::kReduceScatter, true).out, memory.data() + 7);
  EXPECT_EQ(placed(CollectiveKind::kAllGather, true).in, memory.data() + 7);
  EXPECT_EQ(placed(CollectiveKind::kAllGather, true).out, memory.data());
  EXPECT_EQ(placed(CollectiveKind::kAllReduce, true).in, memory.data());
  EXPECT_EQ(placed(CollectiveKind::kAllReduce, true).out, memory.data());
  const Collective plain = placed(CollectiveKind::kAllGather, false);
  EXPECT_EQ(plain.in, memory.data());
  EXPECT_EQ(plain.out, other.data());
  EXPECT_EQ(plain.dtype, DType::kBF16);
  EXPECT_EQ(plain.counts, (std::vector<size_t>{3, 4, 5}));
  EXPECT_EQ(plain.peer, 6);
  EXPECT_EQ(plain.channel, 1);
}

TEST(CollectiveTimesSum, AddsEachNumberToItsOwn) {
  CollectiveTimes a, b;
  a.exposed_s = 1, a.flight_s = 4, a.kinds[2] = {3, 100, 0.5};
  b.exposed_s = 2, b.flight_s = 5, b.kinds[2] = {1, 10, 0.25}, b.kinds[5] = {7, 1000, 8};
  EXPECT_EQ(a.hidden_s(), 3);
  a.add(b);
  EXPECT_EQ(a.exposed_s, 3);
  EXPECT_EQ(a.flight_s, 9);
  EXPECT_EQ(a.kinds[2].count, 4);
  EXPECT_EQ(a.kinds[2].bytes, 110);
  EXPECT_EQ(a.kinds[2].seconds, 0.75);
  EXPECT_EQ(a.kinds[5].count, 7);
  EXPECT_EQ(a.bytes(), 1110);
  a.exposed_s = 10;
  EXPECT_EQ(a.hidden_s(), 0);
}

// Nodes that are run anew stand alone; those between them are recorded together.
TEST(Pieces, EndWhereANodeIsRunAnew) {
  const struct {
    size_t nodes;
    std::vector<size_t> apart;
    size_t recordings;
  } rows[] = {{5, {}, 1},        {5, {2}, 2}, {5, {0, 4}, 1}, {5, {1, 2}, 2},
              {3, {0, 1, 2}, 0}, {0, {}, 0},  {1, {}, 1}};
  for (const auto& row : rows) {
    RecordedPieces pieces(row.nodes, [&](size_t node) {
      return std::find(row.apart.begin(), row.apart.end(), node) != row.apart.end();
    });
    EXPECT_EQ(pieces.recordings(), row.recordings) << row.nodes << " " << row.apart.size();
  }
}

TEST(SlowRank, IsTheOneThatTheSettingNames) {
  const DeviceInfo info = cpu_device(1);
  const auto slow = [&](int rank, const char* setting) {
    const std::unique_ptr<Device> device = open_rank_device(info, rank, setting);
    return dynamic_cast<SlowDevice*>(device.get()) != nullptr;
  };
  EXPECT_TRUE(slow(1, "1:0.5"));
  EXPECT_TRUE(slow(1, "1:0.5:/some/file"));
  EXPECT_FALSE(slow(0, "1:0.5"));
  for (const char* none : {"1", "1:", "1:0", "1:-1", "x:0.5", ""}) EXPECT_FALSE(slow(1, none)) << none;
  EXPECT_FALSE(slow(1, nullptr));
}

TEST(Transfers, ReadTheFirstElementsInAnyType) {
  RankContext rank(cpu_device(1));
  const std::vector<float> given = {1, -2, 0.5f, 4};
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    std::vector<std::byte> memory(8 * size_of(dtype), std::byte{0x11});
    const TensorView view(memory.data(), {dtype, {{'D', 8}}});
    write_floats(rank, view, given);
    std::vector<float> floats(3);
    std::vector<double> doubles(8);
    read_floats(rank, view, floats);
    read_doubles(rank, view, doubles);
    EXPECT_EQ(floats, (std::vector<float>{1, -2, 0.5f})) << to_string(dtype);
    EXPECT_EQ(doubles, (std::vector<double>{1, -2, 0.5, 4, 0, 0, 0, 0})) << to_string(dtype);
    std::vector<float> many(9);
    EXPECT_THROW(read_floats(rank, view, many), Error);
    EXPECT_THROW(write_floats(rank, view, many), Error);
    EXPECT_NO_THROW(write_floats(rank, view, std::span(many).first(8)));
    std::vector<std::byte> bytes(memory.size() + 1);
    EXPECT_THROW(write_bytes(rank, view, bytes), Error);
    EXPECT_THROW(read_bytes(rank, view, bytes), Error);
    EXPECT_NO_THROW(read_bytes(rank, view, std::span(bytes).first(memory.size())));
  }
}

TEST(RankMemory, IsNoMoreThanTheDeviceHas) {
  DeviceInfo info = cpu_device(1);
  info.memory_bytes = 12345, info.name = "a desk";
  const RankContext small(info);
  EXPECT_EQ(small.available().bytes, 12345u);
  EXPECT_EQ(small.available().where, "all that a desk has");
  info.memory_bytes = uint64_t{1} << 60;
  const RankContext large(info);
  EXPECT_LT(large.available().bytes, uint64_t{1} << 60);
  EXPECT_NE(large.available().where, "all that a desk has");
}

}  // namespace
}  // namespace vitrail
