// A stop of a run asked for in any callback, before the run or from another thread, and a folder that two
// runs want: nothing is lost.
#include <gtest/gtest.h>
#include <vitrail/vitrail.h>

#include <thread>

#include "error_of.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

// Eight updates on synthetic images, evaluated twice.
constexpr const char* kStopConfig = R"({
  "model": {"image_height": 16, "image_width": 16, "patch": 8, "width": 32, "depth": 1, "heads": 2, "mlp": 64},
  "data": {"train": "synthetic:3x16x16x4x64", "val": "synthetic:3x16x16x4x16"},
  "train": {"batch": 16, "steps": 8, "eval_every": 4, "save_every": 4, "tensorboard": false}
})";

class PublicStop : public testing::Test {
 protected:
  std::string place(const std::string& name) const { return (folder_.path() / name).string(); }
  // Trains until `callbacks` or `options` stop the run, then to its end; returns the step of the stop.
  int64_t stopped_at(const std::string& name, const TrainCallbacks& callbacks, TrainOptions options = {}) {
    options.folder = place(name);
    options.threads = 1;
    const TrainResult first = train(kStopConfig, options, callbacks, stop_.get_token());
    EXPECT_FALSE(first.finished) << name;
    EXPECT_EQ(first.reason, "stopped on request") << name;
    const TrainResult rest =
        train(kStopConfig, {.folder = place(name), .threads = 1, .resume = Resume::kNewest});
    EXPECT_TRUE(rest.finished && rest.step == 8) << name;
    EXPECT_EQ(rest.best, whole_.best) << name << ": the same bits";
    return first.step;
  }
  TempFolder folder_;
  std::stop_source stop_;
  TrainResult whole_ = train(kStopConfig, {.folder = place("whole"), .threads = 1});
};

TEST_F(PublicStop, InsideEveryCallback) {
  TrainCallbacks callbacks;
  callbacks.on_step = [&](const StepReport& report) { report.step == 3 && stop_.request_stop(); };
  EXPECT_EQ(stopped_at("step", callbacks), 3);
  callbacks = {}, stop_ = {};
  callbacks.on_eval = [&](const EvalReport& report) { report.step == 4 && stop_.request_stop(); };
  EXPECT_EQ(stopped_at("eval", callbacks), 4);
  callbacks = {}, stop_ = {};
  callbacks.on_checkpoint = [&](int64_t step) { step == 4 && stop_.request_stop(); };
  EXPECT_LE(stopped_at("checkpoint", callbacks), 5);
  callbacks = {}, stop_ = {};
  callbacks.on_note = [&](const std::string&) { stop_.request_stop(); };
  EXPECT_LE(stopped_at("note", callbacks), 1);
}

// The first event of this run is that it goes on.
TEST_F(PublicStop, InsideAnEvent) {
  TrainCallbacks callbacks;
  callbacks.on_step = [&](const StepReport& report) { report.step == 2 && stop_.request_stop(); };
  train(kStopConfig, {.folder = place("event"), .threads = 1}, callbacks, stop_.get_token());
  callbacks = {}, stop_ = {};
  std::vector<std::string> events;
  callbacks.on_event = [&](const TrainEvent& event) {
    events.push_back(event.what);
    if (event.what == "resume") stop_.request_stop();
  };
  const int64_t step = stopped_at("event", callbacks, {.resume = Resume::kNewest});
  EXPECT_TRUE(step == 2 || step == 3) << step;
  EXPECT_EQ(events, (std::vector<std::string>{"resume", "stopped"}));
}

TEST_F(PublicStop, WhileAVariableIsLookedUp) {
  TrainOptions options;
  options.variables = [&](const char*) -> const char* {
    stop_.request_stop();
    return nullptr;
  };
  EXPECT_LE(stopped_at("variables", {}, options), 1);
}

TEST_F(PublicStop, BeforeTheRunAndFromAnotherThread) {
  stop_.request_stop();
  EXPECT_LE(stopped_at("before", {}), 1);
  stop_ = {};
  TrainCallbacks callbacks;
  callbacks.on_step = [&](const StepReport& report) {
    if (report.step == 2) std::thread([&] { stop_.request_stop(); }).join();
  };
  EXPECT_EQ(stopped_at("thread", callbacks), 2);
}

TEST_F(PublicStop, AFolderHoldsOneRunAtATime) {
  const TrainOptions again{.folder = place("run"), .threads = 1, .resume = Resume::kNewest};
  std::vector<Error> found;
  TrainCallbacks callbacks;
  callbacks.on_step = [&](const StepReport& report) {
    if (report.step != 2) return;
    found.push_back(error_of([&] { train(kStopConfig, again); }));
    std::thread([&] { found.push_back(error_of([&] { train(kStopConfig, again); })); }).join();
  };
  EXPECT_TRUE(train(kStopConfig, {.folder = place("run"), .threads = 1}, callbacks).finished);
  ASSERT_EQ(found.size(), 2u);
  for (const Error& error : found) {
    EXPECT_EQ(error.kind(), ErrorKind::kWrite) << error.what();
    EXPECT_NE(error.message().find("process " + std::to_string(getpid())), std::string::npos) << error.what();
  }
  const Error there = error_of([&] { train(kStopConfig, {.folder = place("run"), .threads = 1}); });
  EXPECT_EQ(there.kind(), ErrorKind::kUsage) << "Resume::kNo refuses a run that is there: " << there.what();
}

}  // namespace
}  // namespace vitrail
