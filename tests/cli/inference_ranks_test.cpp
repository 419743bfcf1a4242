// predict, eval and bench infer on ranks: the answers of one rank, in its order and form.
#include <gtest/gtest.h>

#include <cmath>

#include "cli/device_choice.h"
#include "data/decode.h"
#include "run_words.h"
#include "source_root.h"
#include "thrown.h"
#include "tiny_training.h"

namespace vitrail::cli {
namespace {

using Arguments = std::vector<std::string>;

const std::string kModel =
    std::string(VT_SOURCE_DIR) + "/tests/golden/models/timm_hub";  // 4 heads, 5 classes
const char* const kClasses[] = {"anemone", "bell tower", "crab", "dune", "elm"};

std::string png(size_t number) {
  Image image = Image::blank(16, 16, 3);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>(number * 53 + i * (number + 3));
  const std::vector<uint8_t> bytes = encode_png(image);
  return {bytes.begin(), bytes.end()};
}

const std::vector<Arguments> kMeshes = {{"--ranks", "2"},
                                        {"--ranks", "3"},
                                        {"--mesh", "tp=2"},
                                        {"--mesh", "dp=2,tp=2"},
                                        {"--mesh", "sp=2"},
                                        {"--ranks", "4", "--mesh", "tp=4"},
                                        {"--mesh", "tp=2,tokens_on_tp"}};

std::string text_of(const Arguments& words) {
  std::string text;
  for (const std::string& word : words) text += word + " ";
  return text;
}

// Both hold the same keys in the same order, the same texts, and numbers that are near.
void expect_near(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b, const std::string& where) {
  ASSERT_EQ(a.type() == b.type() || (a.is_number() && b.is_number()), true) << where;
  if (a.is_number()) {
    EXPECT_NEAR(a.get<double>(), b.get<double>(), 1e-5) << where;
  } else if (a.is_structured()) {
    ASSERT_EQ(a.size(), b.size()) << where;
    for (auto i = a.begin(), j = b.begin(); i != a.end(); ++i, ++j) {
      if (a.is_object()) {
        ASSERT_EQ(i.key(), j.key()) << where;
      }
      expect_near(*i, *j, where + (a.is_object() ? "." + i.key() : ""));
    }
  } else {
    EXPECT_EQ(a, b) << where;
  }
}

std::vector<nlohmann::ordered_json> lines_of(const std::string& text) {
  std::vector<nlohmann::ordered_json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::ordered_json::parse(line));
  return lines;
}

class Inference : public testing::Test {
 protected:
  // Ten images: neither a multiple of the batch nor of the ranks.
  Inference() {
    for (size_t i = 0; i < 10; ++i)
      folder_.file(std::string("images/") + kClasses[i % 5] + "/" + std::to_string(i) + ".png", png(i));
  }
  std::string images() const { return (folder_.path() / "images").string(); }
  TempFolder folder_;
};

TEST_F(Inference, PredictGivesTheRowsOfOneRank) {
  for (const Arguments& task : {Arguments{"--logits"}, Arguments{"--embed"}, Arguments{"-k", "5"}}) {
    const Arguments base = Arguments{"-m", kModel, "--threads", "1", "--batch", "4", images()} + task;
    const auto one = lines_of(run_in_process("predict", base).out);
    ASSERT_EQ(one.size(), 10u);
    for (const Arguments& mesh : kMeshes) {
      const auto many = lines_of(run_in_process("predict", base + mesh).out);
      ASSERT_EQ(many.size(), one.size()) << text_of(mesh);
      for (size_t i = 0; i < one.size(); ++i) expect_near(one[i], many[i], text_of(mesh) + std::to_string(i));
    }
  }
}

TEST_F(Inference, OneImageIsEnoughForAnyMesh) {
  const Arguments base = {"-m", kModel, "--threads", "1", "--logits", images() + "/crab/2.png"};
  const auto one = run_in_process("predict", base).json(),
             many = run_in_process("predict", base + Arguments{"--mesh", "dp=3"}).json();
  expect_near(one, many, "one image");
}

// The rank that fails to read an image is not the one that tells.
TEST_F(Inference, AnImageThatCannotBeReadIsToldInItsPlace) {
  folder_.file("images/dune/3.png", "no image");
  const Arguments base = {"-m", kModel, "--threads", "1", "--batch", "4", images()};
  for (const Arguments& mesh : {Arguments{}, Arguments{"--ranks", "2"}, Arguments{"--mesh", "dp=2,tp=2"}}) {
    const Error error = error_of("predict", base + mesh);
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_STREQ(error.what(), "1 of 10 images failed") << text_of(mesh);
  }
}

TEST_F(Inference, EvalGivesTheResultOfOneRank) {
  const Arguments base = {"-m", kModel, "--threads", "1", "--batch", "4", "--data", "folder:" + images()};
  const auto measured = [&](const Arguments& more) {
    auto json = nlohmann::ordered_json::parse(run_in_process("eval", base + more).out);
    json.erase("seconds"), json.erase("img_per_s");
    return json;
  };
  for (const Arguments& how : {Arguments{}, Arguments{"--against", "bf16"}})
    for (const Arguments& mesh : kMeshes)
      expect_near(measured(how), measured(how + mesh), text_of(how + mesh));
}

// Two of different batches, which no rank of several meets alone.
TEST_F(Inference, EvalSkipsAndCountsTheImagesOfAllRanks) {
  folder_.file("images/dune/3.png", "no image");
  folder_.file("images/anemone/5.png", "nor this");
  const Arguments base = {"-m",   kModel,   "--threads",          "1",     "--batch",
                          "4",    "--data", "folder:" + images(), "--set", "loader.on_error=skip",
                          "--set"};
  for (const Arguments& mesh : {Arguments{}, Arguments{"--ranks", "2"}, Arguments{"--mesh", "dp=2,tp=2"}}) {
    const Answer answer = run_in_process("eval", base + Arguments{"loader.max_bad_fraction=0.2"} + mesh);
    EXPECT_EQ(answer.json()["count"], 8) << text_of(mesh);
    for (const char* name : {"3.png", "5.png"}) {
      const size_t first = answer.err.find(name);
      EXPECT_NE(first, std::string::npos) << answer.err;
      EXPECT_EQ(answer.err.find(std::string("skipped ") + name, first + 1), std::string::npos) << answer.err;
    }
    EXPECT_EQ(error_of("eval", base + Arguments{"loader.max_bad_fraction=0.1"} + mesh).kind(),
              ErrorKind::kData)
        << text_of(mesh);
  }
}

TEST_F(Inference, OnlyOneRankWritesTheReport) {
  const std::string page = (folder_.path() / "page.html").string();
  run_in_process("eval",
                 {"-m", kModel, "--data", "folder:" + images(), "--mesh", "dp=2,tp=2", "--report", page});
  EXPECT_GT(read_file(page, 1 << 24).size(), 1000u);
}

TEST(BenchInferRanks, ComparesWithOneRankOnTheSameCores) {
  const Arguments base = {"--weights", "rule",
                          "--model",   "vit_tiny_patch16_224",
                          "--set",     "model.heads=4",
                          "--image",   "32",
                          "--seconds", "0",
                          "--threads", "1",
                          "--warmup",  "1"};
  struct Want {
    const char *mesh, *batch;
    int ranks, shared, alone;
  };
  for (const Want& want :
       {Want{"dp=2,tp=2", "4", 4, 4, 4}, Want{"tp=2", "1", 2, 1, 1}, Want{"dp=3", "1", 3, 3, 1}}) {
    const auto json =
        run_in_process("bench infer", base + Arguments{"--mesh", want.mesh, "--batch", want.batch}).json();
    EXPECT_EQ(json["ranks"], want.ranks);
    EXPECT_EQ(json["shared"]["batch"], want.shared);
    EXPECT_EQ(json["alone"]["batch"], want.alone);
    EXPECT_EQ(json["alone"]["threads"], want.ranks);
    EXPECT_LT(json["largest_difference"].get<double>(), 1e-5);
    const double shared = json["shared"]["ms_median"], alone = json["alone"]["ms_median"];
    EXPECT_NEAR(json["latency_ratio"].get<double>(), alone / shared, 1e-9);
    EXPECT_NEAR(json["throughput_ratio"].get<double>(), want.shared / shared / (want.alone / alone), 1e-6);
    const double least =
        std::string(want.mesh) == "tp=2" ? 1 : 0;  // a part of the model is less than all of it
    EXPECT_GE(json["alone"]["memory_peak"].get<double>(),
              json["shared"]["memory_peak"].get<double>() * least + least);
  }
}

// 12 blocks of two all-reduces each.
TEST(PlanOfRanks, IsWhatARankAllocatesAndExchanges) {
  const Arguments model = {
      "--weights", "rule", "--model", "vit_tiny_patch16_224", "--set", "model.heads=4", "--image", "32",
      "--threads", "1",    "--mesh"};
  for (const char* mesh : {"tp=2", "dp=2,tp=2"}) {
    const auto plan = run_in_process("plan", model + Arguments{mesh, "--batch", "3"}).json();
    EXPECT_EQ(plan["collectives"].size(), 1u) << mesh;
    EXPECT_EQ(plan["collectives"][0]["kind"], "all_reduce") << mesh;
    EXPECT_EQ(plan["collectives"][0]["count"], 24) << mesh;
    const auto bench = run_in_process("bench infer", model + Arguments{mesh, "--batch", "3", "--seconds", "0",
                                                                       "--warmup", "0"})
                           .json();
    EXPECT_EQ(plan["memory"]["peak"], bench["shared"]["memory_peak"]) << mesh;
  }
}

TEST(RankRefusals, SayWhatWouldFit) {
  struct Case {
    const char* command;
    Arguments arguments;
    const char* says;
  };
  const Arguments model = {"-m", kModel};
  const std::string image = std::string(VT_SOURCE_DIR) + "/examples/images/chelsea.png";
  for (const Case& c :
       {Case{"predict", {image, "--ranks", "3", "--mesh", "dp=2,tp=2"}, "mesh.dp=3 mesh.tp=1"},
        Case{"predict", {image, "--mesh", "tp=3"}, "tp x sp may be 1, 2, 4"},
        Case{"predict", {image, "--mesh", "zero=1"}, "zero=1"},
        Case{"predict", {image, "--mesh", "pp=2"}, "any of dp, tp, sp"},
        Case{"predict", {image, "--ranks", "2", "--check", "ref"}, "without --ranks"},
        Case{"bench infer", {"--mesh", "tp=2", "--compare", image}, "--compare is for one rank"}}) {
    const Error error = error_of(c.command, model + c.arguments);
    EXPECT_EQ(exit_code(error.kind()), 64) << error.what();
    EXPECT_NE(std::string(error.what()).find(c.says), std::string::npos) << error.what();
  }
}

// Three heads are shared by no two ranks: what is proposed instead is not refused in its turn.
TEST(RankRefusals, ProposeOnlyMeshesThatCutTheHeads) {
  const std::string image = std::string(VT_SOURCE_DIR) + "/examples/images/chelsea.png";
  const auto hint = [](const char* command, const Arguments& arguments) {
    return error_of(command, arguments + Arguments{"--mesh", "dp=3,tp=2", "--ranks", "4"}).hint();
  };
  const Arguments bench = {"-m", "vit_tiny_patch16_224", "--weights", "rule"};
  const std::string one = "mesh.dp=4 mesh.tp=1 mesh.sp=1";
  EXPECT_EQ(hint("predict", {image}), one) << "the bundled DeiT-Tiny";
  EXPECT_EQ(hint("bench infer", bench), one);
  EXPECT_EQ(hint("profile", bench), one);
  const std::string two = hint("bench infer", bench + Arguments{"--set", "model.heads=4"});
  EXPECT_TRUE(two.starts_with("mesh.dp=2 mesh.tp=2 mesh.sp=1, or ")) << two;
}

// A process that mpirun has started is one rank of the mesh; otherwise this one has all of them.
TEST(RankCount, IsThatOfTheMeshUnlessRanksAreProcesses) {
  const SetVariable mpi("OMPI_COMM_WORLD_RANK", nullptr), slurm("SLURM_STEP_ID", nullptr);
  MeshConfig mesh;
  mesh.dp = 2;
  mesh.tp = 3;
  const Arguments image = {"x.jpg"};
  EXPECT_EQ(rank_count(options_of("predict", image), {}), 1);
  EXPECT_EQ(rank_count(options_of("predict", image), mesh), 6);
  EXPECT_EQ(rank_count(options_of("predict", image + Arguments{"--ranks", "4"}), mesh), 4);
  {
    const SetVariable started("OMPI_COMM_WORLD_RANK", "0");
    EXPECT_EQ(rank_count(options_of("predict", image), mesh), 1);
  }
  mesh.dp = 1024;
  mesh.tp = 4;
  EXPECT_EQ(rank_count(options_of("predict", image), mesh), 4096);
  mesh.dp = 1025;
  EXPECT_EQ(thrown_by([&] {
              rank_count(options_of("predict", image + Arguments{"--mesh", "dp=1025,tp=4"}), mesh);
            }),
            "usage: --mesh dp=1025,tp=4 has 4100 places; expected at most 4096");
}

TEST(Launch, EveryCommandWithRanksCanBeWatched) {
  for (const Command& command : commands()) {
    const auto has = [&](const char* name) {
      return std::any_of(command.spec.options.begin(), command.spec.options.end(),
                         [&](const OptionSpec& o) { return o.name == name; });
    };
    if (command.spec.name == "launch" || command.spec.name == "scale") continue;  // they start such commands
    EXPECT_EQ(has("ranks"), has("deadline")) << command.spec.name;
  }
}

TEST(Launch, OnlyATrainingRunIsStartedAgain) {
  const Error error = error_of("launch", {"--ranks", "2", "--max-restarts", "1", "--", "predict", "cat.jpg"});
  EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  EXPECT_NE(error.message().find("saves nothing"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace vitrail::cli
