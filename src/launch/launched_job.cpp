#include "launch/launched_job.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/process_mark.h"
#include "base/text.h"
#include "base/timing.h"
#include "base/values.h"
#include "launch/environment.h"

namespace vitrail {

namespace {

constexpr int kTurn = 50;             // milliseconds
constexpr double kLastReports = 0.3;  // seconds in which what ranks have sent arrives after their end
constexpr double kMpirun = 2.5;       // seconds that mpirun takes to end what it has started

Assignments environment_of(const LaunchPlan& plan, const liveness::Watch& watch,
                           const SessionFolder& session) {
  Assignments environment = plan.environment;
  environment.emplace_back(kWatchVariable, watch.address());
  for (const auto& one : session.environment()) environment.push_back(one);
  return environment;
}

int code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

LaunchedJob::LaunchedJob(const LaunchPlan& plan, liveness::WatchSettings settings, const SignalGuard& signals)
    : signals_(signals),
      limits_(settings.limits),
      watch_(std::move(settings)),
      name_(std::filesystem::path(plan.words[0]).filename().string()),
      mpi_(plan.mpi),
      session_(plan.sessions),
      child_(plan.words, environment_of(plan, watch_, session_)) {}

JobEnd LaunchedJob::run() {
  std::optional<Clock::time_point> decided;
  while (!child_.status()) {
    watch_.turn(kTurn);
    if (signals_.wanted()) watch_.ask_to_stop();
    if (watch_.verdict() && !decided) decided = Clock::now();
    if (decided) press(seconds_since(*decided));
  }
  for (const auto ended = Clock::now(); seconds_since(ended) < kLastReports && !watch_.table().all_left();)
    watch_.turn(kTurn);
  if (WIFSIGNALED(*child_.status())) watch_.end({-1, code_of(*child_.status()), signalled()});
  sweep();
  return judged();
}

// The ranks end by themselves; what does not is ended, first by its own starter.
void LaunchedJob::press(double seconds) {
  const double own = limits_.grace() + 0.5;
  if (pressed_ == 0 && seconds > own) {
    child_.send(SIGTERM);
    pressed_ = 1;
  } else if (pressed_ == 1 && seconds > own + kMpirun) {
    child_.send(SIGKILL);
    pressed_ = 2;
  }
}

// Ranks whose starter is gone were inherited: they get the time to end by themselves.
void LaunchedJob::sweep() {
  if (!watch_.verdict()) return;
  const std::string host = ProcessMark::current().host;
  for (const auto start = Clock::now(); pressed_ == 0 && seconds_since(start) < limits_.grace();) {
    bool left = false;
    for (const liveness::RankRow& row : watch_.table().rows())
      left |= row.joined && row.host == host && ::kill(static_cast<pid_t>(row.pid), 0) == 0 &&
              ::waitpid(static_cast<pid_t>(row.pid), nullptr, WNOHANG) == 0;
    if (!left) return;
    watch_.turn(kTurn);
  }
  for (const liveness::RankRow& row : watch_.table().rows())
    if (row.joined && row.host == host) kill_inherited(static_cast<pid_t>(row.pid));
}

std::string LaunchedJob::signalled() {
  return strf("%s was killed by signal %d", name_.c_str(), WTERMSIG(*child_.status()));
}

// The starter of a rank that is gone knows its signal; the ranks of a starter that is gone go with it.
JobEnd LaunchedJob::judged() {
  const int code = code_of(*child_.status());
  JobEnd end{code, "", watch_.table().made()};
  if (code == 0) return end;
  if (!watch_.verdict()) {
    end.unstarted = code != exit_code(ErrorKind::kStopped);
    if (end.unstarted)
      end.reason = strf("%s ended with exit code %d before its ranks could report", name_.c_str(), code);
    return end;
  }
  if (mpi_ && pressed_ == 0 && WIFSIGNALED(*child_.status())) {
    end.reason = signalled();
    return end;
  }
  end.lost = watch_.verdict()->rank;
  end.loss = watch_.verdict()->loss;
  for (const liveness::RankRow& row : watch_.table().rows()) end.hosts.push_back(row.host);
  end.code = watch_.verdict()->code;
  end.reason = watch_.verdict()->text;
  if (end.code == liveness::kKilled && code > 128 && pressed_ == 0) {
    end.code = code;
    if (code != liveness::kKilled) end.reason += strf(" (signal %d)", code - 128);
  }
  return end;
}

namespace {

constexpr int kVainRestarts = 2;  // in a row and without a step that is new
constexpr double kAnswer = 15;    // seconds that a host may take to run a command

// A mistake comes again; a rank that died, or lost the others, may do better, and so may mpirun that has
// started this job before and finds a host out of reach.
bool may_restart(const JobEnd& end, bool restarted) {
  const int code = end.code;
  return code > 128 || code == exit_code(ErrorKind::kDevice) || code == exit_code(ErrorKind::kDeadline) ||
         code == exit_code(ErrorKind::kMemory) ||
         (restarted && end.unstarted && code == exit_code(ErrorKind::kInternal));
}

// A network that is down may take a while: a restart in vain is followed by a long pause.
void pause_after(int vain, double shortest, const SignalGuard& signals) {
  const double seconds = shortest * static_cast<double>(1 << (4 * vain));
  for (double waited = 0; waited < seconds && !signals.wanted(); waited += 0.1)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

int first_rank_of(const std::string& host, const Hosts& hosts) {
  int64_t before = 0;
  for (const Host& one : hosts.all) {
    if (one.name == host) break;
    before += one.slots;
  }
  return static_cast<int>(before);
}

// mpirun would say that something went wrong somewhere.
// On a restart, a host that does not answer is lost with its ranks.
JobEnd run_once(const LaunchRequest& request, const LaunchPlan& plan, const liveness::WatchSettings& watch,
                const SignalGuard& signals, bool restarted) {
  const std::vector<std::string> silent =
      plan.mpi ? silent_hosts(request.hosts, kAnswer) : std::vector<std::string>();
  if (silent.empty()) return LaunchedJob(plan, watch, signals).run();
  const auto nobody = std::vector<std::string>(static_cast<size_t>(request.ranks));
  return {exit_code(ErrorKind::kDevice),
          strf("no command can be started on %s of %s: no answer within %.0f s, or a refusal (above)%s",
               shown(join(silent, ", ")).c_str(), shown(request.hosts.text).c_str(), kAnswer,
               silent[0] == request.hosts.text ? "; there is no file of that name, either" : ""),
          0,
          restarted ? first_rank_of(silent[0], request.hosts) : -1,
          nobody,
          liveness::Loss::kUnreachable};
}

// A host that cannot be reached is gone, a rank that died may come back once; one that told an error (a
// device that fails, an exchange that broke) has a host that works.
bool is_gone(const JobEnd& end, const LaunchRequest& request, bool again) {
  if (end.lost < 0 || request.hosts.empty()) return end.lost >= 0 && again;
  return end.loss == liveness::Loss::kUnreachable || (again && end.loss == liveness::Loss::kVanished);
}

// Takes the ranks that are left; false: the job cannot go on without the others.
bool go_on_with_fewer(const JobEnd& end, const JobSettings& settings, LaunchRequest& request) {
  RanksLeft left = ranks_without(end.lost, request.hosts, end.hosts);
  if (left.ranks.empty()) return false;
  const std::vector<std::string> options = settings.fewer(left.ranks);
  if (left.ranks.empty()) return false;
  settings.say(strf("going on with %zu of %d ranks, without %s", left.ranks.size(), request.ranks,
                    request.hosts.empty() ? strf("rank %d", end.lost).c_str()
                                          : ("the host of rank " + std::to_string(end.lost)).c_str()));
  request.ranks = static_cast<int>(left.ranks.size());
  request.hosts = left.hosts;
  request.command.insert(request.command.end(), options.begin(), options.end());
  return true;
}

}  // namespace

JobEnd run_job(LaunchRequest request, const JobSettings& settings) {
  const SignalGuard signals;
  liveness::WatchSettings watch = settings.watch;
  LaunchPlan plan = plan_launch(request);
  settings.say(plan.note);
  int vain = 0;
  int64_t furthest = 0;  // step of all starts
  for (int64_t restart = 0;; ++restart) {
    JobEnd end = run_once(request, plan, watch, signals, restart > 0);
    if (end.code == 0 || signals.wanted() || restart == settings.most_restarts ||
        !may_restart(end, restart > 0))
      return end;
    vain = end.made > furthest ? 0 : vain + (restart > 0);
    furthest = std::max(furthest, end.made);
    settings.error("error: " + printable(end.reason));
    const bool fewer =
        settings.fewer && is_gone(end, request, vain > 0) && go_on_with_fewer(end, settings, request);
    if (fewer) {
      vain = 0;
      watch.ranks = request.ranks;
    }
    if (vain == kVainRestarts)
      return {end.code,
              strf("gave up after %d restarts without a new step: %s", kVainRestarts, end.reason.c_str()), 0};
    pause_after(vain, settings.pause_s, signals);
    if (restart == 0 && !settings.resumed) request.command.push_back("--resume");
    if (restart == 0 || fewer) plan = plan_launch(request);
    const int64_t next = restart + 1;
    settings.say(strf("restart %lld of %lld, from the newest checkpoint", static_cast<long long>(next),
                      static_cast<long long>(settings.most_restarts)));
  }
}

}  // namespace vitrail
