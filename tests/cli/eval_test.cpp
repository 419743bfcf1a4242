// vitrail eval on runs of a tiny model: it measures what training measured, on any model and data that agree.
#include <gtest/gtest.h>

#include <cmath>

#include "data/decode.h"
#include "io/model_files.h"
#include "io/sealed_folder.h"
#include "tiny_training.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

std::string png(uint8_t level) {
  Image image = Image::blank(8, 8, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), level);
  const std::vector<uint8_t> bytes = encode_png(image);
  return {bytes.begin(), bytes.end()};
}

// A trained run and what is done to its files.
class Eval : public testing::Test {
 protected:
  void train(const Arguments& changes = {}) {
    lines_ = json_lines(run_in_process("train", tiny_run() + changes + Arguments{"--out", run()}).out);
  }
  std::string run() const { return (folder_.path() / "run").string(); }
  std::string best() const { return run() + "/best"; }

  void rename_classes(const std::vector<std::string>& names) const {
    const std::string path = best() + "/config.json";
    auto config = nlohmann::json::parse(read_file(path, 1 << 20));
    config["id2label"] = nlohmann::json::object();
    config["label2id"] = nlohmann::json::object();
    for (size_t i = 0; i < names.size(); ++i) {
      config["id2label"][std::to_string(i)] = names[i];
      config["label2id"][names[i]] = i;
    }
    write_file(path, config.dump());
    seal_folder(best());
  }

  // The best model again, with a head that gives every class this logit.
  void set_head(float logit) const {
    const auto model = open_model(best());
    const std::string fresh = (folder_.path() / "fresh").string();
    write_model(fresh, model->card(), {.dialect = Dialect::kHf}, [&](const ParamSpec& spec, auto target) {
      model->read_param(spec, target);
      if (spec.name.starts_with("head."))
        std::fill(target.begin(), target.end(), spec.name == "head.bias" ? logit : 0.0f);
    });
    fs::remove_all(best());
    fs::rename(fresh, best());
  }

  TempFolder folder_;
  std::vector<nlohmann::json> lines_;
};

TEST_F(Eval, ARunsFolderIsItsBestModelOnItsOwnData) {
  train();
  nlohmann::json measured;
  for (const auto& line : lines_)
    if (line["kind"] == "eval" && line["best"]) measured = line;
  const Answer answer = run_in_process("eval", {"-m", run()});
  EXPECT_NE(answer.err.find("taking " + best()), std::string::npos) << answer.err;
  const auto found = answer.json();
  for (const char* key : {"top1", "top5", "count"}) EXPECT_EQ(found[key], measured[key]) << key;
  EXPECT_NEAR(found["loss"].get<double>(), measured["loss"].get<double>(), 1e-5);
}

TEST_F(Eval, EveryImageCountsOnceWhateverTheBatch) {
  train();
  const auto with = [&](const char* batch) {
    auto json = run_in_process("eval", {"-m", best(), "--data", "synthetic:3x8x8x4x64", "--part", "all",
                                        "--batch", batch})
                    .json();
    json.erase("seconds");
    json.erase("img_per_s");
    return json;
  };
  const auto expected = with("1");
  EXPECT_EQ(expected["count"], 64 + 12);
  int64_t images = 0;
  double first = 0, among_five = 0;  // images
  for (const auto& row : expected["classes"]) {
    const auto count = row["count"].get<int64_t>();
    images += count;
    first += static_cast<double>(count) * row["top1"].get<double>();
    among_five += static_cast<double>(count) * row["top5"].get<double>();
  }
  EXPECT_EQ(images, 64 + 12);
  EXPECT_NEAR(first, expected["top1"].get<double>() * (64 + 12), 1e-6);
  EXPECT_NEAR(among_five, expected["top5"].get<double>() * (64 + 12), 1e-6);
  for (const char* batch : {"7", "32", "1000"}) EXPECT_EQ(with(batch), expected) << batch;
}

// Precision and F1 once more, from the counts of right and of confused images.
TEST_F(Eval, FiguresOfClassesFitTheConfusedPairs) {
  train();
  const auto json =
      run_in_process("eval", {"-m", best(), "--data", "synthetic:3x8x8x4x64", "--part", "all"}).json();
  EXPECT_NEAR(json["img_per_s"].get<double>() * json["seconds"].get<double>(), json["count"].get<double>(),
              1e-6);
  ASSERT_LT(json["confused"].size(), 10u) << "all of them are told";
  double all = 0;
  for (const auto& row : json["classes"]) {
    const double count = row["count"].get<double>(), right = row["top1"].get<double>() * count;
    double taken = right;
    for (const auto& pair : json["confused"]) {
      if (pair["predicted"] == row["name"]) taken += pair["count"].get<double>();
      if (pair["label"] != row["name"]) continue;
      EXPECT_NEAR(pair["share"].get<double>() * count, pair["count"].get<double>(), 1e-9);
    }
    EXPECT_NEAR(row["precision"].get<double>() * taken, right, 1e-9) << row["name"];
    EXPECT_NEAR(row["f1"].get<double>() * (count + taken), 2 * right, 1e-9) << row["name"];
    all += right;
  }
  EXPECT_NEAR(json["top1"].get<double>() * json["count"].get<double>(), all, 1e-9);
}

TEST_F(Eval, ClassesOfTheSameNamesAreMatchedByName) {
  train();
  const Arguments arguments = {"-m", best(), "--data", "synthetic:3x8x8x4x62", "--part", "train"};
  const auto plain = run_in_process("eval", arguments).json();
  const auto correct = [&](int64_t label, int64_t predicted) {
    for (const auto& pair : plain["confused"])
      if (pair["label"] == std::to_string(label) && pair["predicted"] == std::to_string(predicted))
        return pair["count"].get<double>();
    const auto& row = plain["classes"][static_cast<size_t>(label)];
    return label == predicted ? row["top1"].get<double>() * row["count"].get<double>() : 0.0;
  };
  rename_classes({"3", "0", "1", "2"});
  const Answer answer = run_in_process("eval", arguments);
  EXPECT_NE(answer.err.find("matched by name"), std::string::npos) << answer.err;
  const auto mapped = answer.json();
  EXPECT_EQ(mapped["classes"][0]["name"], "3");
  EXPECT_EQ(mapped["classes"][0]["count"], 15);
  EXPECT_EQ(mapped["classes"][1]["count"], 16);
  EXPECT_NEAR(mapped["top1"].get<double>(),
              (correct(3, 0) + correct(0, 1) + correct(1, 2) + correct(2, 3)) / 62, 1e-9);
}

TEST_F(Eval, OtherNamesAreSaidAndOtherNumbersRefused) {
  train();
  rename_classes({"0", "one", "2", "3"});
  const Answer answer = run_in_process("eval", {"-m", best(), "--data", "synthetic:3x8x8x4x8"});
  EXPECT_NE(answer.err.find("class 1 is \"one\""), std::string::npos) << answer.err;
  EXPECT_EQ(answer.json()["count"], 1);
  const Error error = error_of("eval", {"-m", best(), "--data", "synthetic:3x8x8x7x8"});
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(error.message().find("4 classes, the data has 7"), std::string::npos) << error.message();
  EXPECT_EQ(error_of("eval", {"-m", best()}).kind(), ErrorKind::kUsage);
}

TEST_F(Eval, SeveralLabelsAnImage) {
  std::string csv = "filename,labels\n";
  for (int i = 0; i < 12; ++i) {
    const std::string name = strf("%02d.png", i);
    folder_.file("data/" + name, png(static_cast<uint8_t>(20 * i)));
    csv += name + (i % 3 == 0 ? ",\n" : i % 2 ? ",dark; sea\n" : ",sun\n");
  }
  folder_.file("data/labels.csv", csv);
  const std::string data = "folder:" + (folder_.path() / "data").string();
  train(settings({"data.train=" + data, "data.val=" + data, "train.loss=bce_mean", "train.batch=4"}));
  const auto found = run_in_process("eval", {"-m", run()}).json();
  EXPECT_EQ(found["count"], 12);
  EXPECT_FALSE(found.contains("top1"));
  EXPECT_TRUE(found["map"].is_number() && found["f1"].is_number());
  EXPECT_EQ(found["classes"][0]["name"], "dark");
  EXPECT_TRUE(found["classes"][0].contains("ap"));
  const std::string text = run_in_process("eval", {"-m", run()}, false).out;
  EXPECT_NE(text.find("mean average precision"), std::string::npos) << text;
}

// Logits of 1 for every class: each is as likely as the others, and none excludes them.
TEST_F(Eval, AModelOfSeveralLabelsScoresEachClassOnItsOwn) {
  train(settings({"train.loss=bce_mean"}));
  nlohmann::json measured;
  for (const auto& line : lines_)
    if (line["kind"] == "eval" && line["best"]) measured = line;
  const Answer answer = run_in_process("eval", {"-m", run()});
  EXPECT_NE(answer.err.find("the loss is bce_mean"), std::string::npos) << answer.err;
  EXPECT_NEAR(answer.json()["loss"].get<double>(), measured["loss"].get<double>(), 1e-5);
  set_head(1.0f);
  const std::string image = folder_.file("grey.png", png(128));
  const auto top = run_in_process("predict", {"-m", best(), "-k", "9", image}).json()["top"];
  ASSERT_EQ(top.size(), 4u);
  for (const auto& one : top) EXPECT_NEAR(one["prob"].get<double>(), 1 / (1 + std::exp(-1.0)), 1e-6);
  const std::string maps = (folder_.path() / "maps").string();
  const auto explained = run_in_process("explain", {"-m", best(), "--out", maps, image}).json()["top"];
  for (const auto& one : explained) EXPECT_NEAR(one["prob"].get<double>(), 1 / (1 + std::exp(-1.0)), 1e-6);
}

TEST_F(Eval, BrokenImagesFailByNameOrAreSkipped) {
  for (const char* name : {"data/dark/a.png", "data/dark/b.png", "data/sun/a.png", "data/sun/b.png"})
    folder_.file(name, png(name[5] == 'd' ? 10 : 240));
  const std::string data = "folder:" + (folder_.path() / "data").string();
  train(settings({"data.train=" + data, "data.val=" + data, "train.batch=2"}));
  folder_.file("data/sun/c.png", "no image");
  const Arguments arguments = {"-m", best(), "--data", data};
  const Error error = error_of("eval", arguments);
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(std::string(error.what()).find("sun/c.png"), std::string::npos) << error.what();
  const Answer answer =
      run_in_process("eval", arguments + settings({"loader.on_error=skip", "loader.max_bad_fraction=0.5"}));
  EXPECT_EQ(answer.json()["count"], 4);
  EXPECT_NE(answer.err.find("skipped sun/c.png"), std::string::npos) << answer.err;
}

TEST_F(Eval, OverNoImageThatCanBeReadIsAnError) {
  for (const char* name : {"data/dark/a.png", "data/sun/a.png"})
    folder_.file(name, png(name[5] == 'd' ? 10 : 240));
  const std::string data = "folder:" + (folder_.path() / "data").string();
  train(settings({"data.train=" + data, "data.val=" + data, "train.batch=2"}));
  for (const char* name : {"data/dark/a.png", "data/sun/a.png"}) folder_.file(name, "no image");
  for (const Arguments& ranks : {Arguments(), Arguments{"--ranks", "2"}}) {
    const Error error =
        error_of("eval", Arguments{"-m", best(), "--data", data} +
                             settings({"loader.on_error=skip", "loader.max_bad_fraction=1"}) + ranks);
    EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
    EXPECT_NE(error.message().find("none of 2 images could be read"), std::string::npos) << error.what();
  }
}

TEST_F(Eval, TheReportIsOnePage) {
  train();
  const std::string page = (folder_.path() / "out.html").string();
  run_in_process("eval", {"-m", run(), "--report", page});
  const std::string html = read_file(page, 8 << 20);
  for (const char* part : {"top-1", "synthetic#", "data:image/png;base64", "<svg"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  const Error error = error_of("eval", {"-m", run(), "--data", "folder:/nowhere", "--report",
                                        (folder_.path() / "no/out.html").string()});
  EXPECT_EQ(error.kind(), ErrorKind::kWrite) << "before the data is looked at";
  EXPECT_EQ(error_of("eval", {"-m", run(), "--data", "folder:/nowhere", "--report", page}).kind(),
            ErrorKind::kData);
  EXPECT_EQ(read_file(page, 8 << 20), html) << "a failed evaluation leaves the old page";
}

TEST_F(Eval, NumbersThatAreNoneAreRefused) {
  train();
  const std::string path = best() + "/model.safetensors";
  std::string weights = read_file(path, 1 << 20);
  weights.replace(weights.size() - 4, 4, std::string("\0\0\xc0\x7f", 4));
  write_file(path, weights);
  EXPECT_EQ(error_of("eval", {"-m", run()}).kind(), ErrorKind::kData) << "changed since it was written";
  seal_folder(best());
  EXPECT_EQ(error_of("eval", {"-m", run()}).kind(), ErrorKind::kNumerics);
}

TEST_F(Eval, TextShowsClassesConfusionsAndWorstImages) {
  train();
  const std::string text = run_in_process("eval", {"-m", run(), "--check", "ref"}, false).out;
  for (const char* part : {"top-1", "top-5", "precision", "taken for", "worst images", "img/s"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST_F(Eval, ARunWithoutABestModelGivesItsLatestCheckpoint) {
  train();
  fs::remove_all(best());
  const Answer answer = run_in_process("eval", {"-m", run()});
  EXPECT_NE(answer.err.find("checkpoints/latest"), std::string::npos) << answer.err;
}

TEST_F(Eval, AgainstAnotherTypeTellsAccuracyAndAgreementInOnePass) {
  train();
  const Arguments on = {"-m", best(), "--data", "synthetic:3x8x8x4x64", "--part", "all"};
  const auto exact = run_in_process("eval", on).json();
  EXPECT_EQ(exact["dtype"], "f32");
  EXPECT_FALSE(exact.contains("against"));
  for (const char* dtype : {"bf16", "int8"}) {
    const auto both = run_in_process("eval", on + Arguments{"--dtype", dtype, "--against", "f32"}).json();
    EXPECT_EQ(both["dtype"], dtype);
    EXPECT_EQ(both["against"]["dtype"], "f32");
    EXPECT_EQ(both["against"]["top1"], exact["top1"]);
    const double difference = both["top1"].get<double>() - exact["top1"].get<double>();
    EXPECT_NEAR(both["against"]["difference_points"].get<double>(), 100 * difference, 1e-9);
    EXPECT_GE(both["against"]["agreement"].get<double>(), 1 - 4.0 / 64) << dtype;
    EXPECT_NE(both["loss"], exact["loss"]) << "the types compute the same";
  }
  const auto itself = run_in_process("eval", on + Arguments{"--against", "f32"}).json();
  EXPECT_EQ(itself["against"]["agreement"], 1.0);
}

}  // namespace
}  // namespace vitrail::cli
