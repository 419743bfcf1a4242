#include "runtime/persistent_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "backend/cpu/kernels.h"
#include "backend/ref/kernels.h"
#include "backend/wrapped_device.h"
#include "graph/builder.h"
#include "ops/bias.h"
#include "ops/linear.h"
#include "runtime/prefetch.h"
#include "thrown.h"

namespace vitrail {
namespace {

// x [B D] -> two linears with weights of their own, one shared bias.
Program two_gemms(DType dtype) {
  Builder b;
  const Dim d('D', 6), f('F', 5);
  const ValueId x = b.input("x", {dtype, {{'B', 2}, d}}), bias = b.parameter("bias", {dtype, {f}});
  for (const char* name : {"first", "second"}) {
    const ValueId y = b.add<LinearOp>({x, b.parameter(name, {dtype, {f, d}})}, name);
    b.output(name, b.add<BiasOp>({y, bias}, std::string(name) + ".bias"));
  }
  return b.finish();
}

void fill_by_name(const std::string& name, const Shape&, std::span<float> target) {
  for (size_t i = 0; i < target.size(); ++i)
    target[i] = static_cast<float>(name.size()) + 0.25f * static_cast<float>(i);
}

TEST(PersistentStore, HoldsPlainParametersAsTheSourceGaveThem) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    const ExecutionPlan plan = plan_execution(two_gemms(dtype), ref_backend(), cpu_device(1));
    RankContext rank(plan.device);
    PersistentStore store(plan, rank);
    store.load(plan, fill_by_name);
    for (ValueId id = 0; id < static_cast<ValueId>(plan.program.values.size()); ++id) {
      const Value& value = plan.program.values[id];
      if (value.kind != ValueKind::kParameter) continue;
      std::vector<float> wanted(static_cast<size_t>(value.desc.elems()));
      fill_by_name(value.name, value.desc.shape, wanted);
      std::vector<float> found(wanted.size());
      convert_floats(store.view(value.name).data(), dtype, found.data(), DType::kF32, found.size());
      EXPECT_EQ(found, wanted) << value.name << " in " << to_string(dtype);
    }
  }
}

TEST(PersistentStore, AsksForEachParameterOnceWithItsLogicalShape) {
  const ExecutionPlan plan = plan_execution(two_gemms(DType::kF32), cpu_backend(), cpu_device(2));
  RankContext rank(plan.device);
  PersistentStore store(plan, rank);
  std::mutex mutex;  // several threads ask, in any order
  std::multiset<std::string> asked;
  store.load(plan, [&](const std::string& name, const Shape& shape, std::span<float> target) {
    {
      const std::lock_guard lock(mutex);
      asked.insert(name + to_string(shape));
    }
    EXPECT_EQ(target.size(), static_cast<size_t>(shape.elems()));
    fill_by_name(name, shape, target);
  });
  EXPECT_EQ(asked, (std::multiset<std::string>{"bias[F5]", "first[F5 D6]", "second[F5 D6]"}));
}

TEST(PersistentStore, AFailingSourcePassesItsErrorOnAndLeaksNothing) {
  const size_t before = Buffer::allocated(Category::kParameters);
  {
    const ExecutionPlan plan = plan_execution(two_gemms(DType::kF32), cpu_backend(), cpu_device(1));
    RankContext rank(plan.device);
    PersistentStore store(plan, rank);
    EXPECT_THROW(
        store.load(plan, [](const std::string&, const Shape&,
                            std::span<float>) { throw Error(ErrorKind::kData, "the file ends here"); }),
        Error);
    EXPECT_EQ(Buffer::allocated(Category::kStaging), 0u);
  }
  EXPECT_EQ(Buffer::allocated(Category::kParameters), before);
}

// Wherever a value lies, clearing it leaves zeros in it and nothing else changed.
TEST(PersistentStore, ClearsValuesOfEveryHome) {
  const auto layout = std::make_shared<PersistentLayout>();
  const TensorDesc row{DType::kF32, {{'D', 5}}};
  const std::pair<const char*, Home> values[] = {
      {"device", Home::kDevice}, {"host", Home::kHost}, {"locked", Home::kLocked}};
  for (const auto& [name, home] : values)
    for (const char* which : {"", "2"})
      layout->place({std::string(name) + which, row, ValueKind::kState, Category::kOptimizer}, home);
  RankContext rank(cpu_device(1));
  const PersistentStore store(layout, rank);
  const std::vector<float> filled = {1, 2, 3, 4, 5};
  const auto held = [&](const std::string& name) {
    std::vector<float> found(filled.size());
    store.read(layout->at(name), std::as_writable_bytes(std::span(found)));
    return found;
  };
  for (const auto& [name, home] : values) {
    for (const char* which : {"", "2"}) store.write_floats(layout->at(std::string(name) + which), filled);
    EXPECT_EQ(held(name), filled) << name;
    store.clear(layout->at(name));
    EXPECT_EQ(held(name), std::vector<float>(filled.size())) << name;
    EXPECT_EQ(held(std::string(name) + "2"), filled) << name;
  }
}

// This machine, whose memory is never clean; it counts the streams that it is asked for.
class DirtyDevice : public WrappedDevice {
 public:
  std::byte* allocate(size_t bytes) override {
    std::byte* const data = WrappedDevice::allocate(bytes);
    if (data) std::fill_n(data, bytes, std::byte{0xab});
    return data;
  }
  std::unique_ptr<Stream> create_stream() override {
    ++streams;
    return WrappedDevice::create_stream();
  }
  int streams = 0;
};

std::shared_ptr<PersistentLayout> rows_in_every_home(DType dtype) {
  auto layout = std::make_shared<PersistentLayout>();
  for (const auto& [name, home] :
       {std::pair{"device", Home::kDevice}, {"host", Home::kHost}, {"locked", Home::kLocked}})
    layout->place({name, {dtype, {{'D', 5}}}, ValueKind::kState, Category::kOptimizer}, home);
  return layout;
}

TEST(PersistentStore, BeginsWithZerosInEveryHome) {
  const auto layout = rows_in_every_home(DType::kF32);
  RankContext rank(cpu_device(1), std::make_unique<DirtyDevice>());
  const PersistentStore store(layout, rank);
  for (const PersistentValue& value : layout->values()) {
    std::vector<float> found(5, 7);
    store.read(value, std::as_writable_bytes(std::span(found)));
    EXPECT_EQ(found, std::vector<float>(5)) << value.name;
  }
}

// In any home a value takes and gives as many bytes as it has, or fewer, and floats by their number.
TEST(PersistentStore, TakesWhatFitsIntoAValueOfAnyHome) {
  const auto layout = rows_in_every_home(DType::kBF16);
  RankContext rank(cpu_device(1));
  const PersistentStore store(layout, rank);
  for (const PersistentValue& value : layout->values()) {
    SCOPED_TRACE(value.name);
    std::vector<std::byte> bytes(11, std::byte{0x3f});
    EXPECT_EQ(thrown_by([&] { store.write(value, std::span(bytes).first(10)); }), "nothing");
    EXPECT_EQ(thrown_by([&] { store.write(value, bytes); }).substr(0, 8), "internal");
    std::vector<std::byte> found(11);
    EXPECT_EQ(thrown_by([&] { store.read(value, std::span(found).first(10)); }), "nothing");
    EXPECT_EQ(std::vector(found.begin(), found.begin() + 10), std::vector(10, std::byte{0x3f}));
    EXPECT_EQ(found[10], std::byte{0});
    EXPECT_EQ(thrown_by([&] { store.read(value, found); }).substr(0, 8), "internal");
    const std::vector<float> floats = {1, -2, 0.5f, 4, 8, 16};
    EXPECT_EQ(thrown_by([&] { store.write_floats(value, std::span(floats).first(5)); }), "nothing");
    std::vector<uint16_t> stored(5);
    store.read(value, std::as_writable_bytes(std::span(stored)));
    EXPECT_EQ(stored, (std::vector<uint16_t>{0x3f80, 0xc000, 0x3f00, 0x4080, 0x4100})) << "in its own type";
    EXPECT_EQ(thrown_by([&] { store.write_floats(value, floats); }).substr(0, 8), "internal");
    if (!value.on_host()) continue;
    const std::string fewer = thrown_by([&] { store.write_floats(value, std::span(floats).first(4)); });
    EXPECT_NE(fewer.find("4 floats for " + value.name), std::string::npos) << fewer;
  }
}

TEST(Prefetch, OfNothingHasNoStream) {
  for (const size_t bytes : {0, 1, 12}) {
    auto device = std::make_unique<DirtyDevice>();
    const DirtyDevice& counted = *device;
    RankContext rank(cpu_device(1), std::move(device));
    Prefetch prefetch(bytes, rank);
    EXPECT_EQ(prefetch.bytes(), bytes);
    EXPECT_EQ(counted.streams, bytes > 0 ? 1 : 0);
    if (bytes == 0) continue;
    const std::vector<std::byte> piece(bytes, std::byte{5}), longer(bytes + 1);
    EXPECT_EQ(thrown_by([&] { prefetch.send(longer); }).substr(0, 8), "internal");
    prefetch.send(piece);
    std::vector<std::byte> target(bytes + 1);
    prefetch.take(target.data());
    EXPECT_EQ(std::vector(target.begin(), target.end() - 1), piece);
    EXPECT_EQ(target.back(), std::byte{0});
  }
}

TEST(Packing, SharedParametersStayPlain) {
  Builder b;
  const Dim d('D', 6);
  const ValueId x = b.input("x", {DType::kF32, {{'B', 2}, d}}),
                w = b.parameter("w", {DType::kF32, {{'F', 5}, d}});
  for (const char* name : {"first", "second"}) b.output(name, b.add<LinearOp>({x, w}, name));
  const ExecutionPlan plan = plan_execution(b.finish(), cpu_backend(), cpu_device(1));
  EXPECT_TRUE(plan.program.values[w].desc.packing.empty());
  for (const NodeChoice& choice : plan.choices) EXPECT_STRNE(choice.launches[0].kernel->name, "packed gemm");
}

TEST(Packing, OwnWeightsArePackedAndCounted) {
  const ExecutionPlan plan = plan_execution(two_gemms(DType::kF32), cpu_backend(), cpu_device(1));
  for (const Value& value : plan.program.values) {
    if (value.kind != ValueKind::kParameter || value.name == "bias") continue;
    EXPECT_FALSE(value.desc.packing.empty());
    EXPECT_EQ(value.desc.packed_rows, 5);
    EXPECT_GE(value.desc.bytes(), 30 * sizeof(float));
  }
}

}  // namespace
}  // namespace vitrail
