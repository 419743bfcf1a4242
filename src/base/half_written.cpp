#include "base/half_written.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;

constexpr const char* kBeforeNumbers = ".tmp-";
constexpr size_t kLongestFile = 140;  // a name has at most 255 bytes, and the writer's mark takes up to 113

bool is_left_by_the_dead(const std::string& name, const std::string& file) {
  const std::optional<HalfWritten> found = half_written(name);
  return found && found->file == file && found->writer && found->writer->surely_dead();
}

// A process of another container may live though nobody has its pid here. Where locks are not known it may,
// too.
bool is_held(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return true;
  const bool held = ::flock(fd, LOCK_EX | LOCK_NB) != 0;
  ::close(fd);
  return held;
}

}  // namespace

std::optional<HalfWritten> half_written(const std::string& name) {
  const size_t end = name.rfind(kBeforeNumbers);
  if (!name.starts_with('.') || end == name.npos || end < 2) return std::nullopt;
  const std::string numbers = name.substr(end + std::string_view(kBeforeNumbers).size());
  const size_t dash = numbers.find('-');
  if (dash == numbers.npos || !is_number(numbers.substr(0, dash))) return std::nullopt;
  const std::string writer = numbers.substr(dash + 1);
  HalfWritten found{name.substr(1, end - 1), ProcessMark::parse(writer)};
  if (!found.writer && !is_number(writer)) return std::nullopt;
  return found;
}

std::string half_written_name(const std::string& file) {
  static std::atomic<unsigned> counter{0};
  return "." + file.substr(0, kLongestFile) +
         strf("%s%u-%s", kBeforeNumbers, ++counter, ProcessMark::current().text().c_str());
}

void remove_abandoned(const std::string& path) {
  const fs::path target(path), folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const std::string file = target.filename().string().substr(0, kLongestFile);
  std::error_code stop, stays;
  for (fs::directory_iterator entry(folder, stop), end; !stop && entry != end; entry.increment(stop))
    if (is_left_by_the_dead(entry->path().filename().string(), file) && !is_held(entry->path()))
      fs::remove(entry->path(), stays);
}

void hold_half_written(int fd) {
  static_cast<void>(::flock(fd, LOCK_EX | LOCK_NB));
}

}  // namespace vitrail
