// A watch and the heartbeats of processes, which carry reports over TCP, here as threads of one process.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/timing.h"
#include "dist/liveness/heartbeat.h"
#include "dist/liveness/watch.h"
#include "temp_folder.h"
#include "thrown.h"

namespace vitrail::liveness {
namespace {

TEST(Pulse, CountsEventsThatWereNotReadYet) {
  Pulse pulse;
  uint64_t seen = 0;
  pulse.begin_step(1);
  EXPECT_EQ(pulse.events(seen).size(), 1u);
  EXPECT_EQ(pulse.events(seen).size(), 0u);
  for (int i = 0; i < 200; ++i) pulse.note("again");
  EXPECT_EQ(pulse.events(seen).size(), Pulse::kEvents);
}

// Turns the watch until `holds`; false after five seconds.
template <typename Holds>
bool turned(Watch& watch, const Holds& holds) {
  for (const auto start = Clock::now(); seconds_since(start) < 5;) {
    watch.turn(10);
    if (holds()) return true;
  }
  return false;
}

TEST(Watch, SeesWhatRanksPostAndTellsAllWhyOneFailed) {
  Watch watch({.ranks = 2, .limits = {.deadline_s = 5}});
  Heartbeat first({.address = watch.address(), .first = 0, .ranks = 2, .limits = {.deadline_s = 5}});
  Heartbeat second({.address = watch.address(), .first = 1, .ranks = 2, .limits = {.deadline_s = 5}});
  second.pulse(1).begin_step(7);
  second.pulse(1).at_node("blocks.0.mlp");
  ASSERT_TRUE(turned(watch, [&] { return watch.table().rows()[1].node == "blocks.0.mlp"; }));
  EXPECT_EQ(watch.table().rows()[1].step, 7);
  std::thread failing([&] { second.failed(1, 65, false, "cat.jpg is cut short"); });
  ASSERT_TRUE(turned(watch, [&] { return first.verdict().has_value(); }));
  failing.join();
  EXPECT_EQ(first.verdict()->rank, 1);
  EXPECT_EQ(first.verdict()->code, 65);
  EXPECT_NE(first.verdict()->text.find("in forward at step 7, node blocks.0.mlp: cat.jpg"),
            std::string::npos);
}

TEST(Watch, FailsTheExchangesOfRanksThatAreLeft) {
  Watch watch({.ranks = 2, .limits = {.deadline_s = 5}});
  Heartbeat left({.address = watch.address(), .first = 0, .ranks = 2, .limits = {.deadline_s = 5}});
  std::vector<std::unique_ptr<Communicator>> ranks = thread_communicators(2);
  left.attach(ranks[0].get());
  {
    const Heartbeat gone({.address = watch.address(), .first = 1, .ranks = 2, .limits = {.deadline_s = 5}});
    ASSERT_TRUE(turned(watch, [&] { return watch.table().rows()[1].joined; }));
  }
  std::thread waiting([&] { EXPECT_THROW(ranks[0]->barrier(), Error); });
  EXPECT_TRUE(turned(watch, [&] { return left.verdict().has_value(); }));
  waiting.join();
  left.detach(ranks[0].get());
  EXPECT_EQ(left.verdict()->code, 137);
}

TEST(Watch, LetsNobodyInWithoutTheWord) {
  Watch watch({.ranks = 1});
  std::string address = watch.address();
  address.back() = address.back() == '0' ? '1' : '0';
  const Heartbeat stranger({.address = address});
  for (int i = 0; i < 20; ++i) watch.turn(10);
  EXPECT_FALSE(watch.table().rows()[0].joined);
}

TEST(Watch, LetsNobodyInAsARankThatIsNotOfTheJob) {
  Watch watch({.ranks = 2});
  const Heartbeat stranger({.address = watch.address(), .first = 1, .count = 2, .ranks = 2});
  for (int i = 0; i < 20; ++i) watch.turn(10);
  EXPECT_FALSE(watch.table().rows()[1].joined);
}

TEST(Watch, ARankThatComesLateIsToldToStopAndWhyTheJobEnded) {
  Watch watch({.ranks = 2});
  watch.ask_to_stop();
  std::atomic<bool> stopped = false;
  const Heartbeat first({.address = watch.address(), .ranks = 2, .stop = [&] { stopped = true; }});
  EXPECT_TRUE(turned(watch, [&] { return stopped.load(); }));
  watch.end({0, 65, "cat.jpg is cut short"});
  Heartbeat second({.address = watch.address(), .first = 1, .ranks = 2});
  ASSERT_TRUE(turned(watch, [&] { return second.verdict().has_value(); }));
  EXPECT_EQ(second.verdict()->text, "cat.jpg is cut short");
  const std::vector<std::unique_ptr<Communicator>> ranks = thread_communicators(2);
  second.attach(ranks[1].get());
  EXPECT_EQ(ranks[1]->failure(), "cat.jpg is cut short") << "exchanges that begin later fail, too";
  second.detach(ranks[1].get());
}

TEST(Watch, AProcessTakesLeaveForAllOfItsRanks) {
  Watch watch({.ranks = 2});
  Heartbeat both({.address = watch.address(), .count = 2, .ranks = 2});
  std::thread leaving([&] { both.leave(); });
  EXPECT_TRUE(turned(watch, [&] { return watch.table().all_left(); }));
  leaving.join();
  EXPECT_FALSE(watch.verdict());
}

TEST(Watch, LeavesAFileOfEveryRankInTheRunsFolder) {
  const TempFolder run;
  Watch watch({.ranks = 2});
  Heartbeat both({.address = watch.address(), .count = 2, .ranks = 2});
  both.in_folder(run.path().string());
  both.pulse(1).begin_step(7);
  ASSERT_TRUE(turned(watch, [&] { return watch.table().rows()[1].step == 7; }));
  watch.end({0, 65, "cat.jpg is cut short"});
  const std::string file = (run.path() / "crash/rank-1.json").string();
  ASSERT_TRUE(std::filesystem::exists(file));
  const Json crash = parse_json(read_file(file, 1 << 20), file);
  EXPECT_EQ(crash["step"], 7);
  EXPECT_EQ(crash["ended_by"]["text"], "cat.jpg is cut short");
}

TEST(Heartbeat, AWatchThatFallsSilentEndsTheRank) {
  const Watch silent({.ranks = 1});
  Heartbeat beat({.address = silent.address(), .limits = {.deadline_s = 0.6}});
  const std::optional<Verdict> verdict = beat.verdict(20);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->code, kStopped);
  EXPECT_NE(verdict->text.find("vitrail launch is stopped"), std::string::npos) << verdict->text;
}

// The next line that comes over a connection; empty after five seconds without one.
std::string next_line(LineSocket& from) {
  for (const auto start = Clock::now(); seconds_since(start) < 5;) {
    const std::vector<std::string> lines = from.receive();
    if (!lines.empty()) return lines[0];
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return "";
}

// The test is the watch itself here. The rank hears lines in their order: what came before the end is known
// with it, and what is no line of a watch is as if it had not come.
TEST(Heartbeat, HearsEveryLineOfItsWatch) {
  for (const int first : {0, 1}) {
    SCOPED_TRACE(first);
    const Descriptor listener = listen_on("127.0.0.1", 0);
    std::atomic<int> stops = 0;
    Heartbeat beat({.address = strf("127.0.0.1:%d/the word", port_of(listener)),
                    .first = first,
                    .count = 2,
                    .ranks = 3,
                    .stop = [&] { ++stops; }});
    LineSocket watch(accept_one(listener));
    const Json hello = parse_json(next_line(watch), "the first line");
    EXPECT_EQ(hello.at("is"), "hello");
    EXPECT_EQ(hello.at("word"), "the word");
    EXPECT_EQ(hello.at("first"), first);
    EXPECT_EQ(hello.at("count"), 2);
    EXPECT_EQ(hello.at("pid"), static_cast<int64_t>(::getpid()));
    watch.send("no line");
    while (stops == 0) {  // a line that comes with it is lost
      watch.send(R"({"is":"stop"})");
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    for (const char* line : {R"({"is":"ping"})", R"({"is":"news","text":"rank 2 was silent"})",
                             R"({"is":"end","rank":2,"code":65,"text":"cat.jpg is cut short"})",
                             R"({"is":"end","rank":1,"code":70,"text":"a later reason"})"})
      watch.send(line);
    ASSERT_TRUE(beat.verdict(20));
    EXPECT_EQ(beat.verdict()->rank, 2);
    EXPECT_EQ(beat.verdict()->code, 65);
    EXPECT_EQ(beat.verdict()->text, "cat.jpg is cut short");
    using Texts = std::vector<std::string>;
    EXPECT_EQ(beat.pulse(first).take_log_events(), first == 0 ? Texts{"rank 2 was silent"} : Texts())
        << "the run's log is the first rank's";
    EXPECT_EQ(beat.pulse(first + 1).take_log_events(), Texts());
  }
}

// The first address that is up and not the host's own loop; without one, that loop.
TEST(Addresses, OtherHostsReachThisOneByItsOwn) {
  std::string wanted = "127.0.0.1";
  ifaddrs* all = nullptr;
  ASSERT_EQ(::getifaddrs(&all), 0);
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    char text[INET_ADDRSTRLEN] = "";
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || !(one->ifa_flags & IFF_UP)) continue;
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof text);
    if (std::string_view(text).starts_with("127.") || wanted != "127.0.0.1") continue;
    wanted = text;
  }
  ::freeifaddrs(all);
  EXPECT_EQ(own_address(), wanted);
  const Descriptor listener = listen_on(own_address(), 0);
  EXPECT_GT(port_of(listener), 0);
  EXPECT_GE(connect_to(own_address(), port_of(listener), 1).get(), 0);
}

TEST(Addresses, WhatDoesNotAnswerIsNamed) {
  int port = 0;
  {
    const Descriptor listener = listen_on("127.0.0.1", 0);
    port = port_of(listener);
    EXPECT_EQ(thrown_by([&] { listen_on("127.0.0.1", port); }),
              strf("comm: the port %d of 127.0.0.1, on which ranks would report, cannot be used: Address "
                   "already in use | another port; 0 takes any that is free",
                   port));
  }
  EXPECT_EQ(thrown_by([&] { connect_to("127.0.0.1", port, 0); }),
            strf("comm: the port %d of 127.0.0.1, on which ranks report, does not answer: Connection refused",
                 port));
  EXPECT_TRUE(thrown_by([] {
                connect_to("no host.invalid", 1, 0);
              }).starts_with("comm: the host no host.invalid has no address: "));
}

TEST(Watch, SaysWhichPortIsTaken) {
  const Watch watch({.ranks = 1});
  const std::string& address = watch.address();
  const size_t colon = address.find(':');
  const int port = std::stoi(address.substr(colon + 1));
  try {
    const Watch second({.ranks = 1, .port = port});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(exit_code(error.kind()), 69);
    EXPECT_NE(error.message().find(std::to_string(port)), std::string::npos);
  }
}

}  // namespace
}  // namespace vitrail::liveness
