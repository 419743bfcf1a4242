#include "train/whole_values.h"

#include <algorithm>

#include "tensor/layout.h"
#include "train/agreement.h"

namespace vitrail {

namespace {

constexpr int64_t kEnd = -1;

// A part that several ranks hold ranges of, as they come.
struct Box {
  Shape part;
  std::vector<std::byte> bytes;
};

Box& box_of(std::vector<Box>& boxes, const Shape& part, size_t unit) {
  const auto known =
      std::find_if(boxes.begin(), boxes.end(), [&](const Box& box) { return box.part == part; });
  if (known != boxes.end()) return *known;
  boxes.push_back({part, std::vector<std::byte>(static_cast<size_t>(part.elems()) * unit)});
  return boxes.back();
}

}  // namespace

WholeValues::WholeValues(const PersistentStore& store, MeshCommunicators* ranks)
    : store_(store), ranks_(ranks) {
  const auto& values = store.layout().values();
  in_parts_ = ranks && ranks->mesh().size(Axis::kPipeline) > 1;
  in_parts_ |=
      ranks && std::any_of(values.begin(), values.end(), [](const PersistentValue& value) {
        return value.category != Category::kGradients && !value.is_container && !held_of(value).is_whole();
      });
}

std::vector<int64_t> WholeValues::shape_of(const PersistentValue& value) {
  std::vector<int64_t> shape;
  for (const Dim& dim : held_of(value).part) shape.push_back(dim.extent);
  return shape;
}

size_t WholeValues::bytes_of(const PersistentValue& value) {
  return static_cast<size_t>(whole_of(held_of(value).part).elems()) * size_of(value.desc.dtype);
}

const PartTable& WholeValues::table() {
  VT_CHECK(ranks_, "there is one rank");
  if (!table_) table_ = std::make_unique<PartTable>(layout(), ranks_->world());
  return *table_;
}

const std::vector<PersistentValue>& WholeValues::values() {
  return in_parts_ ? table().values() : layout().values();
}

bool WholeValues::has(const std::string& name) {
  return layout().has(name) || (in_parts_ && table().find(name));
}

const PersistentValue& WholeValues::at(const std::string& name) {
  if (layout().has(name) || !in_parts_) return layout().at(name);
  const std::optional<size_t> found = table().find(name);
  VT_CHECK(found, "no rank holds a value called %s", name.c_str());
  return table().values()[*found];
}

int64_t WholeValues::exchange_request(int64_t mine) {
  return from_first(ranks_->world(), mine);
}

void WholeValues::read(const PersistentValue& value, std::span<std::byte> target) {
  VT_CHECK(target.size() == bytes_of(value), "%zu bytes for %s", target.size(), value.name.c_str());
  const bool held = layout().has(value.name);
  if (held && held_of(layout().at(value.name)).is_whole())
    return store_.read(layout().at(value.name), target);
  VT_CHECK(in_parts_, "%s lies in parts and there is no other rank", value.name.c_str());
  const auto wanted = static_cast<int64_t>(*table().find(value.name));
  const auto index = static_cast<size_t>(exchange_request(wanted));
  const size_t unit = size_of(value.desc.dtype);
  std::vector<Box> boxes;
  for (const int sender : table().senders(index)) {
    const HeldPart sent = table().part(index, sender);
    receive_part(
        value, sender,
        std::span(box_of(boxes, sent.part, unit).bytes)
            .subspan(static_cast<size_t>(sent.first) * unit, static_cast<size_t>(sent.count) * unit));
  }
  for (const Box& box : boxes) copy_in_part(box.part, unit, box.bytes.data(), target.data());
}

void WholeValues::receive_part(const PersistentValue& value, int sender, std::span<std::byte> target) {
  if (sender == 0) return store_.read(layout().at(value.name), target);
  ranks_->world().run({.kind = Collective::Kind::kReceive,
                       .dtype = DType::kU8,
                       .in = nullptr,
                       .out = target.data(),
                       .counts = {target.size()},
                       .peer = sender});
}

std::vector<float> WholeValues::read_floats(const std::string& name) {
  const PersistentValue& value = at(name);
  std::vector<std::byte> bytes(bytes_of(value));
  read(value, bytes);
  std::vector<float> floats(bytes.size() / size_of(value.desc.dtype));
  convert_floats(bytes.data(), value.desc.dtype, floats.data(), DType::kF32, floats.size());
  return floats;
}

void WholeValues::give_part(size_t index) {
  const std::vector<int> senders = table().senders(index);
  if (std::find(senders.begin(), senders.end(), ranks_->world().rank()) == senders.end()) return;
  const PersistentValue& value = layout().at(table().values()[index].name);
  std::vector<std::byte> bytes(value.desc.bytes());
  store_.read(value, bytes);
  ranks_->world().run({.kind = Collective::Kind::kSend,
                       .dtype = DType::kU8,
                       .in = bytes.data(),
                       .out = nullptr,
                       .counts = {bytes.size()},
                       .peer = 0});
}

void WholeValues::serve() {
  if (!in_parts_) return;
  table();  // all make it together, as the first request comes
  for (int64_t wanted = exchange_request(kEnd); wanted != kEnd; wanted = exchange_request(kEnd))
    give_part(static_cast<size_t>(wanted));
}

void WholeValues::end_serving() {
  if (!in_parts_) return;
  table();
  exchange_request(kEnd);
}

Served::~Served() {
  try {
    values_.end_serving();
  } catch (const Error&) {
    // The others have failed: the next exchange with them tells it.
  }
}

}  // namespace vitrail
