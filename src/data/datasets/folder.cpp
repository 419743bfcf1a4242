// A folder of images: one folder per class, or a flat one with labels.csv; at the top, or below train and
// val.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "data/datasets/file_formats.h"
#include "data/datasets/find_files.h"
#include "data/datasets/formats.h"
#include "data/datasets/tables.h"

namespace vitrail::formats {

namespace {

constexpr const char* kTrain = "train";
// The first of these folders that exists is the validation part.
constexpr const char* kVal[] = {"val", "valid", "validation", "test"};
constexpr const char* kSheet = "labels.csv";

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns "train/", "val/"...; one empty name when the folder is not divided into parts. It is divided when
// there is a folder train and every other folder is a part too, because a class may be called train.
std::vector<std::string> part_folders(const FolderEntries& top) {
  const auto is_val = [](const std::string& name) {
    return std::find(std::begin(kVal), std::end(kVal), name) != std::end(kVal);
  };
  const bool divided = has(top.folders, kTrain) && !has(top.files, kSheet) &&
                       std::all_of(top.folders.begin(), top.folders.end(),
                                   [&](const std::string& name) { return name == kTrain || is_val(name); });
  if (!divided) return {""};
  std::vector<std::string> parts = {std::string(kTrain) + "/"};
  for (const char* name : kVal)
    if (has(top.folders, name)) parts.push_back(std::string(name) + "/");
  return parts;
}

class Folder : public Dataset {
 public:
  // Classes are those of all parts, so that every part numbers them alike; samples are those of `chosen`.
  Folder(std::string root, const std::vector<std::string>& parts, const std::vector<std::string>& chosen)
      : root_(std::move(root)) {
    std::vector<Source> sources;
    sources.reserve(parts.size());
    for (const std::string& part : parts) sources.push_back(look_into(part));
    multi_label_ = sources[0].sheet.multi_label;
    labels_ = LabelTable(multi_label_);
    for (const Source& source : sources) {
      VT_REQUIRE(source.sheet.multi_label == multi_label_, ErrorKind::kData,
                 "%s: parts with one label an image and with several", root_.c_str());
      for (const std::string& name : source.classes) names_.number(name);
      for (const LabelRow& row : source.sheet.rows)
        for (const std::string& name : row.labels) names_.number(name);
      if (has(chosen, source.part)) add_samples(source);
    }
    labels_.renumber(names_.sort(classes_));
    size_ = static_cast<int64_t>(files_.size());
    VT_REQUIRE(!classes_.empty(), ErrorKind::kData,
               "%s: expected a folder of images a class, or images and %s; found neither", root_.c_str(),
               kSheet);
  }

  std::string sample_name(int64_t index) const override {
    return std::string(files_[static_cast<size_t>(index)]);
  }
  std::span<const int32_t> labels(int64_t index) const override {
    return labels_[static_cast<size_t>(index)];
  }
  Image load(int64_t index, int64_t least_side) const override {
    return decode_sample(*encoded(index), sample_name(index), least_side);
  }

  std::optional<std::string> encoded(int64_t index) const override {
    const RandomAccessFile file(root_ + "/" + sample_name(index));
    VT_REQUIRE(file.size() <= kMaxImageBytes, ErrorKind::kData, "%s has %llu bytes, at most %llu are read",
               printable(file.name()).c_str(), static_cast<unsigned long long>(file.size()),
               static_cast<unsigned long long>(kMaxImageBytes));
    std::string bytes(file.size(), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }

  uint64_t stored_bytes(int64_t index) const override {
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(root_ + "/" + sample_name(index), error);
    return error ? 0 : bytes;
  }

 private:
  struct Source {
    std::string part;
    std::vector<std::string> classes;
    bool listed = false;  // in labels.csv
    LabelSheet sheet;
  };

  Source look_into(const std::string& part) const {
    const std::string folder = root_ + "/" + part;
    FolderEntries entries = list_folder(folder);
    Source source{part, std::move(entries.folders), has(entries.files, kSheet), {}};
    if (!source.listed) return source;
    constexpr size_t kMaxSheet = size_t{1} << 30;
    source.sheet =
        with_context(folder + kSheet, [&] { return parse_labels(read_file(folder + kSheet, kMaxSheet)); });
    source.classes = source.sheet.classes;
    return source;
  }

  void add_samples(const Source& source) {
    if (!source.listed) {
      for (const std::string& name : source.classes) {
        const int32_t label = names_.number(name);
        const std::string prefix = source.part + name + "/";
        for (const std::string& file : list_images_below(root_ + "/" + source.part + name)) {
          files_.add(prefix + file);
          labels_.add(label);
        }
      }
      return;
    }
    std::vector<int32_t> numbers;
    for (const LabelRow& row : source.sheet.rows) {
      numbers.clear();
      for (const std::string& label : row.labels) numbers.push_back(names_.number(label));
      files_.add(source.part + row.file);
      labels_.add(numbers);
    }
  }

  std::string root_;
  NameList files_;
  LabelTable labels_;
  ClassNames names_;
};

}  // namespace

std::unique_ptr<Dataset> open_folder(const std::string& place, Part part) {
  const std::vector<std::string> parts = part_folders(list_folder(place));
  std::vector<std::string> chosen = parts;
  if (part == Part::kTrain) chosen = {parts[0]};
  if (part == Part::kVal) {
    if (parts.size() < 2) return nullptr;
    chosen = {parts[1]};
  }
  return std::make_unique<Folder>(place, parts, chosen);
}

}  // namespace vitrail::formats
