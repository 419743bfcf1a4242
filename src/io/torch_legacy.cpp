// Reads the format of torch.save before version 1.6: pickles, then the storages one after the other.
#include "base/bytes.h"
#include "io/tensor_limits.h"
#include "io/torch_file.h"

namespace vitrail {

namespace {

// The legacy format: four pickles (a magic number, a version, the machine, the object), a fifth with the
// order of the storages, then each storage as its element count and its elements.
class TorchLegacyFile : public TensorSource {
 public:
  explicit TorchLegacyFile(std::shared_ptr<const ByteSource> bytes) : bytes_(std::move(bytes)) {
    path_ = bytes_->name();
    format_ = "torch";
    with_context(path_, [&] { open(); });
  }

  void read(size_t index, std::span<std::byte> target) const override {
    const TorchTensor& tensor = state_.tensors.at(index);
    VT_CHECK(target.size() == tensors_[index].bytes);
    if (target.empty()) return;
    const uint64_t element = size_of(tensor.dtype);
    std::vector<std::byte> range(static_cast<size_t>(tensor.view.reach() * element));
    bytes_->read_at(offsets_.at(tensor.storage_key) + tensor.view.offset * element, range);
    StridedView view = tensor.view;
    view.offset = 0;
    gather(view, element, range, target);
  }

 private:
  void open() {
    std::vector<std::byte> head(
        static_cast<size_t>(std::min<uint64_t>(bytes_->size(), PickleLimits{}.max_bytes)));
    bytes_->read_at(0, head);
    std::span<const std::byte> rest(head);
    const auto next = [&] {
      PickleGraph graph = read_pickle(rest, [](std::string_view) { return false; });
      rest = rest.subspan(graph.bytes);
      return graph;
    };
    next();
    const PickleGraph version = next();
    VT_REQUIRE(version[version.root].integer == 1001, ErrorKind::kData,
               "version %lld of torch's old form, 1001 is read",
               static_cast<long long>(version[version.root].integer));
    require_little_endian(next());
    state_ = read_torch_pickle(rest);
    rest = rest.subspan(state_.pickle_bytes);
    const PickleGraph order = next();
    lay_out(order, static_cast<uint64_t>(head.size() - rest.size()));
    add_tensors();
  }

  static void require_little_endian(const PickleGraph& machine) {
    const PickleNode& info = machine[machine.root];
    for (size_t i = 0; i + 1 < info.items.size(); i += 2)
      if (machine[info.items[i]].text == "little_endian")
        VT_REQUIRE(machine[info.items[i + 1]].integer != 0, ErrorKind::kData,
                   "only little-endian files are read");
  }

  void lay_out(const PickleGraph& order, uint64_t at) {
    for (const PickleId id : order[order.root].items) {
      const std::string& key = order[id].text;
      const auto storage = state_.storages.find(key);
      VT_REQUIRE(order[id].kind == PickleKind::kString && storage != state_.storages.end(), ErrorKind::kData,
                 "a storage %s that no tensor has", quoted(key).c_str());
      uint64_t count = 0;
      bytes_->read_at(at, std::as_writable_bytes(std::span(&count, 1)));
      VT_REQUIRE(count == storage->second.elems, ErrorKind::kData,
                 "storage %s has %llu elements, expected %llu", quoted(key).c_str(),
                 static_cast<unsigned long long>(count),
                 static_cast<unsigned long long>(storage->second.elems));
      at += sizeof count;
      const auto length = checked_mul(count, size_of(storage->second.dtype));
      VT_REQUIRE(length && *length <= bytes_->size() - at, ErrorKind::kData,
                 "the file ends within storage %s", quoted(key).c_str());
      offsets_[key] = at;
      at += *length;
    }
  }

  void add_tensors() {
    metadata_["state_dict"] = state_.key;
    if (!state_.passed_over.empty()) metadata_["state_dicts_passed_over"] = state_.passed_over;
    uint64_t read = 0;
    for (const TorchTensor& tensor : state_.tensors) {
      VT_REQUIRE(offsets_.contains(tensor.storage_key), ErrorKind::kData,
                 "the storage of %s is not in the file", quoted(tensor.name).c_str());
      const uint64_t bytes = tensor_bytes(tensor.view.shape, tensor.dtype);
      tensors_.push_back({tensor.name, tensor.dtype, tensor.view.shape, bytes});
      read += std::max<uint64_t>(bytes, bytes == 0 ? 0 : tensor.view.reach() * size_of(tensor.dtype));
    }
    require_bounded_views(read, bytes_->size());
  }

  std::shared_ptr<const ByteSource> bytes_;
  TorchStateDict state_;
  std::map<std::string, uint64_t> offsets_;  // of each storage's elements
};

}  // namespace

std::unique_ptr<TensorSource> open_torch_legacy(std::shared_ptr<const ByteSource> bytes) {
  return std::make_unique<TorchLegacyFile>(std::move(bytes));
}

}  // namespace vitrail
