#include "io/safetensors.h"

#include <algorithm>

#include "base/bytes.h"
#include "io/tensor_limits.h"

namespace vitrail {

namespace {

class SafetensorsFile : public TensorSource {
 public:
  explicit SafetensorsFile(std::shared_ptr<const ByteSource> bytes) : bytes_(std::move(bytes)) {
    path_ = bytes_->name();
    format_ = "safetensors";
    with_context(path_, [&] { open(); });
  }

  void read(size_t index, std::span<std::byte> target) const override {
    VT_CHECK(target.size() == tensors_.at(index).bytes);
    bytes_->read_at(data_start_ + begins_[index], target);
  }

  bool has_parts(size_t) const override { return true; }
  void read_part(size_t index, size_t offset, std::span<std::byte> target) const override {
    const size_t bytes = tensors_.at(index).bytes;
    VT_CHECK(offset <= bytes && target.size() <= bytes - offset);
    bytes_->read_at(data_start_ + begins_[index] + offset, target);
  }

 private:
  void open() {
    const uint64_t size = bytes_->size();
    VT_REQUIRE(size >= 8, ErrorKind::kData, "%llu bytes, a safetensors file has at least 8",
               static_cast<unsigned long long>(size));
    uint64_t length = 0;
    bytes_->read_at(0, std::as_writable_bytes(std::span(&length, 1)));
    VT_REQUIRE(length <= kMaxSafetensorsHeader, ErrorKind::kData,
               "the header announces %llu bytes, at most %llu are read",
               static_cast<unsigned long long>(length),
               static_cast<unsigned long long>(kMaxSafetensorsHeader));
    VT_REQUIRE(length <= size - 8, ErrorKind::kData,
               "the header announces %llu bytes, the file has %llu after its first 8 (cut short?)",
               static_cast<unsigned long long>(length), static_cast<unsigned long long>(size - 8));
    std::string text(static_cast<size_t>(length), '\0');
    bytes_->read_at(8, std::as_writable_bytes(std::span(text)));
    data_start_ = 8 + length;
    SafetensorsHeader header = parse_safetensors_header(text, size - data_start_);
    tensors_ = std::move(header.tensors);
    begins_ = std::move(header.begins);
    metadata_ = std::move(header.metadata);
  }

  std::shared_ptr<const ByteSource> bytes_;
  std::vector<uint64_t> begins_;
  uint64_t data_start_ = 0;
};

}  // namespace

std::unique_ptr<TensorSource> open_safetensors(std::shared_ptr<const ByteSource> bytes) {
  return std::make_unique<SafetensorsFile>(std::move(bytes));
}

std::unique_ptr<TensorSource> open_safetensors(const std::string& path) {
  return open_safetensors(std::make_shared<RandomAccessFile>(path));
}

void write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  require_writable(tensors);
  std::vector<const TensorToWrite*> order;
  order.reserve(tensors.size());
  for (const TensorToWrite& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const TensorToWrite* a, const TensorToWrite* b) {
    return size_of(a->info.dtype) > size_of(b->info.dtype);
  });
  std::vector<const TensorInfo*> infos;
  infos.reserve(order.size());
  for (const TensorToWrite* tensor : order) infos.push_back(&tensor->info);
  const std::string header = safetensors_header_text(infos, metadata);
  VT_REQUIRE(header.size() <= kMaxSafetensorsHeader, ErrorKind::kData,
             "%s: a header of %zu bytes is too large", path.c_str(), header.size());

  AtomicFile file(path);
  std::string length;
  append_le<uint64_t>(length, header.size());
  file.write(length + header);
  std::vector<std::byte> buffer;
  for (const TensorToWrite* tensor : order) {
    buffer.resize(tensor->info.bytes);
    tensor->fill(buffer);
    file.write(buffer);
  }
  file.commit();
}

}  // namespace vitrail
