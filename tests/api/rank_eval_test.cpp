// An evaluation's ranks before they run: how many images are decoded at once, and what the first rank tells
// the others.
#include "api/rank_eval.h"

#include <gtest/gtest.h>

#include <thread>

#include "api/image_stream.h"
#include "backend/cpu/kernels.h"
#include "error_of.h"
#include "io/model_files.h"
#include "source_root.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

// Where nobody says how many threads decode, as many do as compute; what they hold counts before it is held.
TEST(EvalRank, DecodesWithAsManyThreadsAsCompute) {
  const TempFolder folder;
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directories(folder.path() / name);
    std::filesystem::copy_file(VT_SOURCE_DIR "/examples/images/chelsea.png",
                               folder.path() / name / "one.png");
  }
  const auto model = open_model(VT_SOURCE_DIR "/tests/golden/models/timm_hub");
  const std::unique_ptr<Dataset> data = open_dataset("folder:" + folder.path().string(), Part::kAll);
  const size_t each = decoder_bytes(*data);
  ASSERT_GT(each, size_t{1} << 18);
  DeviceInfo small = cpu_device(3);
  small.memory_bytes = 1;
  RankContext context(small);
  for (const auto& [workers, decoders] : {std::pair<int64_t, size_t>{0, 3}, {1, 1}, {2, 2}, {5, 5}}) {
    EvalWork work{.model = *model, .data = *data, .engine = {.threads = 3}, .loader = {}, .device = "cpu"};
    work.loader.workers = workers;
    const InferenceRank rank{.context = &context};
    const Error error = error_of([&] { EvalRank(work, rank, {}); });
    EXPECT_EQ(error.kind(), ErrorKind::kMemory) << error.message();
    const std::string held =
        strf("images being decoded %.1f MiB", static_cast<double>(decoders * each) / (1 << 20));
    EXPECT_NE(error.message().find(held), std::string::npos) << workers << ": " << held << "\n"
                                                             << error.message();
  }
}

// Ranks that are processes hear a list of texts from the first, whatever their own are.
TEST(InferenceRanksTexts, AreThoseOfTheFirstRank) {
  for (const std::vector<std::string>& texts :
       {std::vector<std::string>{"a.png", "", "b c.png", "d"}, {"one"}, {}}) {
    auto worlds = thread_communicators(2);
    std::vector<std::vector<std::string>> heard(2);
    std::vector<std::thread> threads;
    for (size_t r = 0; r < 2; ++r)
      threads.emplace_back([&, r] {
        World world{.size = 2, .transport = "mpi"};
        world.ranks.push_back(std::move(worlds[r]));
        MeshConfig mesh;
        mesh.dp = 2;
        InferenceRanks ranks(std::move(world), mesh);
        EXPECT_EQ(ranks.leads(), r == 0);
        heard[r] = ranks.from_leader(r == 0 ? texts : std::vector<std::string>{"its own"});
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(heard[0], texts);
    EXPECT_EQ(heard[1], texts);
  }
}

}  // namespace
}  // namespace vitrail
