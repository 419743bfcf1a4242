#include "io/checkpoint/unfinished.h"

#include <atomic>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/process_mark.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;

// The mark is the name's last three words, and a host may hold no '-'.
std::optional<ProcessMark> mark_in(const std::string& name) {
  size_t cut = name.size();
  for (int words = 0; words < 3 && cut != name.npos && cut > 0; ++words) cut = name.rfind('-', cut - 1);
  return cut == name.npos ? std::nullopt : ProcessMark::parse(name.substr(cut + 1));
}

bool is_abandoned(const std::string& name, bool sole) {
  if (!name.starts_with(kUnfinishedPrefix)) return false;
  const std::optional<ProcessMark> mark = mark_in(name);
  if (sole) return mark != ProcessMark::current();
  return mark && mark->surely_dead();
}

}  // namespace

std::string unfinished_name(const std::string& what) {
  static std::atomic<unsigned> counter{0};
  return strf("%s%s-%u-%s", kUnfinishedPrefix, what.c_str(), counter++,
              ProcessMark::current().text().c_str());
}

std::vector<std::string> remove_unfinished(const std::string& folder, bool sole) {
  std::vector<std::string> removed, abandoned;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (const std::string name = entry->path().filename().string(); is_abandoned(name, sole))
      abandoned.push_back(name);
  for (const std::string& name : abandoned) {
    fs::remove_all(folder + "/" + name, error);
    if (!error) removed.push_back(name);
  }
  return removed;
}

}  // namespace vitrail
