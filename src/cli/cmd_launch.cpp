#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "base/values.h"
#include "cli/commands.h"
#include "cli/device_choice.h"
#include "cli/environment.h"
#include "cli/run.h"
#include "cli/train_settings.h"
#include "launch/launched_job.h"
#include "launch/rank_session.h"
#include "train/balance.h"

namespace vitrail::cli {

namespace {

// The command that ranks run, its mistakes told before anything starts.
Options checked(const std::vector<std::string>& words) {
  for (const Command& command : commands()) {
    const size_t count = words_of(command, words);
    if (count == 0) continue;
    const bool ranked = std::any_of(command.spec.options.begin(), command.spec.options.end(),
                                    [](const OptionSpec& option) { return option.name == "ranks"; });
    VT_REQUIRE(ranked && command.spec.name != "launch", ErrorKind::kUsage,
               "vitrail %s runs in one process: it has nothing to share out to ranks",
               command.spec.name.c_str());
    Options options = options_of(command, std::span(words).subspan(count));
    const std::vector<std::string>& named = options.positionals();
    if (std::find(named.begin(), named.end(), "-") != named.end())
      throw Error(ErrorKind::kUsage, "ranks that launch starts have no stdin to read a list from",
                  "@FILE for a list in a file, or mpirun itself");
    return options;
  }
  throw Error(ErrorKind::kUsage, strf("there is no command %s to launch", quoted(words[0]).c_str()),
              "vitrail launch -n 2 train --config FILE");
}

// One line names the rank and its error, whatever that holds.
[[noreturn]] void end_with(const JobEnd& end) {
  std::string line = end.reason.empty() ? "" : "error: " + end.reason;
  for (size_t at; (at = line.find('\n')) != std::string::npos;) line.replace(at, 1, ";");
  throw EndProcess{end.code, line};
}

LaunchRequest request_of(const Options& options) {
  const bool mpirun = options.flag("mpirun"), threads = options.flag("rank-threads");
  VT_REQUIRE(!(mpirun && threads), ErrorKind::kUsage, "--mpirun and --rank-threads exclude each other");
  Hosts hosts = hosts_from(options.text("hosts"));
  VT_REQUIRE(!threads || hosts.empty(), ErrorKind::kUsage,
             "--rank-threads are of one process, on this host: --hosts has nothing to name");
  const bool counted = options.origin("ranks") == Origin::kDefault && !hosts.empty();
  const int64_t ranks = counted ? hosts.slots() : options.integer("ranks");
  require_slots(hosts, ranks);
  return {.ranks = static_cast<int>(ranks),
          .by = mpirun    ? LaunchBy::kMpirun
                : threads ? LaunchBy::kThreads
                          : LaunchBy::kBest,
          .hosts = std::move(hosts),
          .command = options.positionals()};
}

liveness::WatchSettings watch_of(const Options& options, int ranks, const Options& command,
                                 Console& console) {
  // The command's own deadline is what its ranks know.
  return {.ranks = ranks,
          .limits = {command.number("deadline")},
          .host = options.given("hosts") ? liveness::own_address() : "127.0.0.1",
          .port = static_cast<int>(options.integer("port")),
          .told = [&console](const std::string& text) { console.say(text); }};
}

void run(const Options& options, Console& console) {
  LaunchRequest request = request_of(options);
  if (options.origin("threads") == Origin::kFlag)
    request.command.insert(request.command.end(), {"--threads", options.text("threads")});
  const Options command = checked(request.command);
  const int64_t most = options.integer("max-restarts");
  VT_REQUIRE(most == 0 || command.declared("resume"), ErrorKind::kUsage,
             "--max-restarts resumes a training run; vitrail %s saves nothing to go on from",
             request.command[0].c_str());
  liveness::WatchSettings watch = watch_of(options, request.ranks, command, console);
  const bool fewer = options.flag("allow-fewer");
  VT_REQUIRE(!fewer || most > 0, ErrorKind::kUsage,
             "--allow-fewer is about restarts: --max-restarts K says how many there may be");
  VT_REQUIRE(!fewer || !command.given("deepspeed"), ErrorKind::kUsage,
             "--allow-fewer needs a config of its own: plan --deepspeed prints it");
  std::string threads = command.text("threads");
  const auto go_on = [&, ranks = request.ranks](std::vector<int>& left) {
    return options_for_fewer(read_train_config(command), ranks, threads, left);
  };
  const JobEnd end =
      run_job(std::move(request), {.watch = std::move(watch),
                                   .most_restarts = most,
                                   .resumed = command.declared("resume") && command.given("resume"),
                                   .fewer = fewer ? go_on : decltype(JobSettings::fewer)(),
                                   .say = [&](const std::string& text) { console.say(text); },
                                   .error = [&](const std::string& text) { console.error(text); }});
  if (end.code != 0) end_with(end);
}

}  // namespace

Command launch_command() {
  return {
      {.name = "launch",
       .summary = "start a command as several ranks, watch them, and start them again when one is lost",
       .examples = {{"launch -n 2 train --config configs/demo-fashion.json", "two ranks share every batch"},
                    {"launch -n 4 --max-restarts 3 train --config configs/demo-fashion.json",
                     "resumed from its last checkpoint when a rank dies, three times at most"},
                    {"launch --hosts hosts.txt train --config configs/demo-fashion.json",
                     "on the hosts of a file with lines as \"vt1 slots=2\""},
                    {"launch -n 2 predict photos/", "the images split over two ranks"},
                    {"launch -n 4 bench infer -m vit_base_patch16_224 --mesh dp=2,tp=2",
                     "against one rank on the same cores"}},
       .options = {{.name = "ranks",
                    .help = "ranks to start; with --hosts as many as those have slots",
                    .kind = ValueKind::kInteger,
                    .metavar = "N",
                    .letter = 'n',
                    .fallback = "1",
                    .least = 1,
                    .most = 65536},
                   {.name = "mpirun",
                    .help = "a process a rank, by Open MPI, or not at all",
                    .kind = ValueKind::kFlag},
                   {.name = "rank-threads",
                    .help = "ranks as threads of one process",
                    .kind = ValueKind::kFlag},
                   {.name = "hosts",
                    .help = "where mpirun starts them, as vt1:2,vt2:2, or a hostfile",
                    .metavar = "LIST"},
                   {.name = "max-restarts",
                    .help = "resume from the last checkpoint so often when a rank is lost",
                    .kind = ValueKind::kInteger,
                    .metavar = "K",
                    .fallback = "0",
                    .least = 0,
                    .most = 1000000},
                   {.name = "allow-fewer",
                    .help = "of these restarts some with fewer ranks: without a host that is gone, or a rank "
                            "lost twice; the batch is kept by more accumulation",
                    .kind = ValueKind::kFlag},
                   rank_threads_option(),
                   {.name = "port",
                    .help = "that ranks report to; 0 takes any that is free",
                    .kind = ValueKind::kInteger,
                    .metavar = "P",
                    .fallback = "0",
                    .least = 0,
                    .most = 65535}},
       .positionals = {{"COMMAND...", "the command and its options; --deadline is among them", 1, SIZE_MAX}}},
      run};
}

}  // namespace vitrail::cli
