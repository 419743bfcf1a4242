// The result of an evaluation as JSON, text and page, from figures that were counted by hand; and classes
// that are numbered or named differently.
#include "train/eval_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/fake_dataset.h"
#include "io/cards/card_text.h"
#include "train/eval_data.h"

namespace vitrail {
namespace {

constexpr auto kNone = std::string::npos;

// Words with one blank between them.
std::string squeezed(const std::string& text) {
  std::string words;
  for (const char c : text)
    if (c != ' ' || (!words.empty() && words.back() != ' ')) words += c;
  return words;
}

class EvalTexts : public ::testing::Test {
 protected:
  EvalTexts() : data_(12, 3) {
    struct Answer {
      int64_t label, predicted, times, in_top5;
    };
    result_.confusion.emplace(3);
    for (const Answer& a :
         {Answer{0, 0, 3, 3}, {0, 1, 2, 1}, {1, 1, 1, 1}, {1, 2, 2, 2}, {2, 0, 1, 1}, {2, 1, 1, 0}})
      for (int64_t i = 0; i < a.times; ++i) result_.confusion->add(a.label, a.predicted, i < a.in_top5);
    result_.count = 10, result_.loss = 1.5, result_.seconds = 2;
    result_.worst = {{.sample = 4, .label = 0, .predicted = 1, .probability = 0.625f, .loss = 2.25f}};
    result_.best = {{.sample = 3, .label = 2, .predicted = 2, .probability = 0.875f, .loss = 0.25f}};
    result_.against = {.right = 3, .equal = 9};
    card_.config.classes = 3;
    labels_.multi_label = {
        .classes = {{.positives = 4, .average_precision = 0.1, .precision = 0.2, .recall = 0.3, .f1 = 0.4},
                    {.positives = 5},
                    {.positives = 1}},
        .mean_ap = 0.6,
        .macro_f1 = 0.7,
        .micro_f1 = 0.8,
        .count = 12};
    labels_.count = 12, labels_.loss = 0.5, labels_.seconds = 4;
  }

  EvalSubject of(const EvalResult& result, const char* against = "") const {
    return {"a model", "some:data", "val", "a device", "bf16",
            against,   card_,       data_, result,     Overlap{.looked_at = 8, .found = 2}};
  }

  test::FakeDataset data_;
  ModelCard card_;
  EvalResult result_, labels_;
};

TEST_F(EvalTexts, JsonHoldsEveryFigure) {
  const nlohmann::json json = eval_json(of(result_, "f32"));
  const nlohmann::json expected = {{"model", "a model"},
                                   {"data", "some:data"},
                                   {"part", "val"},
                                   {"top1", 0.4},
                                   {"top5", 0.8},
                                   {"count", 10},
                                   {"loss", 1.5},
                                   {"seconds", 2.0},
                                   {"img_per_s", 5.0},
                                   {"dtype", "bf16"},
                                   {"seen_in_training", 0.25}};
  for (const auto& [key, value] : expected.items()) EXPECT_EQ(json.at(key), value) << key;
  EXPECT_EQ(json.at("against").at("dtype"), "f32");
  EXPECT_DOUBLE_EQ(json["against"].at("top1"), 0.3);
  EXPECT_NEAR(json["against"].at("difference_points").get<double>(), 10, 1e-9);
  EXPECT_DOUBLE_EQ(json["against"].at("agreement"), 0.9);
  // Count, recall, share among five, precision, F1 of each class.
  const double classes[][5] = {
      {5, 3 / 5., 4 / 5., 3 / 4., 6 / 9.}, {3, 1 / 3., 1, 1 / 4., 2 / 7.}, {2, 0, 1 / 2., 0, 0}};
  ASSERT_EQ(json.at("classes").size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const nlohmann::json& row = json["classes"][i];
    EXPECT_EQ(row.at("name"), "class" + std::to_string(i));
    const char* keys[] = {"count", "top1", "top5", "precision", "f1"};
    for (size_t k = 0; k < 5; ++k) EXPECT_DOUBLE_EQ(row.at(keys[k]).get<double>(), classes[i][k]) << keys[k];
  }
  const nlohmann::json confused = {
      {{"label", "class0"}, {"predicted", "class1"}, {"count", 2}, {"share", 2 / 5.}},
      {{"label", "class1"}, {"predicted", "class2"}, {"count", 2}, {"share", 2 / 3.}},
      {{"label", "class2"}, {"predicted", "class0"}, {"count", 1}, {"share", 1 / 2.}},
      {{"label", "class2"}, {"predicted", "class1"}, {"count", 1}, {"share", 1 / 2.}}};
  EXPECT_EQ(json.at("confused"), confused);
  const nlohmann::json worst = {
      {{"image", "fake#4"}, {"label", "class0"}, {"predicted", "class1"}, {"prob", 0.625}, {"loss", 2.25}}};
  EXPECT_EQ(json.at("worst"), worst);
}

TEST_F(EvalTexts, JsonOfSeveralLabels) {
  const nlohmann::json json = eval_json(of(labels_));
  EXPECT_EQ(json.at("map"), 0.6);
  EXPECT_EQ(json.at("f1"), 0.7);
  EXPECT_EQ(json.at("img_per_s"), 3.0);
  EXPECT_FALSE(json.contains("top1") || json.contains("confused") || json.contains("against"));
  const nlohmann::json first = {{"name", "class0"}, {"count", 4},    {"ap", 0.1},
                                {"precision", 0.2}, {"recall", 0.3}, {"f1", 0.4}};
  EXPECT_EQ(json.at("classes")[0], first);
}

TEST_F(EvalTexts, TextHoldsTheFiguresInTheirColumns) {
  const std::string text = squeezed(eval_text(of(result_, "f32"), 2));
  for (const char* part :
       {"data some:data, part val\n", "images 10\n", "top-1 40.00 %\n", "top-5 80.00 %\n", "loss 1.5\n",
        "top-1 in f32 30.00 %\n", "difference +10.00 points in bf16\n", "same answer 90.00 %\n",
        "seen in training 25.00 %\n", "time 2.00 s, 5.00 img/s in bf16 and f32 on a device\n",
        "class images top-1 precision top-5 F1", "class0 5 60.00 % 75.00 % 80.00 % 66.67 %",
        "class1 3 33.33 % 25.00 % 100.00 % 28.57 %", "and 1 more (--classes)",
        "is taken for images of the class", "class0 class1 2 40.00 %", "class1 class2 2 66.67 %",
        "worst images is taken for prob loss", "fake#4 class0 class1 62.50 % 2.25"})
    EXPECT_NE(text.find(part), kNone) << part << "\n" << text;
  EXPECT_EQ(text.find("class2 2 0.00"), kNone) << "two rows were asked for";
  EXPECT_NE(text.find(architecture_text(card_.config)), kNone);
  const std::string whole = squeezed(eval_text(of(result_), 3));
  EXPECT_NE(whole.find("class2 2 0.00 % 0.00 % 50.00 % 0.00 %"), kNone) << whole;
  EXPECT_EQ(whole.find("more (--classes)"), kNone);
}

TEST_F(EvalTexts, TextOfSeveralLabels) {
  const std::string text = squeezed(eval_text(of(labels_), 9));
  for (const char* part :
       {"mean average precision 60.00 %\n", "F1 70.00 %\n", "time 4.00 s, 3.00 img/s in bf16 on a device\n",
        "class images AP precision recall F1", "class0 4 10.00 % 20.00 % 30.00 % 40.00 %"})
    EXPECT_NE(text.find(part), kNone) << part << "\n" << text;
  EXPECT_EQ(text.find("taken for"), kNone);
}

TEST_F(EvalTexts, WhatWasNotSeenIsNotToldAsAShare) {
  EvalSubject subject = of(result_);
  subject.seen = Overlap{.looked_at = 8, .found = 0};
  EXPECT_EQ(eval_text(subject, 3).find("seen in training"), kNone);
  EXPECT_EQ(eval_json(subject).at("seen_in_training"), 0.0);
  subject.seen = Overlap{.looked_at = 8, .found = 1};
  EXPECT_NE(squeezed(eval_text(subject, 3)).find("seen in training 12.50 %\n"), kNone);
  EXPECT_EQ(eval_json(subject).at("seen_in_training"), 0.125);
  subject.seen.reset();
  EXPECT_EQ(eval_text(subject, 3).find("seen in training"), kNone) << "nothing is known";
  EXPECT_EQ(eval_page(subject, "").find("seen in training"), kNone);
  EXPECT_FALSE(eval_json(subject).contains("seen_in_training"));
}

TEST_F(EvalTexts, ThePageHasItsVerdict) {
  const std::string page = eval_page(of(result_), "vitrail 9.8");
  for (const char* part : {"Evaluation of a model", "40.00 % top-1 on 10 images of some:data", "fake#4",
                           "fake#3", "a device", "2.00 s", "vitrail 9.8"})
    EXPECT_NE(page.find(part), kNone) << part;
  EXPECT_NE(eval_page(of(labels_), "").find("60.00 % mean average precision on 12 images"), kNone);
}

TEST(EvalClasses, AreMatchedByNameWhereTheyHaveTheSame) {
  const auto fitted = [](std::vector<std::string> labels, std::vector<std::string>& said) {
    ModelCard card;
    card.config.classes = 3;
    card.labels = std::move(labels);
    return fit_classes(std::make_unique<test::FakeDataset>(6, 3), card,
                       [&](const std::string& text) { said.push_back(text); });
  };
  const struct {
    std::vector<std::string> labels;
    const char* told;
    int32_t first;  // the number of what the data calls class0
  } rows[] = {
      {{"class0", "class1", "class2"}, "", 0},
      {{}, "the model does not name its classes: they are taken in the data's order", 0},
      {{"class2", "class0", "class1"}, "the model numbers the classes differently: matched by name", 1},
      {{"class0", "one", "two"},
       "warning: class 1 is \"one\" to the model and \"class1\" in the data; classes are matched by number",
       0}};
  for (const auto& row : rows) {
    std::vector<std::string> said;
    const auto data = fitted(row.labels, said);
    EXPECT_EQ(said, *row.told ? std::vector<std::string>{row.told} : std::vector<std::string>());
    EXPECT_EQ(data->labels(0)[0], row.first) << row.told;
  }
}

}  // namespace
}  // namespace vitrail
