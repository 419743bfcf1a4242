// CIFAR-10 and CIFAR-100, as binary files or as python's pickles; CIFAR-100 with its fine labels.
#include <algorithm>
#include <filesystem>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "data/datasets/file_formats.h"
#include "data/datasets/formats.h"
#include "data/datasets/tables.h"

namespace vitrail::formats {

namespace {
namespace fs = std::filesystem;

// Everything in which CIFAR-10 and CIFAR-100 differ, one row per dataset.
struct Kind {
  const char* name;
  int32_t classes;
  size_t label_bytes;                         // before the pixels of a record; the last of them counts
  std::vector<std::string> train, test;       // files, without the ending of the binary version
  const char *binary_folder, *python_folder;  // folders of the unpacked archives
  const char *label_key, *names_key;          // in the pickles
  const char *names_text, *names_pickle;
  std::vector<std::string> names;  // when no file holds them
};

const Kind& cifar10() {
  static const Kind kind{
      "cifar10",
      10,
      1,
      {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"},
      {"test_batch"},
      "cifar-10-batches-bin",
      "cifar-10-batches-py",
      "labels",
      "label_names",
      "batches.meta.txt",
      "batches.meta",
      {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}};
  return kind;
}

const Kind& cifar100() {
  static const Kind kind{"cifar100",
                         100,
                         2,
                         {"train"},
                         {"test"},
                         "cifar-100-binary",
                         "cifar-100-python",
                         "fine_labels",
                         "fine_label_names",
                         "fine_label_names.txt",
                         "meta",
                         numbered_classes(100)};
  return kind;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

class Cifar : public Dataset {
 public:
  Cifar(const Kind& kind, const fs::path& folder, bool binary, const std::vector<std::string>& files) {
    classes_ = class_names(kind, folder, binary);
    for (const std::string& file : files) {
      const std::string name = file + (binary ? ".bin" : "");
      with_context((folder / name).string(), [&] {
        if (binary)
          add_binary(kind, std::make_unique<RandomAccessFile>((folder / name).string()), name);
        else
          add_pickle(kind, (folder / name).string(), name);
      });
    }
    size_ = static_cast<int64_t>(labels_.size());
  }

  std::string sample_name(int64_t index) const override {
    const Batch& batch = batch_of(index);
    return strf("%s#%lld", batch.name.c_str(), static_cast<long long>(index - batch.first));
  }
  std::span<const int32_t> labels(int64_t index) const override {
    return std::span(labels_).subspan(static_cast<size_t>(index), 1);
  }

  Image load(int64_t index, int64_t) const override {
    const Batch& batch = batch_of(index);
    std::byte planes[kCifarPixels];
    batch.bytes->read_at(static_cast<uint64_t>(index - batch.first) * batch.stride + batch.skip, planes);
    Image image = Image::blank(32, 32, 3);
    for (size_t i = 0; i < kCifarPixels; ++i)
      image.pixels[i % 1024 * 3 + i / 1024] = static_cast<uint8_t>(planes[i]);
    return image;
  }

  std::optional<PixelShape> pixel_shape() const override { return PixelShape{32, 32, 3}; }

 private:
  struct Batch {
    std::string name;
    std::unique_ptr<ByteSource> bytes;
    int64_t first;        // its first sample in the set
    size_t stride, skip;  // bytes per record, and before its pixels
  };

  const Batch& batch_of(int64_t index) const {
    return *std::prev(std::upper_bound(batches_.begin(), batches_.end(), index,
                                       [](int64_t i, const Batch& batch) { return i < batch.first; }));
  }

  void add_binary(const Kind& kind, std::unique_ptr<ByteSource> file, const std::string& name) {
    const size_t record = kind.label_bytes + kCifarPixels;
    VT_REQUIRE(file->size() > 0 && file->size() % record == 0, ErrorKind::kData,
               "%llu bytes, expected a multiple of %zu (%zu of labels and %zu of pixels a sample): cut "
               "short, or not %s",
               static_cast<unsigned long long>(file->size()), record, kind.label_bytes, kCifarPixels,
               kind.name);
    const auto first = static_cast<int64_t>(labels_.size());
    constexpr uint64_t kAtOnce = 256;
    std::vector<std::byte> block(kAtOnce * record);
    const uint64_t records = file->size() / record;
    for (uint64_t at = 0; at < records; at += kAtOnce) {
      const uint64_t count = std::min(kAtOnce, records - at);
      file->read_at(at * record, std::span(block).first(count * record));
      for (uint64_t i = 0; i < count; ++i) {
        const auto label = static_cast<int32_t>(block[i * record + kind.label_bytes - 1]);
        VT_REQUIRE(label < kind.classes, ErrorKind::kData, "sample %llu has the label %d, expected 0 to %d",
                   static_cast<unsigned long long>(at + i), label, kind.classes - 1);
        labels_.push_back(label);
      }
    }
    batches_.push_back({name, std::move(file), first, record, kind.label_bytes});
  }

  void add_pickle(const Kind& kind, const std::string& path, const std::string& name) {
    constexpr size_t kMaxBytes = size_t{1} << 29;
    CifarBatch batch =
        read_cifar_pickle(as_byte_span(read_file(path, kMaxBytes)), kind.label_key, kind.classes);
    const auto first = static_cast<int64_t>(labels_.size());
    labels_.insert(labels_.end(), batch.labels.begin(), batch.labels.end());
    batches_.push_back(
        {name, std::make_unique<MemoryBytes>(name, std::move(batch.pixels)), first, kCifarPixels, 0});
  }

  static std::vector<std::string> class_names(const Kind& kind, const fs::path& folder, bool binary) {
    const fs::path file = folder / (binary ? kind.names_text : kind.names_pickle);
    if (!is_there(file)) return kind.names;
    constexpr size_t kMaxBytes = 1 << 20;
    std::vector<std::string> names = with_context(file.string(), [&] {
      return binary ? read_class_names(file.string())
                    : read_cifar_names(as_byte_span(read_file(file.string(), kMaxBytes)), kind.names_key);
    });
    VT_REQUIRE(names.size() == static_cast<size_t>(kind.classes), ErrorKind::kData,
               "%s: %zu names, expected %d", file.c_str(), names.size(), kind.classes);
    return names;
  }

  std::vector<Batch> batches_;
  std::vector<int32_t> labels_;
};

std::unique_ptr<Dataset> open_cifar(const Kind& kind, const std::string& place, Part part) {
  std::vector<std::string> files;
  if (part != Part::kVal) files = kind.train;
  if (part != Part::kTrain) files.insert(files.end(), kind.test.begin(), kind.test.end());
  const struct {
    fs::path folder;
    bool binary;
  } tries[] = {{fs::path(place), true},
               {fs::path(place), false},
               {fs::path(place) / kind.binary_folder, true},
               {fs::path(place) / kind.python_folder, false}};
  for (const auto& [folder, binary] : tries)
    if (is_there(folder / (files.front() + (binary ? ".bin" : ""))))
      return std::make_unique<Cifar>(kind, folder, binary, files);
  throw Error(ErrorKind::kData,
              strf("%s: found neither %s.bin nor %s in %s, nor in %s or %s below it", kind.name,
                   files.front().c_str(), files.front().c_str(), place.c_str(), kind.binary_folder,
                   kind.python_folder),
              "unpack the archive of the dataset there");
}

}  // namespace

std::unique_ptr<Dataset> open_cifar10(const std::string& place, Part part) {
  return open_cifar(cifar10(), place, part);
}
std::unique_ptr<Dataset> open_cifar100(const std::string& place, Part part) {
  return open_cifar(cifar100(), place, part);
}

}  // namespace vitrail::formats
