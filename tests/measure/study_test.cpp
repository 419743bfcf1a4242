// A study with a stand-in for the program: which cases run in which order, what is kept when it is killed,
// and what the numbers become.
#include "measure/study/study.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/file.h"
#include "measure/study/study_report.h"
#include "study_program.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

TEST(Study, EachCaseIsMeasuredOnceWhateverFiguresShowIt) {
  const std::vector<StudyCase> cases = list_cases(small_study());
  std::set<std::string> names;
  for (const StudyCase& one : cases) EXPECT_TRUE(names.insert(one.name()).second) << one.name();
  // Strong: 16 and 32 on 1, 8 and 16 on 2, 4 and 8 on 4; weak: 16 and 32 on each; two sizes of two groups.
  EXPECT_EQ(cases.size(), 2 * (2 + 3 + 4 + 4));
}

TEST(Study, TheOrderIsDrawnBySeed) {
  const std::vector<StudyCase> cases = list_cases(small_study());
  const auto names = [](const std::vector<StudyCase>& list) {
    std::vector<std::string> all;
    all.reserve(list.size());
    for (const StudyCase& one : list) all.push_back(one.name());
    return all;
  };
  const std::vector<std::string> first = names(shuffled(cases, 1));
  EXPECT_EQ(first, names(shuffled(cases, 1)));
  EXPECT_NE(first, names(shuffled(cases, 2)));
  EXPECT_NE(first, names(cases));
  EXPECT_TRUE(std::is_permutation(first.begin(), first.end(), names(cases).begin()));
}

TEST(Study, GoesOnWhereItWasStopped) {
  const TempFolder temp;
  const StudyConfig config = small_study();
  FakeProgram whole, first, second;
  const std::vector<CaseResult> at_once = run_made(config, temp.path().string() + "/a", whole);
  first.stop_after = 5;
  EXPECT_THROW(run_made(config, temp.path().string() + "/b", first), Error);
  const std::vector<CaseResult> in_two = run_made(config, temp.path().string() + "/b", second);
  EXPECT_EQ(second.started, whole.started - 4);  // the one during which it was stopped is measured again
  const Study a(config, StudyFolder(temp.path().string() + "/a", config).header(), 16, at_once);
  const Study b(config, StudyFolder(temp.path().string() + "/b", config).header(), 16, in_two);
  EXPECT_EQ(to_json(a), to_json(b));
  EXPECT_EQ(to_text(a), to_text(b));
  FakeProgram third;
  run_made(config, temp.path().string() + "/b", third);
  EXPECT_EQ(third.started, 0);
}

TEST(Study, AFailedCaseIsKeptAndTheStudyGoesOn) {
  const TempFolder temp;
  const StudyConfig config = small_study();
  FakeProgram program, again;
  program.fails_at = 3;
  const std::vector<CaseResult> results = run_made(config, temp.path().string() + "/s", program);
  EXPECT_EQ(program.started, std::ssize(results));
  const auto failed = std::count_if(results.begin(), results.end(), [](auto& r) { return !r.done(); });
  EXPECT_EQ(failed, 1);
  for (const CaseResult& r : results)
    if (!r.done()) {
      EXPECT_EQ(r.error, "exit code 69: no luck");
    }
  run_made(config, temp.path().string() + "/s", again);
  EXPECT_EQ(again.started, 0);
  const std::vector<CaseResult> mended = run_made(config, temp.path().string() + "/s", again, true);
  EXPECT_EQ(again.started, 1);
  EXPECT_TRUE(std::all_of(mended.begin(), mended.end(), [](auto& r) { return r.done(); }));
}

TEST(Study, OtherRanksThanAskedAreAFailure) {
  const TempFolder temp;
  FakeProgram program;
  program.ranks_more = 1;
  for (const CaseResult& r : run_made(small_study(), temp.path().string() + "/s", program))
    EXPECT_EQ(r.done(), r.which.ranks == 1 || r.which.kind == CaseKind::kAllReduce) << r.which.name();
}

TEST(Study, ScalingIsComputedFromThePoints) {
  const TempFolder temp;
  const StudyConfig config = small_study();
  FakeProgram program;
  const Study study(config, StudyFolder(temp.path().string() + "/x", config).header(), 2,
                    run_made(config, temp.path().string() + "/s", program));
  const auto curve = std::find_if(study.curves.begin(), study.curves.end(), [](const Curve& c) {
    return c.scaling == Scaling::kStrongGlobal && c.batch == 32;
  });
  ASSERT_NE(curve, study.curves.end());
  ASSERT_EQ(curve->rows.size(), 3u);
  EXPECT_NEAR(curve->rows[2].speedup, 32.0 / (8 + 6), 1e-9);
  EXPECT_NEAR(curve->rows[2].efficiency, 32.0 / (8 + 6) / 4, 1e-9);
  EXPECT_NEAR(curve->rows[2].point->exposed_share(), 6.0 / 14, 1e-9);
  EXPECT_FALSE(curve->rows[1].point->oversubscribed);
  EXPECT_TRUE(curve->rows[2].point->oversubscribed);
  const Curve& weak = study.curves.back();
  EXPECT_EQ(weak.scaling, Scaling::kWeak);
  EXPECT_NEAR(weak.rows[2].efficiency, 32.0 / (32 + 6), 1e-9);
  EXPECT_NEAR(study.messages.front().fit->alpha_s, 1e-4, 1e-9);
  // With 4 ranks 128 images lose 16 % to the exchange, 64 lose 27 %: only the first is near the best.
  EXPECT_EQ(study.advice.batch, 128);
}

TEST(Study, FilesHoldEveryRowAndFigure) {
  const TempFolder temp;
  const StudyConfig config = small_study();
  FakeProgram program;
  const Study study(config, StudyFolder(temp.path().string() + "/x", config).header(), 2,
                    run_made(config, temp.path().string() + "/s", program));
  write_study(study, temp.path().string() + "/s");
  const std::string csv = read_file(temp.path().string() + "/s/study.csv", 1 << 20);
  EXPECT_TRUE(
      csv.starts_with("Timestamp,Rank,Epoch,Computation_Time,GPU_ID,GPU_Name,GPU_Load,"
                      "GPU_Free_Mem_MB,GPU_Used_Mem_MB,GPU_Total_Mem_MB,GPU_Temp_C,"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 2 * (2 * 1 + 3 * 2 + 4 * 4));
  const auto columns = std::count(csv.begin(), csv.begin() + static_cast<long>(csv.find('\n')), ',');
  for (size_t at = 0; at < csv.size(); at = csv.find('\n', at) + 1)
    EXPECT_EQ(std::count(csv.begin() + static_cast<long>(at),
                         csv.begin() + static_cast<long>(csv.find('\n', at)), ','),
              columns);
  const std::string page = read_file(temp.path().string() + "/s/report.html", 1 << 22);
  for (const char* name : {"strong", "weak", "speedup", "weak-speedup", "sync-share", "speed-batch",
                           "rank-load", "all-reduce"}) {
    EXPECT_TRUE(std::filesystem::exists(temp.path().string() + "/s/" + name + ".svg")) << name;
  }
  for (const char* text : {"Strong scaling", "Weak scaling", "ideal", "Recommended", "Amdahl", "Gustafson",
                           "more threads than cores"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
  EXPECT_EQ(page.find("[&quot;"), std::string::npos) << "lists of the config are words";
}

// More ranks than cores: an update takes longer than on one rank, and the advice says so.
TEST(Study, FewerRanksThatAreFasterAreTold) {
  const auto point = [](int64_t ranks, double update_s) {
    StudyPoint p;
    p.which = {.model = "vit", .device = "cpu", .transport = "threads", .ranks = ranks, .batch = 16 / ranks};
    p.update_s = {.count = 1, .median = update_s};
    p.images_per_s = {.count = 1, .median = 16 / update_s};
    return p;
  };
  const std::string slower = recommended_batch({point(1, 0.1), point(2, 0.05), point(4, 0.2)}).why;
  EXPECT_NE(slower.find("by 4 ranks"), std::string::npos) << slower;
  EXPECT_NE(slower.find("fewer are faster: 2 ranks with 16 images an update, 320 images a second"),
            std::string::npos)
      << slower;
  const std::string faster = recommended_batch({point(1, 0.1), point(2, 0.05)}).why;
  EXPECT_EQ(faster.find("fewer are faster"), std::string::npos) << faster;
  const std::string equal = recommended_batch({point(1, 0.1), point(2, 0.1)}).why;
  EXPECT_NE(equal.find("by 2 ranks"), std::string::npos) << equal;
  EXPECT_EQ(equal.find("fewer are faster"), std::string::npos) << equal;
  EXPECT_NE(recommended_batch({point(1, 0.1)}).why.find("by 1 rank ("), std::string::npos);
}

}  // namespace
}  // namespace vitrail
