// WebDataset shards: indexed once when opened, then read in any order.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/datasets/find_files.h"
#include "data/datasets/formats.h"
#include "data/datasets/tables.h"
#include "data/datasets/tar_samples.h"

namespace vitrail::formats {

namespace {
namespace fs = std::filesystem;

class Tar : public Dataset {
 public:
  explicit Tar(const std::vector<std::string>& shards) {
    std::vector<std::vector<TarSample>> samples;
    for (const std::string& path : shards) {
      const RandomAccessFile file(path);
      samples.push_back(with_context(path, [&] { return index_tar(file); }));
      shards_.push_back({path, fs::path(path).filename().string(), file.size()});
      for (const TarSample& sample : samples.back()) look_at(sample.label);
    }
    VT_REQUIRE(!(named_ && numbered_), ErrorKind::kData, "%s: some labels are numbers, others names",
               shards[0].c_str());
    labels_ = LabelTable(multi_label_);
    for (size_t shard = 0; shard < samples.size(); ++shard)
      for (const TarSample& sample : samples[shard]) add(sample, static_cast<uint32_t>(shard));
    size_ = static_cast<int64_t>(places_.size());
    if (named_)
      labels_.renumber(names_.sort(classes_));
    else
      name_numbers(fs::path(shards[0]).parent_path());
  }

  std::string sample_name(int64_t index) const override {
    return shard_of(index).name + ":" + std::string(members_[static_cast<size_t>(index)]);
  }
  std::span<const int32_t> labels(int64_t index) const override {
    return labels_[static_cast<size_t>(index)];
  }
  Image load(int64_t index, int64_t least_side) const override {
    return decode_sample(*encoded(index), sample_name(index), least_side);
  }

  // The shard is opened each time, because a set may have more shards than a process may have files open.
  std::optional<std::string> encoded(int64_t index) const override {
    const Shard& shard = shard_of(index);
    const Place& place = places_[static_cast<size_t>(index)];
    const RandomAccessFile file(shard.path);
    VT_REQUIRE(file.size() == shard.bytes, ErrorKind::kData,
               "%s had %llu bytes when it was indexed, now %llu", shard.path.c_str(),
               static_cast<unsigned long long>(shard.bytes), static_cast<unsigned long long>(file.size()));
    std::string bytes(place.size, '\0');
    file.read_at(place.offset, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }
  uint64_t stored_bytes(int64_t index) const override { return places_[static_cast<size_t>(index)].size; }

 private:
  struct Shard {
    std::string path, name;
    uint64_t bytes;
  };
  struct Place {
    uint64_t offset;
    uint32_t size, shard;
  };

  const Shard& shard_of(int64_t index) const { return shards_[places_[static_cast<size_t>(index)].shard]; }

  void look_at(const TarLabel& label) {
    named_ |= !label.names.empty();
    numbered_ |= !label.numbers.empty();
    multi_label_ |= label.several;
    for (const int64_t number : label.numbers) {
      VT_REQUIRE(number >= 0 && number < static_cast<int64_t>(ClassNames::kMost), ErrorKind::kData,
                 "%s: the label %lld, expected 0 to %zu", shards_.back().path.c_str(),
                 static_cast<long long>(number), ClassNames::kMost - 1);
      highest_ = std::max(highest_, number);
    }
  }

  void add(const TarSample& sample, uint32_t shard) {
    members_.add(sample.name);
    places_.push_back({sample.offset, static_cast<uint32_t>(sample.size), shard});
    std::vector<int32_t> numbers(sample.label.numbers.begin(), sample.label.numbers.end());
    for (const std::string& name : sample.label.names) numbers.push_back(names_.number(name));
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    labels_.add(numbers);
  }

  void name_numbers(const fs::path& folder) {
    const std::string file = (folder / "classes.txt").string();
    std::error_code ignored;
    const auto count = static_cast<size_t>(highest_ + 1);
    classes_ = fs::exists(file, ignored) ? read_class_names(file) : numbered_classes(count);
    VT_REQUIRE(count <= classes_.size(), ErrorKind::kData, "%s has %zu names, but labels go up to %lld",
               file.c_str(), classes_.size(), static_cast<long long>(highest_));
  }

  std::vector<Shard> shards_;
  std::vector<Place> places_;
  NameList members_;
  LabelTable labels_;
  ClassNames names_;
  bool named_ = false, numbered_ = false;
  int64_t highest_ = -1;
};

}  // namespace

std::unique_ptr<Dataset> open_tar(const std::string& place, Part part) {
  if (part == Part::kVal) return nullptr;
  return std::make_unique<Tar>(find_shards(place));
}

}  // namespace vitrail::formats
