#include "launch/rank_session.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

#include "base/error.h"
#include "base/text.h"
#include "base/timing.h"
#include "base/values.h"
#include "launch/environment.h"
#include "train/agreement.h"
#include "train/flip_bit.h"

namespace vitrail {

namespace {
using liveness::Verdict;

constexpr double kCause = 2;  // seconds in which the cause of a failed exchange is told
constexpr double kFarewell =
    0.4;  // seconds for the others to hear of it: mpirun kills what is left after one

int number_in(const char* name, int otherwise) {
  const char* text = environment_variable(name);
  return text ? static_cast<int>(parse_integer(text).value_or(otherwise)) : otherwise;
}

// A process whose main thread does not come back ends here; what it holds goes with it.
void end_now(const Verdict& verdict, bool speaks) {
  const std::string line = "error: " + printable(verdict.text) + "\n";
  if (speaks && ::write(STDERR_FILENO, line.data(), line.size()) < 0) ::_exit(verdict.code);
  ::_exit(verdict.code);
}

// Gives the heartbeat time to tell where the rank is, as it has in a longer phase.
void die(const std::string& how) {
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  ::kill(::getpid(), how == "stop" ? SIGSTOP : SIGKILL);
}

// Holds what VITRAIL_TEST_FAULT says.
struct Fault {
  int64_t rank = 0, step = 0;
  std::string phase, how, marker;

  // Returns whether it has not happened yet; with a marker, which this makes, in any process.
  bool is_first() const {
    if (marker.empty()) return true;
    const int fd = ::open(marker.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0) ::close(fd);
    return fd >= 0;
  }
};

std::optional<Fault> asked_fault() {
  const char* text = environment_variable(kFaultVariable);
  if (!text) return std::nullopt;
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() < 4) return std::nullopt;
  const auto rank = parse_integer(std::string(parts[0])), step = parse_integer(std::string(parts[2]));
  if (!rank || !step) return std::nullopt;
  return Fault{*rank, *step, std::string(parts[1]), std::string(parts[3]),
               parts.size() > 4 ? std::string(parts[4]) : ""};
}

}  // namespace

bool started_as_rank() {
  return started_by_mpirun(environment_variable) || started_by_srun(environment_variable) ||
         started_by_srun_without_pmix(environment_variable);
}

bool RankSession::needed(int64_t ranks) {
  return ranks > 1 || environment_variable(kWatchVariable) || started_as_rank();
}

RankSession::RankSession(const RankSettings& settings) : limits_{settings.deadline} {
  share_gpu_queues(settings.ranks);
  const char* address = environment_variable(kWatchVariable);
  const int rank = number_in("OMPI_COMM_WORLD_RANK", -1);
  if (rank >= 0 || address) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::optional<JobPlace> place = address ? std::nullopt : job_place(environment_variable);
  if (place) arrival_ = std::make_unique<Arrival>(*place, limits_.join(), signals_);
  if (!address) return;
  launched_ = true;
  first_ = std::max(rank, 0);
  count_ = rank >= 0 ? 1 : settings.ranks;
  set_fault(-1);
  start({.address = address,
         .first = first_,
         .count = count_,
         .ranks = rank >= 0 ? number_in("OMPI_COMM_WORLD_SIZE", 1) : count_,
         .limits = limits_});
}

RankSession::~RankSession() {
  heartbeat_.reset();
  over_ = true;
  if (turns_.joinable()) turns_.join();
}

void RankSession::start(liveness::HeartbeatSettings settings) {
  settings.stop = [] { ::kill(::getpid(), SIGTERM); };
  settings.force = [this](const Verdict& verdict) { end_now(verdict, speaks(verdict)); };
  heartbeat_ = std::make_unique<liveness::Heartbeat>(std::move(settings));
  for (int r = first_; r < first_ + count_; ++r) {
    set_fault(r);
    heartbeat_->pulse(r).enter(RankPhase::kInit);
  }
}

// Rank -1 stands for what happens before a rank reports for the first time.
void RankSession::set_fault(int rank) {
  const std::optional<Fault> fault = asked_fault();
  if (!fault) return;
  if (rank < 0 && fault->how == "absent" && fault->rank == first_) ::pause();
  if (rank < 0 || fault->rank != rank || fault->how == "absent") return;
  heartbeat_->pulse(rank).on_enter = [fault = *fault](RankPhase entered, int64_t current) {
    if (fault.phase == to_string(entered) && current >= fault.step && fault.is_first()) die(fault.how);
  };
}

std::function<void(TrainStep&, int64_t)> bit_fault(int rank) {
  const std::optional<Fault> fault = asked_fault();
  if (!fault || fault->rank != rank || fault->phase != "flip") return {};
  return [fault = *fault](TrainStep& step, int64_t made) {
    if (made == fault.step && fault.is_first())
      flip_bit(step, drawn_bit(step, static_cast<uint64_t>(parse_integer(fault.how).value_or(0))));
  };
}

void RankSession::open(World& world) {
  open_channel(world);
  if (arrival_) arrival_->complete();
}

void RankSession::open_channel(World& world) {
  if (heartbeat_ || std::string_view(world.transport) != "mpi" || world.size < 2) return;
  Communicator& all = *world.ranks[0];
  first_ = all.rank();
  std::string address;
  if (first_ == 0) {
    const bool one_host = world.local_size == world.size;
    watch_ = std::make_unique<liveness::Watch>(liveness::WatchSettings{
        .ranks = world.size, .limits = limits_, .host = one_host ? "127.0.0.1" : liveness::own_address()});
    address = watch_->address();
    turns_ = std::thread([this] {
      while (!over_) {
        watch_->turn(100);
        if (watch_->table().all_left()) all_left_ = true;
      }
    });
  }
  start({.address = from_first(all, address),
         .first = first_,
         .count = 1,
         .ranks = world.size,
         .limits = limits_,
         .watched_by = 0});
}

// The process with the watch goes last: the others would miss it.
void RankSession::leave(double seconds) {
  if (!heartbeat_) return;
  heartbeat_->leave();
  for (const auto start = Clock::now(); watch_ && !all_left_ && seconds_since(start) < seconds;)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

// Under `vitrail launch` the launcher has the last word; otherwise the lowest rank that is left.
bool RankSession::speaks(const Verdict& verdict) const {
  return !launched_ && first_ == (verdict.rank == 0 ? 1 : 0);
}

void RankSession::told(int code, bool by_others, const std::string& text) {
  heartbeat_->failed(first_, code, by_others, text);
  const std::optional<Verdict> verdict = heartbeat_->verdict(kCause);
  leave(kFarewell);
  if (verdict && !is_mine(verdict->rank))
    throw EndProcess{verdict->code, speaks(*verdict) ? "error: " + verdict->text : ""};
}

void RankSession::run(const std::function<void()>& body) {
  try {
    body();
  } catch (const EndProcess&) {
    leave(limits_.silence());
    throw;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kStopped)
      leave(limits_.silence());
    else if (heartbeat_)
      told(exit_code(error.kind()), error.kind() == ErrorKind::kComm, error.what());
    throw;
  } catch (const std::exception& error) {
    if (heartbeat_) told(exit_code(ErrorKind::kInternal), false, error.what());
    throw;
  }
  leave(limits_.silence());
}

}  // namespace vitrail
