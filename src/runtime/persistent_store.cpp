#include "runtime/persistent_store.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/checked.h"
#include "graph/builder.h"
#include "ops/persistent.h"
#include "runtime/transfer.h"
#include "tensor/layout.h"

namespace vitrail {

namespace {

// Records one node per parameter in use, from the f32 of its source to the form the plan stores.
Program load_program(const ExecutionPlan& plan) {
  Builder builder;
  for (size_t id = 0; id < plan.program.values.size(); ++id) {
    const Value& value = plan.program.values[id];
    if (!plan.memory.values[id].persistent || value.kind != ValueKind::kParameter) continue;
    const ValueId source = builder.input(value.name, {DType::kF32, value.desc.shape});
    builder.output(value.name, builder.add<LoadParamOp>({source}, value.name, value.desc));
  }
  return builder.finish();
}

// Returns how many parameters are read and packed at a time: enough to saturate a disk, while the staging
// memory stays below an eighth of all parameters.
int64_t readers(int threads, size_t largest, size_t total) {
  constexpr int64_t kMost = 8;
  const auto fitting = static_cast<int64_t>(largest > 0 ? total / 8 / largest : 1);
  return std::clamp<int64_t>(fitting, 1, std::min<int64_t>(threads, kMost));
}

// The memory in which one parameter is read: the part that this rank keeps, and before that, where it keeps
// less than all, the whole.
size_t part_bytes(const TensorDesc& part) {
  return round_up(part.bytes(), Buffer::kAlignment);
}
size_t staging_bytes(const TensorDesc& part) {
  const TensorDesc whole{part.dtype, whole_of(part.shape)};
  return part_bytes(part) + (whole == part ? 0 : whole.bytes());
}

void fill_part(const std::string& name, const TensorView& part, const ParamFiller& fill) {
  const Shape whole = whole_of(part.shape());
  const bool all = whole == part.shape();
  auto* const staging = static_cast<std::byte*>(part.data()) + (all ? 0 : part_bytes(part.desc()));
  fill(name, whole, {reinterpret_cast<float*>(staging), static_cast<size_t>(whole.elems())});
  if (!all) copy_out_part(part.shape(), sizeof(float), staging, part.data());
}

}  // namespace

PersistentStore::PersistentStore(std::shared_ptr<const PersistentLayout> layout, RankContext& rank)
    : layout_(std::move(layout)), rank_(rank) {
  for (size_t c = 0; c < kCategoryCount; ++c) {
    const auto category = static_cast<Category>(c);
    const size_t bytes = layout_->bytes(category);
    Buffer& own = arena(Home::kDevice, category);
    own = Buffer(bytes, category, rank.memory());
    if (category != Category::kParameters && bytes > 0) rank.hardware->clear(own.data(), bytes);
    open_host_arena(Home::kHost, category);
    open_host_arena(Home::kLocked, category);
  }
}

void PersistentStore::open_host_arena(Home home, Category category) {
  const size_t bytes = layout_->bytes(home, category);
  MemorySource* const source = rank_.hardware->shares_host_memory() ? rank_.memory()
                               : home == Home::kLocked              ? rank_.hardware->host_memory()
                                                                    : nullptr;
  arena(home, category) = Buffer(bytes, category, source);
  if (bytes > 0) std::memset(arena(home, category).data(), 0, bytes);
}

TensorView PersistentStore::view(const PersistentValue& value) const {
  const auto& arenas = arenas_[static_cast<size_t>(value.home)];
  return {arenas[static_cast<size_t>(value.category)].data() + value.offset, value.desc};
}

void PersistentStore::read(const PersistentValue& value, std::span<std::byte> target) const {
  if (!value.on_host()) return read_bytes(rank_, view(value), target);
  VT_CHECK(target.size() <= value.desc.bytes(), "%zu bytes of %s", target.size(), value.name.c_str());
  std::memcpy(target.data(), view(value).data(), target.size());
}

void PersistentStore::write(const PersistentValue& value, std::span<const std::byte> bytes) const {
  if (!value.on_host()) return write_bytes(rank_, view(value), bytes);
  VT_CHECK(bytes.size() <= value.desc.bytes(), "%zu bytes for %s", bytes.size(), value.name.c_str());
  std::memcpy(view(value).data(), bytes.data(), bytes.size());
}

void PersistentStore::write_floats(const PersistentValue& value, std::span<const float> values) const {
  if (!value.on_host()) return vitrail::write_floats(rank_, view(value), values);
  VT_CHECK(static_cast<int64_t>(values.size()) == value.desc.elems(), "%zu floats for %s", values.size(),
           value.name.c_str());
  convert_floats(values.data(), DType::kF32, view(value).data(), value.desc.dtype, values.size());
}

void PersistentStore::clear(const PersistentValue& value) const {
  const size_t bytes = value.desc.bytes();
  if (!value.on_host()) return rank_.hardware->clear(view(value).data(), bytes);
  if (bytes > 0) std::memset(view(value).data(), 0, bytes);
}

size_t PersistentStore::bytes(Home home) const {
  size_t total = 0;
  for (const Buffer& arena : arenas_[static_cast<size_t>(home)]) total += arena.bytes();
  return total;
}

void PersistentStore::load(const ExecutionPlan& plan, const ParamFiller& fill) {
  const Program program = load_program(plan);
  const auto choices = choose_kernels(program, *plan.backend, rank_.device);
  size_t largest = 0;
  for (const Node& node : program.nodes)
    largest = std::max(largest, staging_bytes(program.values[node.ins[0]].desc));
  // Values are staged in host memory; the kernel reads them there too if the device can.
  const bool apart = !rank_.hardware->shares_host_memory();
  const Buffer passage(apart ? largest : 0, Category::kStaging, rank_.memory());
  const auto load_one = [&](size_t i, const Buffer& staging) {
    const Node& node = program.nodes[i];
    const TensorView filled(staging.data(), program.values[node.ins[0]].desc), target = view(node.name);
    fill_part(node.name, filled, fill);
    const TensorView source(apart ? passage.data() : staging.data(), filled.desc());
    if (apart) rank_.hardware->upload(source.data(), filled.data(), filled.desc().bytes());
    choices[i].launches[0].prepared.run({*node.op, {&source, 1}, {&target, 1}, {}, rank_.launch_context()});
  };
  std::atomic<size_t> next = 0;
  const int64_t at_once = apart ? 1 : readers(rank_.device.threads, largest, bytes());
  rank_.pool.run(at_once, [&](int64_t, int) {
    const Buffer staging(largest, Category::kStaging);
    for (size_t i = next++; i < program.nodes.size(); i = next++) load_one(i, staging);
  });
  rank_.hardware->finish();
}

}  // namespace vitrail
