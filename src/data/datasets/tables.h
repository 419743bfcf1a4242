// Compact tables of many samples, without an allocation each: names in one block of text, labels in one
// array, and the classes seen. Private to the dataset formats; knows no file.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail {

class NameList {
 public:
  void add(std::string_view name) {
    text_ += name;
    ends_.push_back(text_.size());
  }
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t index) const {
    const uint64_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(text_).substr(begin, ends_[index] - begin);
  }

 private:
  std::string text_;
  std::vector<uint64_t> ends_;
};

// The labels of each sample: one each, or any number.
class LabelTable {
 public:
  explicit LabelTable(bool multi_label = false) : multi_label_(multi_label) {}

  void add(std::span<const int32_t> labels);
  void add(int32_t label) { add(std::span(&label, 1)); }
  size_t size() const { return multi_label_ ? ends_.size() : values_.size(); }
  std::span<const int32_t> operator[](size_t index) const;
  // Renumbers every label; each sample's labels stay ascending.
  void renumber(std::span<const int32_t> numbers);

 private:
  bool multi_label_;
  std::vector<int32_t> values_;
  std::vector<uint64_t> ends_;  // of several
};

// Class names in order of appearance. sorted() puts them in byte order and returns the new number of each.
class ClassNames {
 public:
  static constexpr size_t kMost = 1'000'000;

  int32_t number(std::string_view name);  // adds a new name
  std::vector<int32_t> sort(std::vector<std::string>& classes) const;

 private:
  std::map<std::string, int32_t, std::less<>> numbers_;
};

// Returns "0", "1"...: the names of classes that are only numbers.
std::vector<std::string> numbered_classes(size_t count);

// Reads one name per line, blank lines at the end dropped.
std::vector<std::string> read_class_names(const std::string& path);

}  // namespace vitrail
