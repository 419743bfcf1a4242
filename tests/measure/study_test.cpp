// A study with a made-up program: which cases run in which order, what is kept when it is killed, which
// folders are refused, and what the numbers become.
#include "measure/study/study.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/values.h"
#include "measure/study/study_report.h"
#include "measure/study/study_run.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

StudyConfig small_study() {
  StudyConfig config;
  config.models = {"vit_tiny_patch16_224"};
  config.ranks = {"1,2,4"};
  config.batches = {"16,32"};
  config.repeat = 2;
  config.weak = true;
  config.messages = {"0.1,1"};
  check_study(config);
  return config;
}

std::string value_after(const std::vector<std::string>& words, const std::string& name) {
  const auto found = std::find(words.begin(), words.end(), name);
  return found == words.end() ? "1" : *(found + 1);
}

// A program by a law: an update of b images a rank takes b + 2 (ranks - 1) ms, 2 ms of it exposed a partner.
struct FakeProgram {
  int started = 0, stop_after = 1 << 30, fails_at = 0, ranks_more = 0;

  std::string answer(const std::vector<std::string>& words) const {
    const auto ranks = parse_integer(value_after(words, "--ranks")).value();
    if (value_after(words, "--mb") != "1" || std::count(words.begin(), words.end(), "dist") > 0)
      return strf(R"({"threads": {"ranks": %lld, "ms_median": %g}})", static_cast<long long>(ranks),
                  0.1 + parse_number(value_after(words, "--mb")).value());
    const auto batch = parse_integer(value_after(words, "--batch")).value();
    if (ranks == 1)
      return strf(R"({"batch": %lld, "ms_median": %lld, "img_per_s": 1000, "memory_peak": 100, "loss": 1})",
                  static_cast<long long>(batch), static_cast<long long>(batch));
    const double exposed = 0.002 * static_cast<double>(ranks - 1);
    const long long together = batch * ranks;
    const double update = 0.001 * static_cast<double>(batch) + exposed;
    std::string computes, exposes;
    for (int64_t r = 0; r < ranks; ++r) {
      computes += strf("%s%g", r ? "," : "", 10 * (update - exposed));
      exposes += strf("%s%g", r ? "," : "", 10 * exposed);
    }
    return strf(R"({"ranks": %lld, "batch": %lld, "update_s": {"median": %g}, "images_per_second": %g,)",
                static_cast<long long>(ranks + ranks_more), together, update,
                static_cast<double>(together) / update) +
           strf(R"("timing": {"updates": 10, "compute_s": [%s], "exposed_s": [%s]}, "sent_bytes": 7})",
                computes.c_str(), exposes.c_str());
  }

  StudyHooks hooks() {
    return {.run =
                [this](auto& words, auto&, auto&) {
                  const std::string out = answer(words);
                  const int code = ++started == fails_at ? 69 : 0;
                  return StudyHooks::End{code, out, "error: no luck\n  try: again\n"};
                },
            .stop = [this] { return started >= stop_after; }};
  }
};

std::vector<CaseResult> run(const StudyConfig& config, const std::string& path, FakeProgram& program,
                            bool retry = false) {
  const StudyFolder folder(path, config);
  return run_study(config, folder, {.program = "vitrail"}, program.hooks(), retry);
}

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
  const std::vector<CaseResult> at_once = run(config, temp.path().string() + "/a", whole);
  first.stop_after = 5;
  EXPECT_THROW(run(config, temp.path().string() + "/b", first), Error);
  const std::vector<CaseResult> in_two = run(config, temp.path().string() + "/b", second);
  EXPECT_EQ(second.started, whole.started - 4);  // the one during which it was stopped is measured again
  const Study a(config, StudyFolder(temp.path().string() + "/a", config).header(), 16, at_once);
  const Study b(config, StudyFolder(temp.path().string() + "/b", config).header(), 16, in_two);
  EXPECT_EQ(to_json(a), to_json(b));
  EXPECT_EQ(to_text(a), to_text(b));
  FakeProgram third;
  run(config, temp.path().string() + "/b", third);
  EXPECT_EQ(third.started, 0);
}

TEST(Study, AFailedCaseIsKeptAndTheStudyGoesOn) {
  const TempFolder temp;
  const StudyConfig config = small_study();
  FakeProgram program, again;
  program.fails_at = 3;
  const std::vector<CaseResult> results = run(config, temp.path().string() + "/s", program);
  EXPECT_EQ(program.started, std::ssize(results));
  const auto failed = std::count_if(results.begin(), results.end(), [](auto& r) { return !r.done(); });
  EXPECT_EQ(failed, 1);
  for (const CaseResult& r : results)
    if (!r.done()) {
      EXPECT_EQ(r.error, "exit code 69: no luck");
    }
  run(config, temp.path().string() + "/s", again);
  EXPECT_EQ(again.started, 0);
  const std::vector<CaseResult> mended = run(config, temp.path().string() + "/s", again, true);
  EXPECT_EQ(again.started, 1);
  EXPECT_TRUE(std::all_of(mended.begin(), mended.end(), [](auto& r) { return r.done(); }));
}

TEST(Study, OtherRanksThanAskedAreAFailure) {
  const TempFolder temp;
  FakeProgram program;
  program.ranks_more = 1;
  for (const CaseResult& r : run(small_study(), temp.path().string() + "/s", program))
    EXPECT_EQ(r.done(), r.which.ranks == 1 || r.which.kind == CaseKind::kAllReduce) << r.which.name();
}

TEST(Study, ScalingIsComputedFromThePoints) {
  const TempFolder temp;
  const StudyConfig config = small_study();
  FakeProgram program;
  const Study study(config, StudyFolder(temp.path().string() + "/x", config).header(), 2,
                    run(config, temp.path().string() + "/s", program));
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
                    run(config, temp.path().string() + "/s", program));
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

std::string hint_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
    return error.hint();
  }
  return "accepted";
}

TEST(Study, AFolderWithoutACaseIsBegunAnew) {
  const TempFolder temp;
  StudyConfig config = small_study();
  const std::string path = temp.path().string() + "/s";
  config.models = {"vit_tiny_patch16_22"};
  { const StudyFolder mistaken(path, config); }
  config.models = {"vit_tiny_patch16_224"};
  { const StudyFolder mended(path, config); }
  EXPECT_EQ(read_file(path + "/study-config.json", 1 << 20).find("patch16_22\""), std::string::npos);
  write_file(path + "/cases/one.json", "{}");
  config.repeat = 7;
  EXPECT_THROW(StudyFolder(path, config), Error);
}

TEST(Study, OtherFoldersAreRefusedByName) {
  const TempFolder temp;
  const StudyConfig config = small_study();
  const std::string path = temp.path().string() + "/s";
  { const StudyFolder made(path, config); }
  write_file(path + "/cases/one.json", "{}");  // without a case it would be begun anew
  const auto message = [&](const StudyConfig& other) {
    try {
      const StudyFolder folder(path, other);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message(config), "");
  StudyConfig other = config;
  other.repeat = 7;
  EXPECT_NE(message(other).find("config.repeat is 2 there and 7 here"), std::string::npos) << message(other);
  std::string header = read_file(path + "/study-config.json", 1 << 20);
  const size_t at = header.find("\"vitrail\": \"") + 12;
  write_file(path + "/study-config.json", header.insert(at, "9"));
  EXPECT_NE(message(config).find("holds another study: vitrail is \"9"), std::string::npos)
      << message(config);
  write_file(path + "/study-config.json", "{");
  EXPECT_NE(message(config), "");
  EXPECT_NE(hint_of([&] { const StudyFolder folder(path, config); }).find("another --out"),
            std::string::npos);
  std::filesystem::create_directory(temp.path().string() + "/other");
  write_file(temp.path().string() + "/other/notes.txt", "mine");
  EXPECT_THROW(StudyFolder(temp.path().string() + "/other", config), Error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(temp.path().string() + "/other"), {}), 1);
  EXPECT_THROW(StudyFolder(temp.path().string() + "/other/notes.txt", config), Error);
  const StudyFolder owner(temp.path().string() + "/locked", config);
  EXPECT_THROW(StudyFolder(temp.path().string() + "/locked", config), Error);
}

TEST(Study, AFileOfAnotherCaseIsRefused) {
  const TempFolder temp;
  const StudyConfig config = small_study();
  FakeProgram program, again;
  run(config, temp.path().string() + "/s", program);
  const std::string path = temp.path().string() + "/s/cases/vit_tiny_patch16_224.cpu.threads.r2.b16.1.json";
  std::string text = read_file(path, 1 << 20);
  const size_t at = text.find("\"ranks\": 2");
  ASSERT_NE(at, std::string::npos);
  write_file(path, text.replace(at, 10, "\"ranks\": 3"));
  EXPECT_THROW(run(config, temp.path().string() + "/s", again), Error);
  EXPECT_EQ(again.started, 0);
}

// Each change is of the same file; what is refused is named, and the way out is told.
TEST(Study, ValuesThatNoCaseMeasuresAreRefused) {
  const TempFolder temp;
  const StudyConfig config = small_study();
  FakeProgram program, again;
  run(config, temp.path().string() + "/s", program);
  const std::string path = temp.path().string() + "/s/cases/vit_tiny_patch16_224.cpu.threads.r2.b16.1.json";
  const std::string whole = read_file(path, 1 << 20);
  const auto refusal = [&](const std::string& text) {
    write_file(path, text);
    try {
      run(config, temp.path().string() + "/s", again);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_NE(error.hint().find("remove the file"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
      return error.message();
    }
    return std::string("accepted");
  };
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, Json>>{{"update_s", 1e300},
                                                           {"update_s", -1},
                                                           {"update_s", nullptr},
                                                           {"update_s", "long"},
                                                           {"images_per_s", 1e9},
                                                           {"images_per_s", -5},
                                                           {"memory_bytes", -4096},
                                                           {"sent_bytes", 1e30},
                                                           {"took_s", -1},
                                                           {"batch", 17},
                                                           {"rank_times", {{"compute_s", {0.1, -0.1}}}},
                                                           {"rank_times", {{"compute_s", {0.1, "x"}}}},
                                                           {"rank_times", {{"compute_s", {0.1}}}},
                                                           {"epochs", {{{"epoch", "first"}}}},
                                                           {"gpus", {{{"id", 0}, {"used_bytes", -1}}}}}) {
    Json changed = Json::parse(whole);
    changed[key] = value;
    const std::string said = refusal(changed.dump());
    const std::string shown = key == std::string("batch") ? "images a rank" : key;
    EXPECT_TRUE(said.find(shown) != said.npos || said.find("ranks were asked for") != said.npos) << said;
  }
  EXPECT_NE(refusal(""), "accepted");
  EXPECT_NE(refusal(whole.substr(0, whole.size() / 2)), "accepted");
  EXPECT_NE(refusal("[]"), "accepted");
  EXPECT_EQ(refusal(whole), "accepted");
  EXPECT_EQ(again.started, 0);
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
