// Reads and writes npz files: a zip archive of npy arrays.
#include "io/npy.h"

#include <algorithm>
#include <mutex>

#include "base/bytes.h"
#include "io/strided.h"
#include "io/tensor_limits.h"

namespace vitrail {

namespace {

constexpr std::string_view kSuffix = ".npy";

class NpzFile : public TensorSource {
 public:
  NpzFile(std::unique_ptr<const ZipReader> zip, const std::string& name) : zip_(std::move(zip)) {
    path_ = name;
    format_ = "npz";
    with_context(path_, [&] {
      for (size_t i = 0; i < zip_->entries().size(); ++i)
        with_context(quoted(zip_->entries()[i].name), [&] { add(i); });
    });
  }

  void read(size_t index, std::span<std::byte> target) const override {
    const TensorInfo& info = tensors_.at(index);
    VT_CHECK(target.size() == info.bytes);
    std::vector<std::byte> head(arrays_[index].data_offset);
    if (!arrays_[index].column_major || target.empty()) return zip_->read(index, head, target);
    std::vector<std::byte> columns(info.bytes);
    zip_->read(index, head, columns);
    gather({info.shape, column_major_strides(info.shape), 0}, size_of(info.dtype), columns, target);
  }

  bool has_parts(size_t index) const override { return !arrays_.at(index).column_major; }

  // Reads a part of an array. Each array read in parts keeps its position in the file, until its end or a
  // step back.
  void read_part(size_t index, size_t offset, std::span<std::byte> target) const override {
    if (arrays_.at(index).column_major) return TensorSource::read_part(index, offset, target);
    VT_CHECK(offset <= tensors_[index].bytes && target.size() <= tensors_[index].bytes - offset);
    const uint64_t from = arrays_[index].data_offset + offset;
    const std::lock_guard lock(mutex_);
    auto node = streams_.extract(index);  // a stream that throws is not kept
    if (node.empty() || node.mapped()->position() > from) {
      streams_.emplace(index, zip_->stream(index));
      node = streams_.extract(index);
    }
    ZipStream& stream = *node.mapped();
    stream.skip(from - stream.position());
    stream.read(target);
    if (stream.position() < zip_->entries()[index].size) streams_.insert(std::move(node));
  }

 private:
  void add(size_t index) {
    const ZipEntry& entry = zip_->entries()[index];
    const bool named = entry.name.size() > kSuffix.size() && entry.name.ends_with(kSuffix);
    VT_REQUIRE(named, ErrorKind::kData, "expected an array (NAME.npy)");
    std::vector<std::byte> start(static_cast<size_t>(std::min<uint64_t>(entry.size, kMaxNpyHeader)));
    start.resize(zip_->peek(index, start));
    NpyHeader header = parse_npy_header(start);
    TensorInfo info{entry.name.substr(0, entry.name.size() - kSuffix.size()), header.dtype, header.shape, 0};
    require_tensor_name(info.name);
    info.bytes = tensor_bytes(info.shape, info.dtype);
    VT_REQUIRE(info.bytes == entry.size - header.data_offset, ErrorKind::kData,
               "shape and dtype make %zu bytes, the entry holds %llu", info.bytes,
               static_cast<unsigned long long>(entry.size - header.data_offset));
    arrays_.push_back(std::move(header));
    tensors_.push_back(std::move(info));
  }

  std::unique_ptr<const ZipReader> zip_;
  std::vector<NpyHeader> arrays_;  // as tensors_ and the zip's entries
  mutable std::mutex mutex_;
  mutable std::map<size_t, std::unique_ptr<ZipStream>> streams_;  // of arrays read in part
};

}  // namespace

std::unique_ptr<TensorSource> open_npz(std::unique_ptr<const ZipReader> zip, const std::string& name) {
  return std::make_unique<NpzFile>(std::move(zip), name);
}

std::unique_ptr<TensorSource> open_npz(const std::string& path) {
  auto bytes = std::make_shared<RandomAccessFile>(path);
  return open_npz(with_context(path, [&] { return std::make_unique<ZipReader>(bytes); }), path);
}

void write_npz(const std::string& path, const std::vector<TensorToWrite>& tensors) {
  require_writable(tensors);
  AtomicFile file(path);
  ZipWriter zip(file);
  std::vector<std::byte> buffer;
  for (const TensorToWrite& tensor : tensors) {
    const TensorInfo& info = tensor.info;
    buffer.resize(info.bytes);
    tensor.fill(buffer);
    const std::string header = npy_header_text(info.dtype, info.shape);
    zip.add(info.name + std::string(kSuffix), as_byte_span(header), buffer);
  }
  zip.finish();
  file.commit();
}

}  // namespace vitrail
