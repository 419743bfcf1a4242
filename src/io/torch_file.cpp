#include "io/torch_file.h"

#include "base/bytes.h"
#include "io/tensor_limits.h"

namespace vitrail {

namespace {

constexpr std::string_view kPickleName = "/data.pkl";
constexpr uint64_t kMaxSmallEntry = 64;

// "NAME" of the entry NAME/data.pkl, nothing when there is none.
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
    const uint64_t storage_bytes = zip_->entries()[storages_[index]].size;
    if (storage_bytes == target.size() && tensor.view.is_row_major())
      return zip_->read(storages_[index], {}, target);
    // A view: the whole storage is read, since its CRC covers all of it.
    std::vector<std::byte> storage(static_cast<size_t>(storage_bytes));
    zip_->read(storages_[index], {}, storage);
    gather(tensor.view, size_of(tensor.dtype), storage, target);
  }

 private:
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
    for (const TorchTensor& tensor : state_.tensors)
      with_context("tensor " + quoted(tensor.name), [&] { add(tensor); });
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
    if (!entry) return;  // files before torch 2.1 do not say
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
};

}  // namespace

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
