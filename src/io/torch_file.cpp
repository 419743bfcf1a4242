#include "io/torch_file.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "base/bytes.h"
#include "io/tensor_limits.h"

namespace vitrail {

namespace {

constexpr std::string_view kPickleName = "/data.pkl";
constexpr uint64_t kMaxSmallEntry = 64;
// The most times that all storages may be read. Tied weights and parameters cut from one flat tensor read
// each storage about once; blocks that share all their weights, as often as there are blocks.
constexpr uint64_t kMaxReadsOfStorages = 64;

// Returns "NAME" of the entry NAME/data.pkl, nothing when there is none.
std::optional<std::string> root_folder(const ZipReader& zip) {
  for (const ZipEntry& entry : zip.entries()) {
    const size_t slash = entry.name.find('/');
    if (slash != entry.name.npos && slash > 0 && entry.name.substr(slash) == kPickleName)
      return entry.name.substr(0, slash);
  }
  return std::nullopt;
}

class TorchFile : public TensorSource {
 public:
  TorchFile(std::unique_ptr<const ZipReader> zip, const std::string& name) : zip_(std::move(zip)) {
    path_ = name;
    format_ = "torch";
    with_context(path_, [&] { open(); });
  }

  void read(size_t index, std::span<std::byte> target) const override {
    const TorchTensor& tensor = state_.tensors.at(index);
    VT_CHECK(target.size() == tensors_[index].bytes);
    if (target.empty()) return;
    const ZipEntry& storage = zip_->entries()[storages_[index]];
    if (storage.size == target.size() && tensor.view.is_row_major())
      return zip_->read(storages_[index], {}, target);
    const auto [first, count] = bytes_touched(tensor, storage);
    std::vector<std::byte> bytes(static_cast<size_t>(count));
    if (storage.deflated) {
      zip_->read(storages_[index], {}, bytes);
    } else {
      check_once(storages_[index]);
      zip_->read_stored(storages_[index], first, bytes);
    }
    StridedView view = tensor.view;
    view.offset -= first / size_of(tensor.dtype);
    gather(view, size_of(tensor.dtype), bytes, target);
  }

 private:
  struct Range {
    uint64_t first = 0, count = 0;
  };
  // Returns the bytes of its storage that reading a view takes: from its first element to its last, or
  // everything when deflated.
  static Range bytes_touched(const TorchTensor& tensor, const ZipEntry& storage) {
    if (storage.deflated) return {0, storage.size};
    const uint64_t element = size_of(tensor.dtype);
    return {tensor.view.offset * element, tensor.view.reach() * element};
  }

  // A CRC covers a whole storage, so it is checked with the first view of it, not with each.
  void check_once(size_t entry) const {
    const std::lock_guard lock(checking_);
    if (checked_.contains(entry)) return;
    zip_->stream(entry)->skip(zip_->entries()[entry].size);
    checked_.insert(entry);
  }

  // A small file may describe any number of views of one storage; the cost of reading all of them is bounded.
  void require_bounded() const {
    std::unordered_set<size_t> seen;
    uint64_t stored = 0, read = 0;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const ZipEntry& storage = zip_->entries()[storages_[i]];
      if (seen.insert(storages_[i]).second) stored += storage.size;
      if (tensors_[i].bytes == 0) continue;
      read += std::max<uint64_t>(tensors_[i].bytes, bytes_touched(state_.tensors[i], storage).count);
    }
    require_bounded_views(read, stored);
  }

  void open() {
    const auto folder = root_folder(*zip_);
    VT_REQUIRE(folder, ErrorKind::kData, "no entry NAME/data.pkl: not a file of torch.save");
    folder_ = *folder;
    if (zip_->find(folder_ + "/constants.pkl"))
      throw Error(ErrorKind::kData, "a TorchScript program, not a file of tensors",
                  "in Python, torch.jit.load it and save its state_dict()");
    require_little_endian();
    const size_t pickle = *zip_->find(folder_ + std::string(kPickleName));
    state_ = read_torch_pickle(read_entry(pickle, PickleLimits{}.max_bytes));
    metadata_["state_dict"] = state_.key;
    if (!state_.passed_over.empty()) metadata_["state_dicts_passed_over"] = state_.passed_over;
    for (const TorchTensor& tensor : state_.tensors)
      with_context("tensor " + quoted(tensor.name), [&] { add(tensor); });
    require_bounded();
  }

  void add(const TorchTensor& tensor) {
    const auto entry = zip_->find(folder_ + "/data/" + tensor.storage_key);
    VT_REQUIRE(entry, ErrorKind::kData, "its storage %s is not in the file",
               quoted(tensor.storage_key).c_str());
    const auto bytes = checked_mul(tensor.storage_elems, size_of(tensor.dtype));
    VT_REQUIRE(bytes == zip_->entries()[*entry].size, ErrorKind::kData,
               "its storage has %llu bytes, expected %llu elements of %s",
               static_cast<unsigned long long>(zip_->entries()[*entry].size),
               static_cast<unsigned long long>(tensor.storage_elems), to_string(tensor.dtype));
    storages_.push_back(*entry);
    tensors_.push_back(
        {tensor.name, tensor.dtype, tensor.view.shape, tensor_bytes(tensor.view.shape, tensor.dtype)});
  }

  void require_little_endian() const {
    const auto entry = zip_->find(folder_ + "/byteorder");
    if (!entry) return;  // files before torch 2.1 have no such entry
    const std::vector<std::byte> order = read_entry(*entry, kMaxSmallEntry);
    VT_REQUIRE(as_text(order) == "little", ErrorKind::kData,
               "byte order %s, only little-endian files are read", quoted(as_text(order)).c_str());
  }

  std::vector<std::byte> read_entry(size_t index, uint64_t max_bytes) const {
    const ZipEntry& entry = zip_->entries()[index];
    VT_REQUIRE(entry.size <= max_bytes, ErrorKind::kData, "%s has %llu bytes, at most %llu are read",
               quoted(entry.name).c_str(), static_cast<unsigned long long>(entry.size),
               static_cast<unsigned long long>(max_bytes));
    std::vector<std::byte> content(static_cast<size_t>(entry.size));
    zip_->read(index, {}, content);
    return content;
  }

  std::unique_ptr<const ZipReader> zip_;
  std::string folder_;
  TorchStateDict state_;
  std::vector<size_t> storages_;  // zip entry of each tensor
  mutable std::mutex checking_;
  mutable std::unordered_set<size_t> checked_;  // storages whose CRC is right
};

}  // namespace

void require_bounded_views(uint64_t read, uint64_t stored) {
  if (read / kMaxReadsOfStorages <= stored) return;
  throw Error(
      ErrorKind::kData,
      strf("its tensors are views that together read more than %llu times the %llu bytes of their storages",
           static_cast<unsigned long long>(kMaxReadsOfStorages), static_cast<unsigned long long>(stored)),
      "in Python, save clones of the tensors: {k: v.clone() for k, v in state_dict.items()}");
}

bool looks_like_torch(const ZipReader& zip) {
  return root_folder(zip).has_value();
}

std::unique_ptr<TensorSource> open_torch(std::unique_ptr<const ZipReader> zip, const std::string& name) {
  return std::make_unique<TorchFile>(std::move(zip), name);
}

std::unique_ptr<TensorSource> open_torch(const std::string& path) {
  auto bytes = std::make_shared<RandomAccessFile>(path);
  return open_torch(with_context(path, [&] { return std::make_unique<ZipReader>(bytes); }), path);
}

}  // namespace vitrail
