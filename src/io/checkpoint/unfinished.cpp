#include "io/checkpoint/unfinished.h"

#include <atomic>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/half_written.h"
#include "base/process_mark.h"
#include "base/text.h"
#include "io/checkpoint/durable.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;

// The mark is the last three words of the name, and a host's name holds no '-'; a number precedes it.
std::optional<ProcessMark> mark_in(const std::string& name) {
  if (!name.starts_with(kUnfinishedPrefix)) return std::nullopt;
  size_t cut = name.size();
  for (int words = 0; words < 3 && cut != name.npos && cut > 0; ++words) cut = name.rfind('-', cut - 1);
  if (cut == name.npos || cut == 0) return std::nullopt;
  const size_t number = name.rfind('-', cut - 1) + 1;
  const bool what_and_number =
      number > std::string_view(kUnfinishedPrefix).size() && is_number(name.substr(number, cut - number));
  return what_and_number ? ProcessMark::parse(name.substr(cut + 1)) : std::nullopt;
}

bool could_not_be_deleted(const std::string& name) {
  if (!name.starts_with(kGonePrefix)) return false;
  const size_t number = kGonePrefix.size(), dash = name.find('-', number);
  if (dash == name.npos || dash - number > 2 || !is_number(name.substr(number, dash - number))) return false;
  return std::stoi(name.substr(number, dash - number)) < kMostGone && dash + 1 < name.size();
}

bool is_abandoned(const std::string& name, bool sole) {
  if (!is_unfinished(name)) return false;
  const std::optional<ProcessMark> mark = mark_in(name);
  if (sole) return mark != ProcessMark::current();
  return mark && mark->surely_dead();
}

}  // namespace

bool is_unfinished(const std::string& name) {
  return mark_in(name) || could_not_be_deleted(name);
}

std::string half_written_file(const std::string& name) {
  const std::optional<HalfWritten> found = half_written(name);
  return found ? found->file : "";
}

std::string unfinished_name(const std::string& what) {
  static std::atomic<unsigned> counter{0};
  return strf("%s%s-%u-%s", kUnfinishedPrefix, what.c_str(), counter++,
              ProcessMark::current().text().c_str());
}

std::vector<std::string> remove_unfinished(const std::string& folder, bool sole) {
  std::vector<std::string> removed;
  for (const std::string& name : names_in(folder)) {
    std::error_code error;
    if (!is_abandoned(name, sole)) continue;
    fs::remove_all(folder + "/" + name, error);
    if (!error) removed.push_back(name);
  }
  return removed;
}

}  // namespace vitrail
