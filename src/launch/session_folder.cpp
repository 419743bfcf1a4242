#include "launch/session_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/process_mark.h"
#include "launch/environment.h"
#include "launch/hosts.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSessionPrefix = "vitrail-";  // followed by PID-START- and what mkdtemp() puts in
constexpr std::string_view kDrawn = "XXXXXX";
// Variables that say where sessions lie, or bring hosts that nobody named here.
constexpr const char* kChosen[] = {"OMPI_MCA_orte_tmpdir_base",
                                   "OMPI_MCA_orte_local_tmpdir_base",
                                   "OMPI_MCA_orte_remote_tmpdir_base",
                                   "OMPI_MCA_orte_top_session_dir",
                                   "OMPI_MCA_orte_no_session_dirs",
                                   "OMPI_MCA_orte_default_hostfile",
                                   "PE_HOSTFILE"};

// The mark's host is left out: paths must be short, and the lock tells other hosts.
std::string session_name() {
  const ProcessMark own = ProcessMark::current();
  return std::string(kSessionPrefix) + own.text().substr(own.host.size() + 1) + "-" + std::string(kDrawn);
}

std::optional<ProcessMark> mark_of_session(const std::string& name) {
  const size_t last = name.rfind('-');
  if (!name.starts_with(kSessionPrefix) || last < kSessionPrefix.size()) return std::nullopt;
  const std::string drawn = name.substr(last + 1);
  if (drawn.size() != kDrawn.size() ||
      !std::all_of(drawn.begin(), drawn.end(), [](unsigned char c) { return std::isalnum(c); }))
    return std::nullopt;
  return ProcessMark::parse(ProcessMark::current().host + "-" +
                            name.substr(kSessionPrefix.size(), last - kSessionPrefix.size()));
}

// Open MPI's own part of the path of a socket is at most this long.
bool has_room(const std::string& parent) {
  const std::string socket =
      parent + "/" + session_name() +
      strf("/ompi.%s.%u/pid.4194304/pmix-4194304", ProcessMark::current().host.c_str(), ::geteuid());
  return socket.size() < sizeof(sockaddr_un::sun_path);
}

// Returns the descriptor that holds the lock of a folder of this user; -1: it is another's, or held.
int locked_folder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat found {};
  if (::fstat(fd, &found) == 0 && found.st_uid == ::geteuid() && ::flock(fd, LOCK_EX | LOCK_NB) == 0)
    return fd;
  ::close(fd);
  return -1;
}

void remove_abandoned(const std::string& parent) {
  std::error_code failed;
  for (fs::directory_iterator it(parent, failed), end; !failed && it != end; it.increment(failed)) {
    const std::optional<ProcessMark> mark = mark_of_session(it->path().filename().string());
    if (!mark || !mark->surely_dead()) continue;
    const int lock = locked_folder(it->path().string());
    if (lock < 0) continue;
    std::error_code kept;
    fs::remove_all(it->path(), kept);
    ::close(lock);
  }
}

}  // namespace

std::string session_parent() {
  const auto is_set = [](const char* name) {
    const char* value = environment_variable(name);
    return value && *value;
  };
  if (under_scheduler() || std::any_of(std::begin(kChosen), std::end(kChosen), is_set)) return {};
  const std::string wanted = is_set("TMPDIR") ? environment_variable("TMPDIR") : "/tmp";
  for (const std::string& parent : {wanted, std::string("/tmp")})
    if (parent[0] == '/' && has_room(parent)) return parent;
  return {};
}

SessionFolder::SessionFolder(const std::string& parent) {
  if (parent.empty()) return;
  remove_abandoned(parent);
  std::string name = parent + "/" + session_name();
  if (!::mkdtemp(name.data())) return;
  path_ = name;
  lock_ = locked_folder(path_);
}

SessionFolder::~SessionFolder() {
  std::error_code left;  // the next job removes it
  if (!path_.empty()) fs::remove_all(path_, left);
  if (lock_ >= 0) ::close(lock_);
}

// Open MPI refuses the one beside the others, which a file of the user's may set: empty, they are not set.
Assignments SessionFolder::environment() const {
  if (path_.empty()) return {};
  return {{"OMPI_MCA_orte_tmpdir_base", path_},
          {"OMPI_MCA_orte_local_tmpdir_base", ""},
          {"OMPI_MCA_orte_remote_tmpdir_base", ""}};
}

}  // namespace vitrail
