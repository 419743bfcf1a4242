// MNIST's format: big-endian headers, one file of images and one of labels per part, gzipped or not.
#include <zlib.h>

#include <algorithm>
#include <filesystem>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "base/free_memory.h"
#include "data/datasets/file_formats.h"
#include "data/datasets/formats.h"
#include "data/datasets/tables.h"

namespace vitrail {
namespace formats {

namespace {
namespace fs = std::filesystem;

constexpr uint64_t kMaxBytes = uint64_t{8} << 30;  // of one file's values

// Deflate compresses by at most about 1032 to 1, so a file cannot hold more than that.
constexpr uint64_t kMostPerPackedByte = 1032;

// Returns the content of a gzip file, at most `most` bytes of it; it is read and unpacked in blocks, and held
// once.
std::string inflate_gz(const ByteSource& file, uint64_t most) {
  std::string content, packed(size_t{1} << 20, '\0');
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  VT_CHECK(inflateInit2(&stream, kGzip) == Z_OK);
  const std::unique_ptr<z_stream, void (*)(z_stream*)> closer(&stream, [](z_stream* s) { inflateEnd(s); });
  content.reserve(static_cast<size_t>(std::min(most, file.size() * kMostPerPackedByte)));
  uint64_t taken = 0;
  int code = Z_OK;
  while (code == Z_OK && content.size() < most) {
    if (stream.avail_in == 0) {
      const size_t count = static_cast<size_t>(std::min<uint64_t>(packed.size(), file.size() - taken));
      file.read_at(taken, std::as_writable_bytes(std::span(packed)).first(count));
      taken += count;
      stream.next_in = reinterpret_cast<Bytef*>(packed.data());
      stream.avail_in = static_cast<uInt>(count);
    }
    const size_t before = content.size();
    content.resize(static_cast<size_t>(std::min<uint64_t>(most, before + (1 << 20))));
    stream.next_out = reinterpret_cast<Bytef*>(content.data() + before);
    stream.avail_out = static_cast<uInt>(content.size() - before);
    code = inflate(&stream, Z_NO_FLUSH);
    content.resize(content.size() - stream.avail_out);
  }
  VT_REQUIRE(code == Z_OK || code == Z_STREAM_END, ErrorKind::kData, "broken gzip file: %s",
             stream.msg ? stream.msg : "cut short");
  return content;
}

// Returns the whole content of a gzip file that should have `bytes`; one byte more reveals a file that is too
// long.
std::unique_ptr<ByteSource> unpacked(const ByteSource& file, uint64_t bytes) {
  VT_REQUIRE(bytes / kMostPerPackedByte <= file.size(), ErrorKind::kData,
             "the header speaks of %llu bytes; %llu packed ones cannot hold as many",
             static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(file.size()));
  require_free_memory(bytes, "unpacking " + file.name());
  return std::make_unique<MemoryBytes>(file.name(), inflate_gz(file, bytes + 1));
}

constexpr uint32_t kIdxMagic = 0x00000800;  // of unsigned bytes; the last byte is the number of extents

uint64_t header_bytes(size_t dims) {
  return 4 * (dims + 1);
}

// Reads and checks the header; returns how many bytes the values take.
uint64_t read_header(const ByteSource& bytes, size_t dims, std::vector<int64_t>& extents) {
  const auto field = [&](size_t index) {
    uint32_t value;
    bytes.read_at(index * sizeof value, std::as_writable_bytes(std::span(&value, 1)));
    return __builtin_bswap32(value);
  };
  const uint32_t magic = field(0), wanted = kIdxMagic + static_cast<uint32_t>(dims);
  VT_REQUIRE(magic == wanted, ErrorKind::kData, "starts with 0x%08x, expected 0x%08x (%zu extents of bytes)",
             magic, wanted, dims);
  for (size_t i = 0; i < dims; ++i) extents.push_back(field(i + 1));
  const auto values = checked_bytes(extents, 1);
  VT_REQUIRE(values && *values <= kMaxBytes, ErrorKind::kData, "the header speaks of more than %llu GiB",
             static_cast<unsigned long long>(kMaxBytes >> 30));
  return *values;
}

IdxFile open_idx_file(const fs::path& path, size_t dims) {
  return with_context(path.string(), [&] {
    return open_idx_bytes(std::make_unique<RandomAccessFile>(path.string()), path.extension() == ".gz", dims);
  });
}

struct IdxPart {
  std::string name;  // "train", "t10k"
  IdxFile images, labels;
};

class Idx : public Dataset {
 public:
  Idx(const fs::path& folder, std::vector<IdxPart> parts) : parts_(std::move(parts)) {
    for (const IdxPart& part : parts_) {
      const int64_t count = part.labels.extents[0];
      VT_REQUIRE(part.images.extents[0] == count, ErrorKind::kData, "%s: %lld images and %lld labels",
                 part.images.bytes->name().c_str(), static_cast<long long>(part.images.extents[0]),
                 static_cast<long long>(count));
      VT_REQUIRE(count == 0 || (part.images.extents[1] > 0 && part.images.extents[2] > 0), ErrorKind::kData,
                 "%s: images without pixels", part.images.bytes->name().c_str());
      require_free_memory(static_cast<size_t>(count) * (sizeof(uint8_t) + sizeof(int32_t)), "reading labels");
      std::vector<uint8_t> values(static_cast<size_t>(count));
      part.labels.bytes->read_at(part.labels.header, std::as_writable_bytes(std::span(values)));
      firsts_.push_back(static_cast<int64_t>(labels_.size()));
      labels_.insert(labels_.end(), values.begin(), values.end());
    }
    size_ = static_cast<int64_t>(labels_.size());
    name_classes(folder);
  }

  std::string sample_name(int64_t index) const override {
    const size_t part = part_of(index);
    return strf("%s#%lld", parts_[part].name.c_str(), static_cast<long long>(index - firsts_[part]));
  }
  std::span<const int32_t> labels(int64_t index) const override {
    return std::span(labels_).subspan(static_cast<size_t>(index), 1);
  }
  Image load(int64_t index, int64_t) const override {
    const size_t part = part_of(index);
    const IdxFile& file = parts_[part].images;
    Image image = Image::blank(file.extents[1], file.extents[2], 1);
    const uint64_t at = file.header + static_cast<uint64_t>(index - firsts_[part]) * image.pixels.size();
    file.bytes->read_at(at, std::as_writable_bytes(std::span(image.pixels)));
    return image;
  }

  std::optional<PixelShape> pixel_shape() const override {
    const auto shape_of = [](const IdxPart& part) {
      return PixelShape{part.images.extents[1], part.images.extents[2], 1};
    };
    for (const IdxPart& part : parts_)
      if (shape_of(part) != shape_of(parts_[0])) return std::nullopt;
    return shape_of(parts_[0]);
  }

 private:
  size_t part_of(int64_t index) const { return parts_.size() > 1 && index >= firsts_[1] ? 1 : 0; }

  void name_classes(const fs::path& folder) {
    const int32_t highest = labels_.empty() ? -1 : *std::max_element(labels_.begin(), labels_.end());
    const fs::path names = folder / "labels.txt";
    std::error_code ignored;
    classes_ = fs::exists(names, ignored) ? read_class_names(names.string())
                                          : numbered_classes(static_cast<size_t>(highest) + 1);
    VT_REQUIRE(highest < static_cast<int32_t>(classes_.size()), ErrorKind::kData,
               "%s has %zu names, but labels go up to %d", names.c_str(), classes_.size(), highest);
  }

  std::vector<IdxPart> parts_;
  std::vector<int64_t> firsts_;  // the first sample of each part
  std::vector<int32_t> labels_;
};

// Finds the one file of `folder` whose name ends with `ending`, its dots and dashes alike, gzipped or not.
fs::path find_idx(const fs::path& folder, const std::string& ending) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    std::replace(name.begin(), name.end(), '.', '-');
    if (name.ends_with(ending)) found.push_back(entry.path());
  }
  if (error)
    throw Error(ErrorKind::kData, strf("cannot list %s: %s", folder.c_str(), error.message().c_str()),
                "check the path: idx: takes the folder that holds the files");
  std::sort(found.begin(), found.end());  // the plain file before its gzipped twin
  const bool twins = found.size() == 2 && found[1] == fs::path(found[0].string() + ".gz");
  VT_REQUIRE(found.size() < 2 || twins, ErrorKind::kData, "%s holds several files *%s: %s, %s",
             folder.c_str(), ending.c_str(), found[0].filename().c_str(), found[1].filename().c_str());
  return found.empty() ? fs::path() : found[0];
}

bool add_part(const fs::path& folder, const std::vector<std::string>& names, std::vector<IdxPart>& parts) {
  for (const std::string& name : names) {
    const fs::path images = find_idx(folder, name + "-images-idx3-ubyte");
    if (images.empty()) continue;
    const fs::path labels = find_idx(folder, name + "-labels-idx1-ubyte");
    VT_REQUIRE(!labels.empty(), ErrorKind::kData, "%s has no file of labels beside it (%s-labels-idx1-ubyte)",
               images.c_str(), name.c_str());
    parts.push_back({name, open_idx_file(images, 3), open_idx_file(labels, 1)});
    return true;
  }
  return false;
}

}  // namespace
}  // namespace formats

IdxFile open_idx_bytes(std::unique_ptr<ByteSource> bytes, bool zipped, size_t dims) {
  using namespace formats;
  IdxFile file{std::move(bytes), {}, header_bytes(dims)};
  std::unique_ptr<ByteSource> start;
  if (zipped) start = std::make_unique<MemoryBytes>(file.bytes->name(), inflate_gz(*file.bytes, file.header));
  const uint64_t values = read_header(zipped ? *start : *file.bytes, dims, file.extents);
  if (zipped) file.bytes = unpacked(*file.bytes, file.header + values);
  const uint64_t found = file.bytes->size() - file.header;
  VT_REQUIRE(found == values, ErrorKind::kData, "the header speaks of %llu bytes, %s%llu follow it",
             static_cast<unsigned long long>(values), zipped && found > values ? "at least " : "",
             static_cast<unsigned long long>(found));
  return file;
}

std::unique_ptr<Dataset> formats::open_idx(const std::string& place, Part part) {
  std::vector<IdxPart> parts;
  if (part != Part::kVal && !add_part(place, {"train"}, parts))
    throw Error(ErrorKind::kData, strf("%s holds no train-images-idx3-ubyte, gzipped or not", place.c_str()));
  if (part != Part::kTrain && !add_part(place, {"t10k", "test"}, parts) && part == Part::kVal) return nullptr;
  return std::make_unique<Idx>(place, std::move(parts));
}

}  // namespace vitrail
