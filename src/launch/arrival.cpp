#include "launch/arrival.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "base/error.h"
#include "base/process_mark.h"
#include "base/values.h"
#include "dist/liveness/rank_table.h"

namespace vitrail {

namespace {

constexpr auto kTold =
    std::chrono::milliseconds(500);  // in which others whose time is over see that it was said

std::optional<int> count_in(const Variables& variables, const char* name) {
  const char* text = variables(name);
  const auto number = text ? parse_integer(text) : std::nullopt;
  return number && *number >= 0 && *number <= 1 << 22 ? std::optional(static_cast<int>(*number))
                                                      : std::nullopt;
}

// Returns "rank 1", "ranks 0, 2".
std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

}  // namespace

std::optional<JobPlace> job_place(const Variables& variables) {
  const bool mpirun = started_by_mpirun(variables);
  if (!mpirun && !started_by_srun(variables)) return std::nullopt;
  const auto rank = count_in(variables, mpirun ? "OMPI_COMM_WORLD_RANK" : "SLURM_PROCID");
  const auto size = count_in(variables, mpirun ? "OMPI_COMM_WORLD_SIZE" : "SLURM_STEP_NUM_TASKS");
  if (!rank || !size || *size < 2) return std::nullopt;
  const char* job = variables("PMIX_NAMESPACE");
  JobPlace place{job ? job : "", *rank, *size};
  if (mpirun)
    place.here = count_in(variables, "OMPI_COMM_WORLD_LOCAL_SIZE").value_or(0);
  else if (count_in(variables, "SLURM_STEP_NUM_NODES") == 1)
    place.here = place.size;
  return place;
}

std::string absent_text(const JobPlace& place, const std::vector<int>& came, double seconds,
                        const std::string& host) {
  const std::string waited = strf(" within %.0f s, says rank %d", seconds, place.rank);
  std::vector<int> absent;
  for (int rank = 0; rank < place.size; ++rank)
    if (std::find(came.begin(), came.end(), rank) == came.end()) absent.push_back(rank);
  if (absent.empty()) return strf("all %d ranks came, and MPI did not connect them", place.size) + waited;
  if (place.here == place.size && !came.empty())
    return ranks_text(absent) + strf(" of %d never came", place.size) + waited;
  std::string text = strf("not all of %d ranks came", place.size) + waited;
  if (came.empty()) return text;
  text += ": on " + host + " " + ranks_text(came) + " did";
  return place.here > 0 ? text + strf(", of %d there", place.here) : text;
}

HeldName::HeldName(const std::string& name) {
  if (name.empty()) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;  // behind a zero stands a name that is in no file system
  const size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (socket_ < 0 || ::bind(socket_, reinterpret_cast<const sockaddr*>(&address), bytes) == 0) return;
  taken_ = errno == EADDRINUSE;
  ::close(socket_);
  socket_ = -1;
}

HeldName::~HeldName() {
  if (socket_ >= 0) ::close(socket_);
}

std::string Arrival::name_of(const std::string& what) const {
  return place_.job.empty() ? "" : "vitrail-" + place_.job + "-" + what;
}

Arrival::Arrival(JobPlace place, double seconds, const SignalGuard& signals)
    : place_(std::move(place)),
      seconds_(seconds),
      signals_(signals),
      own_(name_of(std::to_string(place_.rank))) {
  clock_ = std::thread([this] { wait(); });
}

Arrival::~Arrival() {
  complete();
}

void Arrival::complete() {
  {
    const std::lock_guard lock(mutex_);
    complete_ = true;
  }
  changed_.notify_all();
  if (clock_.joinable()) clock_.join();
}

// The rank whose time is over first speaks; what started the ranks would end it before a certain one could.
void Arrival::wait() {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, std::chrono::duration<double>(seconds_), [this] { return complete_; })) return;
  const HeldName word(name_of("word"));
  if (!word.taken() && !signals_.wanted()) tell();
  std::this_thread::sleep_for(kTold);
  ::_exit(liveness::kCutOff);
}

void Arrival::tell() const {
  std::vector<int> came;
  for (int rank = 0; rank < place_.size && own_.held(); ++rank)
    if (rank == place_.rank || HeldName(name_of(std::to_string(rank))).taken()) came.push_back(rank);
  const std::string line =
      "error: " + absent_text(place_, came, seconds_, ProcessMark::current().host) + "\n";
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) ::_exit(liveness::kCutOff);
}

}  // namespace vitrail
