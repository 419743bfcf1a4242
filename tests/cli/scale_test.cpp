// A scaling study whose cases fail: what is told of each, how the study ends, and what is kept. This test
// program itself stands for the one that a case starts.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "hurried_clock.h"
#include "run_words.h"

namespace vitrail::cli {
namespace {

constexpr const char* kEnds = "TEST_CLI_ENDS_WITH";  // the exit code of a case

[[maybe_unused]] const bool kIsACase = [] {
  const char* code = std::getenv(kEnds);
  if (!code) return false;
  const std::string line = "error: no room for it\n";
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) ::_exit(1);
  ::_exit(std::atoi(code));
}();

std::vector<std::string> study_in(const TempFolder& folder) {
  return {"scale",
          "-m",
          "vit_tiny_patch16_224",
          "--ranks",
          "1,2",
          "--batches",
          "4",
          "--repeat",
          "1",
          "--messages",
          "0",
          "--out",
          (folder.path() / "study").string()};
}

TEST(Scale, CasesThatFailAreToldAndKeptAndFailTheStudy) {
  const TempFolder folder;
  const Ended ended = run_words(study_in(folder), {{kEnds, "71"}});
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_TRUE(ended.err.ends_with(
      "error: 2 of 2 cases failed\n  try: the same command with --retry runs them again\n"))
      << ended.err;
  size_t told = 0;
  for (const std::string_view line : split(ended.err, '\n'))
    told += line.ends_with(" failed: exit code 71: no room for it");
  EXPECT_EQ(told, 2u) << ended.err;
  EXPECT_NE(ended.err.find("written to " + (folder.path() / "study/report.html").string() + "\n"),
            std::string::npos);
  const auto study = nlohmann::json::parse(read_file((folder.path() / "study/study.json").string(), 1 << 20));
  EXPECT_EQ(study["failed"], 2);
  EXPECT_EQ(study["config"]["ranks"], nlohmann::json::parse(R"(["1","2"])"));
  EXPECT_EQ(study["config"]["repeat"], 1);
  // What failed is not run again unless that is asked for.
  const Ended again = run_words(study_in(folder), {{kEnds, "72"}});
  EXPECT_EQ(again.code, 2);
  EXPECT_EQ(again.err.find("exit code 72"), std::string::npos) << again.err;
  std::vector<std::string> retried = study_in(folder);
  retried.emplace_back("--retry");
  EXPECT_NE(run_words(retried, {{kEnds, "73"}}).err.find("exit code 73"), std::string::npos);
}

TEST(Scale, ProgressNamesTheLastCase) {
  const TempFolder folder;
  const HurriedClock clock;
  const Ended ended = run_words(study_in(folder), {{kEnds, "71"}});
  std::vector<std::string> names, counts;
  for (const std::string_view line : split(ended.err, '\n')) {
    if (const size_t at = line.find(" failed: "); at != line.npos) names.emplace_back(line.substr(0, at));
    if (line.starts_with("scale: ")) counts.emplace_back(line);
  }
  ASSERT_EQ(names.size(), 2u) << ended.err;
  ASSERT_EQ(counts.size(), 3u) << ended.err;
  EXPECT_EQ(counts[0], "scale: 0/2 cases (0 %)");
  EXPECT_TRUE(counts[1].starts_with("scale: 1/2 cases (50 %)") && counts[1].ends_with("  " + names[0]))
      << counts[1];
  EXPECT_TRUE(counts[2].starts_with("scale: 2/2 cases (100 %)") && counts[2].ends_with("  " + names[1]))
      << counts[2];
}

}  // namespace
}  // namespace vitrail::cli
