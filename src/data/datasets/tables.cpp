#include "data/datasets/tables.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace vitrail {

void LabelTable::add(std::span<const int32_t> labels) {
  VT_CHECK(multi_label_ || labels.size() == 1);
  values_.insert(values_.end(), labels.begin(), labels.end());
  if (!multi_label_) return;
  std::sort(values_.end() - static_cast<std::ptrdiff_t>(labels.size()), values_.end());
  ends_.push_back(values_.size());
}

std::span<const int32_t> LabelTable::operator[](size_t index) const {
  if (!multi_label_) return std::span(values_).subspan(index, 1);
  const uint64_t begin = index == 0 ? 0 : ends_[index - 1];
  return std::span(values_).subspan(begin, ends_[index] - begin);
}

void LabelTable::renumber(std::span<const int32_t> numbers) {
  for (int32_t& label : values_) label = numbers[static_cast<size_t>(label)];
  uint64_t begin = 0;
  for (const uint64_t end : ends_) {
    std::sort(values_.begin() + static_cast<std::ptrdiff_t>(begin),
              values_.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
  }
}

int32_t ClassNames::number(std::string_view name) {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  VT_REQUIRE(numbers_.size() < kMost, ErrorKind::kData, "more than %zu classes", kMost);
  return numbers_.emplace(name, static_cast<int32_t>(numbers_.size())).first->second;
}

std::vector<int32_t> ClassNames::sort(std::vector<std::string>& classes) const {
  std::vector<int32_t> sorted(numbers_.size());
  classes.clear();
  for (const auto& [name, number] : numbers_) {
    sorted[static_cast<size_t>(number)] = static_cast<int32_t>(classes.size());
    classes.push_back(name);
  }
  return sorted;
}

std::vector<std::string> numbered_classes(size_t count) {
  std::vector<std::string> names(count);
  for (size_t i = 0; i < count; ++i) names[i] = std::to_string(i);
  return names;
}

std::vector<std::string> read_class_names(const std::string& path) {
  constexpr size_t kMaxBytes = 16 << 20;
  const std::string text = read_file(path, kMaxBytes);
  VT_REQUIRE(is_valid_utf8(text), ErrorKind::kData, "%s is not UTF-8 text; expected one class name a line",
             path.c_str());
  std::vector<std::string> names(1);
  for (const char c : text) {
    if (c == '\n')
      names.emplace_back();
    else if (c != '\r')
      names.back() += c;
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  return names;
}

}  // namespace vitrail
