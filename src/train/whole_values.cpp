#include "train/whole_values.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/transfer.h"
#include "tensor/layout.h"

namespace vitrail {

namespace {

constexpr int64_t kEnd = -1;
constexpr size_t kMostDims = 5;
// A part travels as (local, offset) of each dim, and of the range of its elements.
constexpr size_t kPartWords = 2 * kMostDims + 2;

// What a rank holds of a value: a part of its shape and, with ZeRO, a range of that part's elements.
struct HeldPart {
  Shape part;
  int64_t first = 0, count = 0;

  bool is_whole() const {
    return count == part.elems() &&
           std::all_of(part.begin(), part.end(), [](const Dim& dim) { return dim.local == dim.extent; });
  }
};

HeldPart held(const PersistentValue& value) {
  if (value.logical.rank() == 0) return {value.desc.shape, 0, value.desc.elems()};
  return {value.logical, value.desc.shape[0].offset, value.desc.elems()};
}

std::vector<int64_t> words_of(const HeldPart& held) {
  std::vector<int64_t> words = {held.first, held.count};
  for (const Dim& dim : held.part) words.insert(words.end(), {dim.local, dim.offset});
  words.resize(kPartWords);
  return words;
}

HeldPart part_from(const Shape& like, const int64_t* words) {
  const int64_t first = *words++, count = *words++;
  std::vector<Dim> dims(like.begin(), like.end());
  for (Dim& dim : dims) dim.local = *words++, dim.offset = *words++;
  return {Shape(std::move(dims)), first, count};
}

// The rank that hands over each part: the first of those that hold the same one. Empty parts are nobody's.
std::vector<int> senders_of(const std::vector<int64_t>& words, const Shape& like) {
  std::set<std::vector<int64_t>> known;
  std::vector<int> senders;
  for (size_t r = 0; r * kPartWords < words.size(); ++r) {
    const std::vector<int64_t> part(words.begin() + static_cast<std::ptrdiff_t>(r * kPartWords),
                                    words.begin() + static_cast<std::ptrdiff_t>((r + 1) * kPartWords));
    if (part_from(like, part.data()).count > 0 && known.insert(part).second) senders.push_back(static_cast<int>(r));
  }
  return senders;
}

}  // namespace

WholeValues::WholeValues(const PersistentStore& store, MeshCommunicators* ranks) : store_(store), ranks_(ranks) {
  const auto& values = store.layout().values();
  const bool parts = std::any_of(values.begin(), values.end(), [](const PersistentValue& value) {
    return value.category != Category::kGradients && !value.is_container && !held(value).is_whole();
  });
  if (!parts) ranks_ = nullptr;
}

std::vector<int64_t> WholeValues::shape_of(const PersistentValue& value) {
  std::vector<int64_t> shape;
  for (const Dim& dim : held(value).part) shape.push_back(dim.extent);
  return shape;
}

size_t WholeValues::bytes_of(const PersistentValue& value) {
  return static_cast<size_t>(whole_of(held(value).part).elems()) * size_of(value.desc.dtype);
}

std::vector<std::byte> WholeValues::own_part(const PersistentValue& value) const {
  std::vector<std::byte> bytes(value.desc.bytes());
  read_bytes(store_.rank(), store_.view(value), bytes);
  return bytes;
}

int64_t WholeValues::exchange_request(int64_t mine) {
  ranks_->world().run({.kind = Collective::Kind::kBroadcast,
                       .dtype = DType::kI64,
                       .in = nullptr,
                       .out = &mine,
                       .counts = {1},
                       .peer = 0});
  return mine;
}

std::vector<int64_t> WholeValues::parts_of_ranks(const PersistentValue& value) {
  Communicator& world = ranks_->world();
  VT_CHECK(held(value).part.rank() <= kMostDims, "%s has too many dims", value.name.c_str());
  const std::vector<int64_t> mine = words_of(held(value));
  std::vector<int64_t> all(kPartWords * static_cast<size_t>(world.size()));
  world.run({.kind = Collective::Kind::kAllGather,
             .dtype = DType::kI64,
             .in = mine.data(),
             .out = all.data(),
             .counts = std::vector<size_t>(static_cast<size_t>(world.size()), kPartWords)});
  return all;
}

void WholeValues::read(const PersistentValue& value, std::span<std::byte> target) {
  VT_CHECK(target.size() == bytes_of(value), "%zu bytes for %s", target.size(), value.name.c_str());
  if (held(value).is_whole()) return read_bytes(store_.rank(), store_.view(value), target);
  VT_CHECK(ranks_, "%s lies in parts and there is no other rank", value.name.c_str());
  const auto& values = layout().values();
  const auto at = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.name == value.name; });
  exchange_request(at - values.begin());
  const std::vector<int64_t> words = parts_of_ranks(value);
  const size_t unit = size_of(value.desc.dtype);
  // The ranges of a part come one after another, from ranks that hold the same part.
  std::map<std::vector<int64_t>, std::vector<std::byte>> parts;
  for (const int sender : senders_of(words, held(value).part)) {
    const int64_t* const sent = words.data() + static_cast<size_t>(sender) * kPartWords;
    const HeldPart part = part_from(held(value).part, sent);
    std::vector<std::byte>& bytes = parts[{sent + 2, sent + kPartWords}];
    bytes.resize(static_cast<size_t>(part.part.elems()) * unit);
    receive_part(value, sender, {bytes.data() + static_cast<size_t>(part.first) * unit, static_cast<size_t>(part.count) * unit});
  }
  for (const auto& [shape, bytes] : parts) {
    std::vector<int64_t> sent = {0, 0};
    sent.insert(sent.end(), shape.begin(), shape.end());
    copy_in_part(part_from(held(value).part, sent.data()).part, unit, bytes.data(), target.data());
  }
}

void WholeValues::receive_part(const PersistentValue& value, int sender, std::span<std::byte> target) {
  if (sender == 0) return read_bytes(store_.rank(), store_.view(value), target);
  ranks_->world().run({.kind = Collective::Kind::kReceive,
                       .dtype = DType::kU8,
                       .in = nullptr,
                       .out = target.data(),
                       .counts = {target.size()},
                       .peer = sender});
}

std::vector<float> WholeValues::read_floats(const std::string& name) {
  const PersistentValue& value = layout().at(name);
  std::vector<std::byte> bytes(bytes_of(value));
  read(value, bytes);
  std::vector<float> floats(bytes.size() / size_of(value.desc.dtype));
  convert_floats(bytes.data(), value.desc.dtype, floats.data(), DType::kF32, floats.size());
  return floats;
}

void WholeValues::give_part(const PersistentValue& value) {
  const std::vector<int> senders = senders_of(parts_of_ranks(value), held(value).part);
  if (std::find(senders.begin(), senders.end(), ranks_->world().rank()) == senders.end()) return;
  const std::vector<std::byte> bytes = own_part(value);
  ranks_->world().run({.kind = Collective::Kind::kSend,
                       .dtype = DType::kU8,
                       .in = bytes.data(),
                       .out = nullptr,
                       .counts = {bytes.size()},
                       .peer = 0});
}

void WholeValues::serve() {
  if (!ranks_) return;
  for (int64_t wanted = exchange_request(kEnd); wanted != kEnd; wanted = exchange_request(kEnd))
    give_part(layout().values()[static_cast<size_t>(wanted)]);
}

void WholeValues::end_serving() {
  if (ranks_) exchange_request(kEnd);
}

void WholeValues::write(const PersistentValue& value, std::span<const std::byte> whole) {
  const HeldPart mine = held(value);
  if (mine.is_whole()) return write_bytes(store_.rank(), store_.view(value), whole);
  const size_t unit = size_of(value.desc.dtype);
  std::vector<std::byte> part(static_cast<size_t>(mine.part.elems()) * unit);
  copy_out_part(mine.part, unit, whole.data(), part.data());
  write_bytes(store_.rank(), store_.view(value),
              std::span(part).subspan(static_cast<size_t>(mine.first) * unit, value.desc.bytes()));
}

}  // namespace vitrail
