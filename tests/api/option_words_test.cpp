// Errors of the public API name its options, not those of the command line.
#include "api/option_words.h"

#include <gtest/gtest.h>
#include <vitrail/vitrail.h>

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>
#include <stdexcept>
#include <system_error>

#include "error_of.h"
#include "io/find_model.h"
#include "little_memory.h"
#include "source_root.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;

const std::string kSmallRun = VT_SOURCE_DIR "/tests/faults/kill_run.json";

std::string in_words(const std::string& hint, const char* owner = "ModelOptions") {
  return in_words_of(owner, Error(ErrorKind::kUsage, "no", hint)).hint();
}

TEST(OptionWords, OfBothStructsAndOfOne) {
  EXPECT_EQ(in_words("fewer threads (--threads)"), "fewer threads (ModelOptions::threads)");
  EXPECT_EQ(in_words("--device cpu", "TrainOptions"), "TrainOptions::device cpu");
  EXPECT_EQ(in_words("leave out --arch"), "leave out ModelOptions::arch");
  EXPECT_EQ(in_words("leave out --arch", "TrainOptions"), "leave out model.arch");
  EXPECT_EQ(in_words("--resume goes on with it; --out names another folder"),
            "Resume::kNewest goes on with it; TrainOptions::folder names another folder");
  EXPECT_EQ(in_words("--resume without =strict falls back to an older one"),
            "Resume::kNewest falls back to an older one");
  EXPECT_EQ(in_words("--set data.train=FORMAT:PLACE"), "in the config, data.train=FORMAT:PLACE");
  EXPECT_EQ(in_words("--architecture and --out-of"), "--architecture and --out-of");
}

TEST(OptionWords, CommandsKeepTheirs) {
  const std::string command = "one of a, b, or a file of vitrail bench calibrate --out FILE";
  EXPECT_EQ(in_words(command), command);
  EXPECT_EQ(in_words("vitrail doctor shows it; --device cpu"),
            "vitrail doctor shows it; ModelOptions::device cpu");
}

TEST(OptionWords, WhatStandsWithinAPathIsNone) {
  const std::string path = "there is no image \"/data/--threads/a--out.png\"";
  EXPECT_EQ(in_words(path), path);
  EXPECT_EQ(in_words("one\n--threads 2"), "one\nModelOptions::threads 2");
}

TEST(OptionWords, KindMessageAndPlacesStay) {
  Error error(ErrorKind::kData, "--arch a says b", "");
  error.at("inner").at("outer of --threads");
  const Error found = in_words_of("ModelOptions", error);
  EXPECT_EQ(found.kind(), ErrorKind::kData);
  EXPECT_EQ(found.message(), "ModelOptions::arch a says b");
  EXPECT_EQ(found.context(), (std::vector<std::string>{"outer of ModelOptions::threads", "inner"}));
}

TEST(OptionWords, WhatACallbackThrowsPassesAsItIs) {
  TrainCallbacks callbacks;
  callbacks.on_step = [](const StepReport&) { throw Error(ErrorKind::kStopped, "mine: --out"); };
  for (const int ranks : {1, 2}) {
    const TempFolder root;
    const TrainOptions options{.folder = (root.path() / "run").string(), .threads = 1, .ranks = ranks};
    EXPECT_STREQ(error_of([&] { train(kSmallRun, options, callbacks); }).what(), "mine: --out");
  }
}

// Ranks look variables up, each on a thread of its own.
TEST(OptionWords, WhatTheLookUpOfAVariableThrowsPassesAsItIs) {
  for (const int ranks : {1, 2}) {
    const TempFolder root;
    TrainOptions options{.folder = (root.path() / "run").string(), .threads = 1, .ranks = ranks};
    options.variables = [](const char*) -> const char* { throw Error(ErrorKind::kStopped, "mine: --out"); };
    const Error error = error_of([&] { train(kSmallRun, options); });
    EXPECT_STREQ(error.what(), "mine: --out") << ranks;
    EXPECT_EQ(error.kind(), ErrorKind::kStopped) << ranks;
  }
}

struct OfACaller {
  int value = 0;
};

TEST(OptionWords, WhatIsNoExceptionOfOursPassesToo) {
  CallerThrow caller;
  const std::function<void(int)> callback = [](int value) { throw OfACaller{value}; };
  const auto call = [&] {
    in_words_of_options(
        "TrainOptions", [&] { kept_by(caller, callback)(7); }, caller);
  };
  try {
    call();
    FAIL();
  } catch (const OfACaller& mine) {
    EXPECT_EQ(mine.value, 7);
  }
}

TEST(ApiErrors, LackOfMemoryHasItsKind) {
  const auto starved = []() -> int { throw std::bad_alloc(); };
  const Error plain = error_of([&] { with_api_errors(starved); });
  EXPECT_EQ(plain.kind(), ErrorKind::kMemory);
  EXPECT_EQ(plain.message(), "memory ran out");
  EXPECT_EQ(error_of([&] { in_words_of_options("TrainOptions", starved); }).kind(), ErrorKind::kMemory);
}

// Exceptions of libraries leave as errors of their kind.
TEST(ApiErrors, WhateverIsThrownBelowACall) {
  const auto thrown = [](const auto& exception) {
    return error_of([&] { with_api_errors([&]() -> int { throw exception; }); });
  };
  const auto refused = [&](int code) {
    return thrown(fs::filesystem_error("cannot", "/there", std::error_code(code, std::system_category())));
  };
  const std::pair<int, ErrorKind> codes[] = {{ENOSPC, ErrorKind::kWrite},  {EDQUOT, ErrorKind::kWrite},
                                             {EACCES, ErrorKind::kWrite},  {EPERM, ErrorKind::kWrite},
                                             {EROFS, ErrorKind::kWrite},   {ENOMEM, ErrorKind::kMemory},
                                             {EAGAIN, ErrorKind::kDevice}, {ELOOP, ErrorKind::kInternal}};
  for (const auto& [code, kind] : codes) {
    EXPECT_EQ(refused(code).kind(), kind) << code;
    EXPECT_FALSE(refused(code).hint().empty()) << code;
  }
  EXPECT_NE(refused(ENOSPC).message().find("/there"), std::string::npos) << refused(ENOSPC).message();
  const Error length = thrown(std::length_error("vector::reserve"));
  EXPECT_EQ(length.kind(), ErrorKind::kInternal);
  EXPECT_EQ(length.message(), "vector::reserve");
  EXPECT_EQ(thrown(Error(ErrorKind::kData, "ours")).kind(), ErrorKind::kData);
}

TEST(ApiErrors, WhatTheSystemRefusesACallbackIsTheCallers) {
  CallerThrow caller;
  const std::function<void()> callback = [] { throw fs::filesystem_error("mine", std::error_code()); };
  const auto call = [&] { with_api_errors([&] { kept_by(caller, callback)(); }, caller); };
  EXPECT_THROW(call(), fs::filesystem_error);
}

TEST(ApiErrors, LackOfMemoryOfACallbackIsTheCallers) {
  const TempFolder root;
  TrainCallbacks callbacks;
  callbacks.on_step = [](const StepReport&) { throw std::bad_alloc(); };
  EXPECT_THROW(train(kSmallRun, {.folder = (root.path() / "run").string(), .threads = 1}, callbacks),
               std::bad_alloc);
  const Model model = Model::load(VT_SOURCE_DIR "/tests/golden/models/timm_hub");
  const std::vector<std::string> paths = {VT_SOURCE_DIR "/examples/images/coffee.png"};
  const auto starved = [](const auto&) -> bool { throw std::bad_alloc(); };
  EXPECT_THROW(model.classify_files(paths, starved), std::bad_alloc);
  EXPECT_THROW(model.logits_files(paths, starved), std::bad_alloc);
  EXPECT_THROW(model.attention_files(paths, starved), std::bad_alloc);
}

// Threads that prepare images want stacks of 64 MiB where 32 are left, in a process of its own.
TEST(ApiErrors, ThreadsOfACallNameTheOption) {
  if (!has_room_of_its_own()) GTEST_SKIP();
  const std::vector<uint8_t> pixels(size_t{8} * 8 * 3, 7);
  const auto starve = [&] {
    const Model model =
        Model::load(VT_SOURCE_DIR "/tests/golden/models/timm_hub", {.threads = 2, .batch = 2});
    pthread_attr_t wide;
    ::pthread_attr_init(&wide);
    ::pthread_attr_setstacksize(&wide, size_t{64} << 20);
    ::pthread_setattr_default_np(&wide);
    leave_memory(size_t{32} << 20);
    const std::vector<ImageView> two(2, ImageView::pixels(pixels, 8, 8));
    const Error found = error_of([&] { (void)model.classify(two); });
    std::cerr << found.what();
    ::_exit(static_cast<int>(found.kind()));
  };
  EXPECT_EXIT(starve(), testing::ExitedWithCode(static_cast<int>(ErrorKind::kDevice)),
              "try: fewer threads .ModelOptions::threads.");
}

// An image of 147 MB where 32 MiB are left, in a process of its own.
TEST(ApiErrors, AnImageThatFindsNoMemory) {
  if (!has_room_of_its_own()) GTEST_SKIP();
  const std::vector<uint8_t> pixels(size_t{7000} * 7000 * 3, 7);
  const auto starve = [&] {
    const Model model = Model::load(VT_SOURCE_DIR "/tests/golden/models/timm_hub", {.threads = 1});
    leave_memory(size_t{32} << 20);
    const Error found = error_of([&] { (void)model.preprocess(ImageView::pixels(pixels, 7000, 7000)); });
    std::cerr << found.what();
    ::_exit(static_cast<int>(found.kind()));
  };
  EXPECT_EXIT(starve(), testing::ExitedWithCode(static_cast<int>(ErrorKind::kMemory)), "memory");
}

TEST(OptionWords, OfNotesToo) {
  const TempFolder root;
  const Plan plan = plan_training(R"({"model": {"arch": "vit_tiny_patch16_224"}})");
  ASSERT_FALSE(plan.notes.empty());
  for (const std::string& note : plan.notes) EXPECT_EQ(note.find("--"), std::string::npos) << note;
  EXPECT_NE(plan.notes.front().find("model.classes gives another number"), std::string::npos)
      << plan.notes.front();
}

// A list of images, which a command would be advised to take by @FILE.
TEST(OptionWords, OfFilesThatAreLists) {
  const TempFolder root;
  const std::vector<std::string> lists = {root.file("list.txt", "a.png\nb.png\n")};
  const Model model = Model::load(VT_SOURCE_DIR "/tests/golden/models/timm_hub");
  std::vector<Error> found = {error_of([&] { (void)model.classify(lists[0]); })};
  const auto kept = [&](const auto& result) {
    if (result.error) found.push_back(*result.error);
    return true;
  };
  model.classify_files(lists, kept);
  model.attention_files(lists, kept);
  EXPECT_EQ(found.size(), 3u);
  for (const Error& error : found) {
    EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
    EXPECT_NE(error.message().find("found a text file"), std::string::npos) << error.what();
    EXPECT_EQ(error.hint().find('@'), std::string::npos) << error.hint();
  }
}

// What train() and Model::load() refuse, with what a program can do about it.
TEST(OptionWords, OfRefusals) {
  const TempFolder root;
  const std::string foreign = (root.path() / "foreign").string();
  fs::create_directories(foreign + "/of_somebody");
  const auto hint = [](const auto& body) { return error_of(body).hint(); };
  EXPECT_EQ(hint([&] { train(kSmallRun, {.folder = foreign}); }),
            "name a folder that is empty or does not exist, with TrainOptions::folder");
  EXPECT_EQ(hint([&] { train(kSmallRun, {.folder = foreign, .device = "cpu:7"}); }).find("--"),
            std::string::npos);
  const Error unknown = error_of([] { (void)Model::load("vit_base_patch16_224"); });
  EXPECT_EQ(std::string(unknown.what()).find("--"), std::string::npos) << unknown.what();
  EXPECT_NE(unknown.hint().find("ModelOptions::arch vit_base_patch16_224"), std::string::npos)
      << unknown.what();
  EXPECT_EQ(hint([] { (void)Model::load("deit_tiny_patch16_225"); }), "did you mean deit_tiny_patch16_224?");
  const std::string untold =
      error_of([] { plan_training(R"({"model": {"init": "vit_base_patch16_224"}})"); }).hint();
  EXPECT_NE(untold.find("model.arch vit_base_patch16_224"), std::string::npos) << untold;
  EXPECT_EQ(untold.find("ModelOptions"), std::string::npos) << untold;
}

TEST(OptionWords, OfTheEnvironmentWhichTheLibraryDoesNotRead) {
  EXPECT_EQ(in_words(error_of([] { find_model("mine", {}); }).hint()),
            "give a folder or a file; no bundled models were found");
}

}  // namespace
}  // namespace vitrail
