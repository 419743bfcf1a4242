#include "data/overlap.h"

#include "base/rng.h"
#include "data/dataset_files.h"
#include "data/datasets/view.h"
#include "data/fake_dataset.h"

namespace vitrail {
namespace {

std::shared_ptr<test::FakeDataset> images(int64_t count) {
  return std::make_shared<test::FakeDataset>(count, 3);
}

TEST(Overlap, CountsEveryImageOfASmallSet) {
  const auto all = images(60);
  const auto some = take_samples(all, {0, 7, 59});
  EXPECT_EQ(overlap_with(*some, *all).found, 3);
  EXPECT_EQ(overlap_with(*some, *all).share(), 1);
  const Overlap found = overlap_with(*all, *some);
  EXPECT_EQ(found.looked_at, 60);
  EXPECT_EQ(found.found, 3);
  EXPECT_DOUBLE_EQ(found.share(), 0.05);
}

TEST(Overlap, LooksAtALargeSetEvenly) {
  const auto all = images(500);
  std::vector<int64_t> first, last;
  for (int64_t i = 0; i < 250; ++i) first.push_back(i), last.push_back(250 + i);
  for (const auto& part : {first, last}) {
    const Overlap found = overlap_with(*all, *take_samples(all, part), 100);
    EXPECT_EQ(found.looked_at, 100);
    EXPECT_EQ(found.found, 50);
  }
}

// The candidates take too much to read, so a part of them stands for all.
TEST(Overlap, OfMoreThanCanBeReadAnEvenShareIsCompared) {
  const auto all = images(500);
  const std::vector<ImageMark> marks = marks_of(*all, 200);
  ASSERT_EQ(marks.size(), 200u);
  all->loads = 0;
  const Overlap found = find_marks(marks, *all, {.bytes = uint64_t{4} << 20});
  EXPECT_GT(found.one_in, 1);
  EXPECT_LE(all->loads, 500 / found.one_in + 1);
  EXPECT_NEAR(found.share(), 1, 0.3);
}

TEST(Overlap, ImagesOfOtherSizesAreNotRead) {
  const auto all = images(50);
  all->loads = 0;
  EXPECT_EQ(find_marks({{.bytes = 12345, .key = 1}}, *all).found, 0);
  EXPECT_EQ(all->loads, 0);
}

// An image that was marked twice counts twice where it is found; one that is there twice is found once.
TEST(Overlap, TwinsCountAsOftenAsTheyWereMarked) {
  const auto all = images(20), twins = images(20);
  const auto some = take_samples(twins, {3, 3, 5});
  EXPECT_EQ(overlap_with(*some, *all).looked_at, 3);
  EXPECT_EQ(overlap_with(*some, *all).found, 3);
  EXPECT_EQ(overlap_with(*all, *some).found, 2);
}

// Ten images whose sizes nobody knows count as 64 KiB each.
TEST(Overlap, WhatJustFitsIsReadWhole) {
  const auto all = images(10);
  const uint64_t bytes = 10 * (uint64_t{64} << 10);
  const std::vector<ImageMark> marks = marks_of(*all, 10);
  EXPECT_EQ(find_marks(marks, *all, {.bytes = bytes + 1}).one_in, 1);
  EXPECT_EQ(find_marks(marks, *all, {.bytes = bytes}).one_in, 2);
}

TEST(Overlap, ImagesThatCannotBeReadAreNotFound) {
  const auto all = images(10), same = images(10);
  same->broken = {2, 5};
  EXPECT_EQ(overlap_with(*all, *same).found, 8);
  EXPECT_EQ(overlap_with(*same, *all).found, 8);
}

// Of a large set every third image is asked for its size.
TEST(Overlap, NoMoreImagesAreLookedAtThanAsked) {
  const auto all = images(90);
  const std::vector<ImageMark> marks = marks_of(*all, 90);
  all->loads = 0;
  const Overlap found = find_marks(marks, *all, {.images = 30});
  EXPECT_EQ(all->loads, 30);
  EXPECT_EQ(found.one_in, 3);
  EXPECT_EQ(found.found, 30);
  EXPECT_DOUBLE_EQ(found.share(), 1);
  EXPECT_EQ(find_marks(marks, *all, {.images = 89}).one_in, 2);
  EXPECT_EQ(find_marks(marks, *all, {.images = 90}).one_in, 1);
}

TEST(Overlap, WhatWasNotFoundIsReturned) {
  const auto all = images(10);
  const std::vector<ImageMark> marks = marks_of(*all, 10);
  const MarkSearch search = search_marks(marks, *take_samples(all, {0, 1, 2, 3, 4, 5, 6, 8}));
  EXPECT_EQ(search.overlap.found, 8);
  EXPECT_EQ(search.missing, (std::vector<ImageMark>{marks[7], marks[9]}));
}

// Files without a byte are all alike, and so may be files that were cut short: nobody has learned from them.
TEST(Overlap, EmptyAndBrokenFilesAreNoTrainingImages) {
  const test::DataFolder folder;
  for (const char* name : {"train", "val"}) {
    folder.file(strf("%s/a/empty.png", name), "");
    folder.file(strf("%s/a/half.png", name), test::png(3).substr(0, 40));
    folder.file(strf("%s/a/same.png", name), test::png(4));
    folder.file(strf("%s/b/other.png", name), test::png(*name == 't' ? 5 : 6));
  }
  const auto train = open_dataset("folder:" + folder.path("train"), Part::kAll);
  const auto val = open_dataset("folder:" + folder.path("val"), Part::kAll);
  const Overlap found = overlap_with(*val, *train);
  EXPECT_EQ(found.looked_at, 3) << "an empty file has no mark";
  EXPECT_EQ(found.found, 1);
  EXPECT_EQ(find_marks({{.bytes = 0, .key = name_key("")}}, *train).found, 0) << "of models that have one";
}

}  // namespace
}  // namespace vitrail
