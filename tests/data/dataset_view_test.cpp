// open_data: parts, splits, classes and fractions, and the notes about them.
#include <cmath>
#include <set>

#include "data/dataset.h"
#include "data/datasets/view.h"
#include "dataset_files.h"

namespace vitrail {
namespace {

using namespace test;
using Names = std::vector<std::string>;

std::set<std::string> name_set(const Dataset& data) {
  std::set<std::string> names;
  for (int64_t i = 0; i < data.size(); ++i) names.insert(data.sample_name(i));
  return names;
}

std::string all_notes(const DataSplits& splits) {
  std::string text;
  for (const std::string& note : splits.notes) text += note + "\n";
  return text;
}

// Writes `counts[i]` files of class "class i".
void fill(const DataFolder& folder, const std::string& below, const std::vector<int>& counts) {
  for (size_t c = 0; c < counts.size(); ++c)
    for (int i = 0; i < counts[c]; ++i)
      folder.file(below + strf("class %zu/%d.png", c, i), png(static_cast<uint8_t>(c)));
}

TEST(OpenData, SplitsByHashOfNames) {
  const DataFolder folder;
  fill(folder, "", {200, 200});
  const DataConfig config{.train = "folder:" + folder.path(), .val_fraction = 0.2};
  const DataSplits splits = open_data(config);
  const auto train = name_set(*splits.train), val = name_set(*splits.val);
  EXPECT_EQ(train.size() + val.size(), 400u);
  EXPECT_EQ(val.size(), 79u);
  for (const std::string& name : val) EXPECT_FALSE(train.count(name));
  EXPECT_NE(all_notes(splits).find("20 % of folder:"), std::string::npos) << all_notes(splits);
  EXPECT_NE(all_notes(splits).find(strf("%zu samples", val.size())), std::string::npos);
  // An image that is added moves no other.
  folder.file("class 0/new.png", png(0));
  for (const std::string& name : name_set(*open_data(config).val))
    EXPECT_TRUE(val.count(name) || name == "class 0/new.png");
}

// A run that a later version resumes or evaluates must find its own split again: its samples, computed
// independently.
TEST(OpenData, TheSplitIsTheSameForEver) {
  const DataFolder folder;
  fill(folder, "", {200, 200});
  const std::string spec = "folder:" + folder.path();
  EXPECT_EQ(
      name_set(*open_data({.train = spec, .val_fraction = 0.02}).val),
      (std::set<std::string>{"class 0/33.png", "class 0/35.png", "class 0/88.png", "class 0/134.png",
                             "class 0/157.png", "class 1/11.png", "class 1/25.png", "class 1/77.png",
                             "class 1/81.png", "class 1/93.png", "class 1/101.png", "class 1/177.png"}));
}

// The split is by name alone, so a class of a few images may have none in it.
TEST(OpenData, ClassesWithoutValidationAreSaid) {
  const DataFolder folder;
  fill(folder, "", {200, 1, 200});
  const std::string spec = "folder:" + folder.path();
  const DataSplits splits = open_data({.train = spec, .val_fraction = 0.1});
  ASSERT_EQ(class_counts(*splits.val)[1], 0) << "another name would be needed here";
  EXPECT_NE(all_notes(splits).find("1 of 3 classes have no sample in it, as \"class 1\""), std::string::npos)
      << all_notes(splits);
  folder.folder("class 9");
  EXPECT_NE(all_notes(open_data({.train = spec, .val_fraction = 0.1})).find("1 of 4 classes have no sample"),
            std::string::npos)
      << "one without any image is not missed";
  std::filesystem::remove_all(folder.path("class 9"));
  std::filesystem::remove_all(folder.path("class 1"));
  EXPECT_EQ(all_notes(open_data({.train = spec, .val_fraction = 0.1})).find("no sample"), std::string::npos);
}

TEST(OpenData, WhereValidationComesFrom) {
  const DataFolder own, other;
  fill(own, "train/", {3, 3});
  fill(own, "val/", {0, 2});
  fill(other, "", {0, 1});
  const std::string spec = "folder:" + own.path();
  EXPECT_EQ(open_data({.train = spec}).val->size(), 2);
  const DataSplits named = open_data({.train = spec, .val = "folder:" + other.path()});
  EXPECT_EQ(named.train->size(), 6);
  ASSERT_EQ(named.val->size(), 1);
  EXPECT_EQ(named.val->classes(), named.train->classes());
  EXPECT_EQ(named.val->labels(0)[0], 1);  // by name, though it is the only class there
  EXPECT_EQ(open_data({.train = "folder:" + other.path(), .val_fraction = 0}).val, nullptr);
  expect_refused("data.val_fraction=0.1 of 1 images",
                 [&] { open_data({.train = "folder:" + other.path()}); });
  fill(other, "", {0, 0, 1});
  expect_refused("\"class 2\" is not among",
                 [&] { open_data({.train = spec, .val = "folder:" + other.path()}); });
}

TEST(OpenData, FractionIsStratifiedAndNested) {
  const DataFolder folder;
  fill(folder, "train/", {40, 10, 1});
  fill(folder, "val/", {4, 4, 4});
  DataConfig config{.train = "folder:" + folder.path(), .fraction = 0.5};
  const DataSplits half = open_data(config);
  EXPECT_EQ(class_counts(*half.train), (std::vector<int64_t>{20, 5, 1}));
  EXPECT_EQ(half.val->size(), 12);
  config.fraction = 0.25;
  const DataSplits quarter = open_data(config);
  EXPECT_EQ(class_counts(*quarter.train), (std::vector<int64_t>{10, 3, 1}));
  const auto larger = name_set(*half.train);
  for (const std::string& name : name_set(*quarter.train)) EXPECT_TRUE(larger.count(name));
  EXPECT_NE(all_notes(quarter).find("14 of 51 samples"), std::string::npos) << all_notes(quarter);
}

TEST(OpenData, SomeClassesUnderOtherNames) {
  const DataFolder folder;
  fill(folder, "train/", {2, 3, 4});
  fill(folder, "val/", {1, 1, 1});
  const DataSplits splits = open_data(
      {.train = "folder:" + folder.path(), .classes = {"owl", "ape"}, .class_names = {"ape", "cow", "owl"}});
  for (const Dataset* data : {splits.train.get(), splits.val.get()})
    EXPECT_EQ(data->classes(), (Names{"ape", "owl"}));
  EXPECT_EQ(class_counts(*splits.train), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(splits.train->load(5, 0).pixels[0], 2);
  const std::string spec = "folder:" + folder.path();
  expect_refused("did you mean \"class 1\"", [&] { open_data({.train = spec, .classes = {"clas 1"}}); });
  expect_refused("2 names, the data has 3", [&] { open_data({.train = spec, .class_names = {"a", "b"}}); });
}

TEST(OpenData, ClassesOfSeveralLabels) {
  const DataFolder folder;
  folder.file("labels.csv", "filename,labels\n1.png,a;b\n2.png,b;c\n3.png,c\n4.png,\n");
  const auto all = std::shared_ptr<const Dataset>(open_dataset("folder:" + folder.path(), Part::kTrain));
  const auto some = keep_classes(all, {"c", "b"});
  EXPECT_EQ(some->size(), 4);
  EXPECT_EQ(class_counts(*some), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(stratified_share(*all, 0.5).size(), 4u);
  EXPECT_EQ(stratified_share(*all, 1).size(), 4u);
}

TEST(OpenData, Validation) {
  const std::pair<DataConfig, std::string> cases[] = {
      {{}, "data.train is empty"},
      {{.train = "x", .val_fraction = 1}, "data.val_fraction is 1"},
      {{.train = "x", .val_fraction = NAN}, "data.val_fraction is nan"},
      {{.train = "x", .fraction = 0}, "data.fraction is 0"},
      {{.train = "x", .fraction = 1.1}, "data.fraction is 1.1"},
      {{.train = "x", .classes = {"a", "a"}}, "\"a\" twice"},
      {{.train = "x", .class_names = {""}}, "an empty name"},
  };
  for (const auto& [config, refusal] : cases) {
    SCOPED_TRACE(refusal);
    expect_refused(refusal, [&c = config] { validate(c); });
  }
}

TEST(Dataset, ClassWeightsAverageOneOverTheSamples) {
  const DataFolder folder;
  fill(folder, "", {1, 4, 0});
  folder.folder("class 2");
  const auto data = open_dataset("folder:" + folder.path(), Part::kTrain);
  const std::vector<double> weights = class_weights(*data);
  ASSERT_EQ(weights.size(), 3u);
  EXPECT_DOUBLE_EQ(weights[0], 2.5);
  EXPECT_DOUBLE_EQ(weights[1], 0.625);
  EXPECT_EQ(weights[2], 0);
}

TEST(Dataset, FingerprintSeesNamesLabelsAndClasses) {
  const DataFolder folder;
  fill(folder, "", {3, 3});
  const auto print = [&] { return open_dataset("folder:" + folder.path(), Part::kTrain)->fingerprint(); };
  std::set<uint64_t> seen = {print()};
  EXPECT_EQ(print(), *seen.begin());
  std::filesystem::rename(folder.path("class 0/0.png"), folder.path("class 0/7.png"));
  EXPECT_TRUE(seen.insert(print()).second) << "renamed";
  std::filesystem::rename(folder.path("class 0/7.png"), folder.path("class 1/7.png"));
  EXPECT_TRUE(seen.insert(print()).second) << "moved";
  std::filesystem::remove(folder.path("class 1/7.png"));
  EXPECT_TRUE(seen.insert(print()).second) << "removed";
  folder.folder("class 2");
  EXPECT_TRUE(seen.insert(print()).second) << "a class more";
}

}  // namespace
}  // namespace vitrail
