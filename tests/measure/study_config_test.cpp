// What is said to a study that cannot be made, and where its ranks go.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "measure/study/study.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

TEST(StudyConfig, HostsShareRanksAsEvenlyAsTheyCan) {
  EXPECT_EQ(hosts_for({{"a", 2}, {"b", 4}}, 1), "a:1");
  EXPECT_EQ(hosts_for({{"a", 2}, {"b", 4}}, 3), "a:2,b:1");
  EXPECT_EQ(hosts_for({{"a", 2}, {"b", 4}}, 6), "a:2,b:4");
  EXPECT_THROW(hosts_for({{"a", 2}, {"b", 4}}, 7), Error);
}

TEST(StudyConfig, BadInputIsNamed) {
  struct Bad {
    const char* said;
    void (*change)(StudyConfig&);
  };
  const Bad table[] = {
      {"--ranks: \"0\"", [](StudyConfig& c) { c.ranks = {"0"}; }},
      {"--ranks: \"-1\"",
       [](StudyConfig& c) {
         c.ranks = {"1", "-1"};
       }},
      {"--ranks: \"many\"", [](StudyConfig& c) { c.ranks = {"many"}; }},
      {"--ranks: an entry", [](StudyConfig& c) { c.ranks = {"1,,2"}; }},
      {"--ranks: \"2\" is there twice", [](StudyConfig& c) { c.ranks = {"2,2"}; }},
      {"--ranks: nothing", [](StudyConfig& c) { c.ranks = {}; }},
      {"--batches: \"1e30\"", [](StudyConfig& c) { c.batches = {"1e30"}; }},
      {"--batches: 10 images cannot be shared equally by 4", [](StudyConfig& c) { c.batches = {"10"}; }},
      {"--messages", [](StudyConfig& c) { c.messages = {"-1"}; }},
      {"--messages", [](StudyConfig& c) { c.messages = {"1e30"}; }},
      {"--repeat", [](StudyConfig& c) { c.repeat = 0; }},
      {"--updates", [](StudyConfig& c) { c.updates = 0; }},
      {"--timeout", [](StudyConfig& c) { c.timeout = 0; }},
      {"--transports: \"pigeons\"", [](StudyConfig& c) { c.transports = {"pigeons"}; }},
      {"--transports: nodes are named by nothing", [](StudyConfig& c) { c.transports = {"nodes"}; }},
      {"--transports: nodes are given", [](StudyConfig& c) { c.hosts = "vt1:2"; }},
      {"--rate", [](StudyConfig& c) { c.rate = "1gbit"; }},
      {"--cluster: --predicted names",
       [](StudyConfig& c) { c.cluster = "dgx-a100", c.predicted = "p.json"; }},
      {"--target: --predicted names", [](StudyConfig& c) { c.target = "h200", c.predicted = "p.json"; }},
      {"--target: one file does not describe several devices",
       [](StudyConfig& c) {
         c.target = "h200", c.device = {"cpu", "cuda"};
       }},
      {"--strong", [](StudyConfig& c) { c.strong = StrongScaling::kNone, c.weak = false; }},
      {"--kind", [](StudyConfig& c) { c.kind = StudyKind::kTrain; }}};
  for (const Bad& bad : table) {
    StudyConfig config;
    config.ranks = {"1,2,4"};
    bad.change(config);
    try {
      check_study(config);
      ADD_FAILURE() << bad.said << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_TRUE(error.message().starts_with(bad.said)) << error.message();
      EXPECT_FALSE(error.hint().empty()) << bad.said;
    }
  }
}

TEST(StudyConfig, PredictedPointsAreChecked) {
  const TempFolder temp;
  const std::string path = temp.path().string() + "/p.json";
  write_file(path, R"([{"model": "m", "ranks": 2, "batch": 16, "update_s": 0.1}])");
  ASSERT_EQ(read_predicted(path).size(), 1u);
  EXPECT_EQ(read_predicted(path)[0].transport, "threads");
  for (const char* bad :
       {"{}", "[1]", R"([{"ranks": 2, "batch": 16, "update_s": -1}])",
        R"([{"ranks": 0, "batch": 16, "update_s": 1}])", R"([{"ranks": 1.5, "batch": 16, "update_s": 1}])",
        R"([{"ranks": 2, "update_s": 1}])"}) {
    write_file(path, bad);
    EXPECT_THROW(read_predicted(path), Error) << bad;
  }
}

}  // namespace
}  // namespace vitrail
