// Formats at their limits, what is said of data that is wrong, and the notes on what was decided.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "data/dataset_files.h"
#include "data/datasets/file_formats.h"
#include "data/datasets/find_files.h"
#include "data/datasets/packed.h"
#include "data/datasets/tar_reader.h"
#include "data/datasets/tar_samples.h"
#include "data/fake_dataset.h"
#include "data/overlap.h"
#include "data/said_by.h"

namespace vitrail {
namespace {

using namespace test;
using namespace std::string_literals;
using Names = std::vector<std::string>;

std::string opened(const std::string& spec, Part part = Part::kTrain) {
  return said_by([&] { open_dataset(spec, part); });
}

TEST(DatasetFacts, WordsForDataThatAreNone) {
  const std::string known =
      "(cifar10:DIR, cifar100:DIR, folder:DIR, idx:DIR, packed:FILE, synthetic:CxHxWxCLASSESxCOUNT, "
      "tar:GLOB)";
  EXPECT_EQ(opened("images"), "config: expected data as FORMAT:PLACE " + known + ", found \"images\"");
  EXPECT_EQ(opened("nothing:x"), "config: expected data as FORMAT:PLACE " + known + ", found \"nothing:x\"");
  EXPECT_EQ(error_of([] { open_dataset("nothing:x", Part::kTrain); }).hint(), "");
  EXPECT_EQ(opened("tar:"), "config: tar: names no place: expected tar:GLOB");
  const DataFolder folder;
  folder.file("a/1.png", png(1));
  const Error none = error_of([&] { open_dataset("folder:" + folder.path(), Part::kVal); });
  EXPECT_EQ(none.kind(), ErrorKind::kData);
  EXPECT_EQ(none.message(), "folder:" + folder.path() + " has no validation part of its own");
  EXPECT_EQ(none.hint(), "name one (data.val), or let training split one off (data.val_fraction)");
  std::filesystem::remove(folder.path("a/1.png"));
  EXPECT_EQ(opened("folder:" + folder.path()), "data: folder:" + folder.path() + " holds no samples");
  EXPECT_EQ(
      error_of([&] { open_dataset("folder:" + folder.path(), Part::kTrain); }).hint(),
      "check the path: folder: takes images in a folder a class, as DIR/CLASS/NAME.jpg (or .jpeg, .png, "
      ".webp), at the top or below train and val; or images and labels.csv");
  std::filesystem::remove(folder.path("a"));
  EXPECT_EQ(opened("folder:" + folder.path()),
            "data: " + folder.path() +
                ": expected a folder of images a class, or images and labels.csv; found neither");
  folder.file("\xff/1.png", png(1));
  EXPECT_EQ(opened("folder:" + folder.path()),
            "data: folder:" + folder.path() + ": the class name \"\\xff\" is not UTF-8");
}

TEST(DatasetFacts, SyntheticShapesAtTheirLimits) {
  for (const char* good :
       {"synthetic:1x8192x1x1x1", "synthetic:3x1x8192x1x1", "synthetic:1x1x1x1x1099511627776"})
    EXPECT_EQ(opened(good), "") << good;
  for (const char* bad : {"synthetic:1x8193x1x1x1", "synthetic:3x1x8193x1x1",
                          "synthetic:1x1x1x1x1099511627777", "synthetic:0x1x1x1x1", "synthetic:1x0x1x1x1",
                          "synthetic:1x1x-1x1x1", "synthetic:1x1x1x0x1", "synthetic:1.1.1.1.1"})
    EXPECT_EQ(opened(bad).substr(0, 40), "config: expected synthetic:CxHxWxCLASSES") << bad;
  EXPECT_EQ(open_dataset("synthetic:1x2x3x2x4", Part::kVal)->size(), 1) << "a fifth, but one at least";
  const auto val = open_dataset("synthetic:1x2x3x4x10", Part::kVal),
             all = open_dataset("synthetic:1x2x3x4x10", Part::kAll);
  EXPECT_EQ(val->sample_name(1), "synthetic#11");
  EXPECT_EQ(val->labels(1)[0], 3);
  EXPECT_EQ(val->load(1, 0).pixels, all->load(11, 0).pixels);
  EXPECT_EQ(val->pixel_shape(), (PixelShape{2, 3, 1}));
  EXPECT_EQ(val->stored_bytes(0), 6u);
  EXPECT_EQ(val->classes(), (Names{"0", "1", "2", "3"}));
}

TEST(DatasetFacts, CifarsOwnNamesAndFiles) {
  const DataFolder folder;
  EXPECT_EQ(opened("cifar100:" + folder.path()),
            "data: cifar100: found neither train.bin nor train in " + folder.path() +
                ", nor in cifar-100-binary or cifar-100-python below it");
  EXPECT_EQ(opened("cifar10:" + folder.path(), Part::kVal).substr(0, 47),
            "data: cifar10: found neither test_batch.bin nor");
  for (int i = 1; i <= 5; ++i) folder.file(strf("data_batch_%d.bin", i), cifar_record("\1", i));
  EXPECT_EQ(
      open_dataset("cifar10:" + folder.path(), Part::kTrain)->classes(),
      (Names{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}));
  folder.file("batches.meta.txt", "a\nb\n");
  EXPECT_EQ(opened("cifar10:" + folder.path()),
            "data: " + folder.path("batches.meta.txt") + ": 2 names, expected 10");
  std::filesystem::remove(folder.path("batches.meta.txt"));
  std::string many;
  for (int i = 0; i < 300; ++i) many += cifar_record(std::string(1, static_cast<char>(i % 10)), i);
  folder.file("data_batch_5.bin", many);
  const auto data = open_dataset("cifar10:" + folder.path(), Part::kTrain);
  ASSERT_EQ(data->size(), 304);
  EXPECT_EQ(data->labels(4 + 299)[0], 9) << "read 256 at a time";
  EXPECT_EQ(data->load(4 + 257, 0).pixels[0], 1);
  folder.file("data_batch_5.bin", many + cifar_record("\n", 0));
  EXPECT_EQ(opened("cifar10:" + folder.path()), "data: sample 300 has the label 10, expected 0 to 9");
  EXPECT_EQ(data->pixel_shape(), (PixelShape{32, 32, 3}));
}

TEST(DatasetFacts, IdxNamesTheMissingPart) {
  const DataFolder folder;
  EXPECT_EQ(opened("idx:" + folder.path()),
            "data: " + folder.path() + " holds no train-images-idx3-ubyte, gzipped or not");
  folder.file("train-images-idx3-ubyte", idx_file({1, 1, 1}, "a"));
  EXPECT_EQ(opened("idx:" + folder.path()), "data: " + folder.path("train-images-idx3-ubyte") +
                                                " has no file of labels beside it (train-labels-idx1-ubyte)");
  folder.file("train-labels-idx1-ubyte", idx_file({1}, "\0"s));
  folder.file("test-images-idx3-ubyte", idx_file({2, 1, 1}, "bc"));
  folder.file("test-labels-idx1-ubyte", idx_file({2}, "\0\0"s));
  EXPECT_EQ(open_dataset("idx:" + folder.path(), Part::kVal)->sample_name(1), "test#1");
  EXPECT_EQ(
      said_by([&] { open_idx_bytes(std::make_unique<MemoryBytes>("m", idx_file({1}, "ab")), false, 1); }),
      "data: the header speaks of 1 bytes, 2 follow it");
  EXPECT_EQ(
      said_by([&] { open_idx_bytes(std::make_unique<MemoryBytes>("m", idx_file({1}, "a")), false, 3); }),
      "data: starts with 0x00000801, expected 0x00000803 (3 extents of bytes)");
  EXPECT_EQ(error_of([] { open_dataset("idx:/nowhere/at/all", Part::kTrain); }).hint(),
            "check the path: idx: takes the folder that holds the files");
}

TEST(DatasetFacts, FoldersForValidationInTheirOrder) {
  for (const auto& names :
       {Names{"val", "valid"}, Names{"valid", "validation"}, Names{"validation", "test"}}) {
    const DataFolder folder;
    folder.file("train/a/1.png", png(1));
    for (const std::string& name : names) folder.file(name + "/a/2.png", png(1));
    EXPECT_EQ(open_dataset("folder:" + folder.path(), Part::kVal)->sample_name(0), names[0] + "/a/2.png");
  }
  const DataFolder folder;
  folder.file("train/labels.csv", "filename,label\n1.png,a\n");
  folder.file("val/labels.csv", "filename,labels\n1.png,a\n");
  EXPECT_EQ(opened("folder:" + folder.path()),
            "data: " + folder.path() + ": parts with one label an image and with several");
  folder.file("val/labels.csv", "filename,label\n\n1.png,b\n");
  const auto val = open_dataset("folder:" + folder.path(), Part::kVal);
  EXPECT_EQ(val->classes(), (Names{"a", "b"}));
  EXPECT_EQ(val->sample_name(0), "val/1.png");
  EXPECT_EQ(val->stored_bytes(0), 0u) << "it is not there";
  folder.file("val/1.png", "123");
  EXPECT_EQ(val->stored_bytes(0), 3u);
}

TEST(DatasetFacts, TarMembersAtTheirLimits) {
  const auto walk = [](const std::string& bytes) {
    return said_by([&] {
      const MemoryBytes file("memory", bytes);
      TarReader reader(file);
      while (reader.next()) {
      }
    });
  };
  const auto named = [&](size_t length) {
    return walk(tar_file({{"L", std::string(length, 'n') + '\0', 'L'}, {"x", "1"}}));
  };
  EXPECT_EQ(named(4096), "");
  EXPECT_EQ(named(4097), "data: a name of 4097 bytes, expected 1 to 4096");
  EXPECT_EQ(walk(tar_file({{"L", std::string(1 << 20, '\0'), 'g'}, {"x", "1"}})), "");
  EXPECT_EQ(walk(tar_file({{"L", std::string((1 << 20) + 1, '\0'), 'g'}, {"x", "1"}})),
            "data: an extension header of 1048577 bytes");
  EXPECT_EQ(walk(tar_file({{"K", "target", 'K'}, {"x", "1"}})), "");
  EXPECT_EQ(walk(tar_member({"g", std::string(512, '\0'), 'g'})), "") << "an extension at the very end";
  EXPECT_NE(
      walk(tar_file({{"x", "1", '0', "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff"s}})).find("cut short"),
      std::string::npos)
      << "2^63 - 1 is a size";
  EXPECT_EQ(index_tar(MemoryBytes("memory", tar_file({{"a./c.png", "x"}, {"a./c.cls", "1"}}))).size(), 1u);
  EXPECT_EQ(parse_cls(" 12\n").numbers, std::vector<int64_t>{12});
  EXPECT_EQ(parse_cls("12b").names, Names{"12b"});
  EXPECT_EQ(parse_cls("9223372036854775807").numbers, std::vector<int64_t>{INT64_MAX});
  EXPECT_EQ(parse_cls("9223372036854775808").names, Names{"9223372036854775808"}) << "too large a number";
  EXPECT_EQ(parse_json_label(R"({"labels": ["a", "b"], "cls": 3})").names, (Names{"a", "b"}));
  EXPECT_TRUE(parse_json_label(R"({"labels": ["a"]})").several);
  EXPECT_FALSE(parse_json_label(R"({"label": 1, "labels": [2]})").several) << "the first key counts";
  // A .cls decides, wherever it stands.
  for (const auto& entries :
       {std::vector<TarEntry>{{"a.png", "x"}, {"a.cls", "1"}, {"a.json", R"({"label": 2})"}},
        std::vector<TarEntry>{{"a.json", R"({"label": 2})"}, {"a.cls", "1"}, {"a.png", "x"}}})
    EXPECT_EQ(index_tar(MemoryBytes("memory", tar_file(entries))).at(0).label.numbers,
              std::vector<int64_t>{1});
  EXPECT_EQ(said_by([&] {
              index_tar(MemoryBytes("memory",
                                    tar_file({{"a.png", "x"}, {"a.cls", std::string((1 << 20) + 1, '1')}})));
            }),
            "data: a label of 1048577 bytes");
}

TEST(DatasetFacts, LabelsOfTarFilesBelowTheMostClasses) {
  const DataFolder folder;
  folder.file("a.tar", tar_file({{"0.png", "x"}, {"0.cls", "1000000"}}));
  EXPECT_EQ(opened("tar:" + folder.path("a.tar")),
            "data: " + folder.path("a.tar") + ": the label 1000000, expected 0 to 999999");
}

TEST(DatasetFacts, AnImageMayHaveSixtyFourMebibytes) {
  const DataFolder folder;
  folder.file("a/1.png", "");
  std::filesystem::resize_file(folder.path("a/1.png"), (64 << 20) + 1);
  EXPECT_EQ(said_by([&] { open_dataset("folder:" + folder.path(), Part::kTrain)->load(0, 0); }),
            "data: " + folder.path("a/1.png") + " has 67108865 bytes, at most 67108864 are read");
}

TEST(DatasetFacts, RangesOfShards) {
  EXPECT_EQ(expand_braces("{5..5}"), Names{"5"});
  EXPECT_EQ(expand_braces("{0..999999}").size(), 1'000'000u);
  EXPECT_EQ(said_by([] { expand_braces("{0..1000000}"); }),
            "config: {0..1000000}: expected a range of rising numbers, as {000..146}");
  EXPECT_EQ(expand_braces("{0..999}{0..999}").size(), 1'000'000u);
  EXPECT_EQ(said_by([] { expand_braces("{0..999}{0..1000}"); }),
            "config: \"{0..999}{0..1000}\" stands for more than 1000000 files");
  EXPECT_EQ(expand_braces("a{,b}"), (Names{"a", "ab"}));
}

TEST(DatasetFacts, PackedNamesAtTheirLimit) {
  const DataFolder folder;
  const auto said = [&](size_t length) {
    return said_by([&] {
      PackWriter writer(folder.path("p"), {"a"}, false);
      writer.add(std::string(length, 'n'), std::vector<int32_t>{0}, Part::kTrain, PackedImage::of_file("x"));
      writer.finish();
      EXPECT_EQ(open_dataset("packed:" + folder.path("p"), Part::kTrain)->sample_name(0).size(), length);
    });
  };
  EXPECT_EQ(said(4096), "");
  EXPECT_NE(said(4097).find("the name or the image is too long to be packed"), std::string::npos);
  FakeDataset data(3, 2);
  const PackedImage small = packed(data, 1, 5);
  EXPECT_TRUE(small.pixels);
  EXPECT_EQ(small.height, 5);
  EXPECT_EQ(small.bytes.size(), 75u);
  EXPECT_EQ(packed(data, 1, 0).bytes.size(), data.load(1, 0).pixels.size());
}

TEST(DatasetFacts, NotesOfWhatWasDecided) {
  const auto notes = [](const DataConfig& config) { return open_data(config).notes; };
  const DataFolder own, other;
  own.file("train/a/1.png", png(1));
  own.file("train/b/2.png", png(1));
  own.file("val/b/3.png", png(1));
  other.file("b/1.png", png(1));
  const std::string spec = "folder:" + own.path(), second = "folder:" + other.path();
  EXPECT_EQ(notes({.train = spec}),
            (Names{"validation: the data's own part of " + spec,
                   "training on 2 images of 2 classes, validating on 1 images of 2 classes"}));
  EXPECT_EQ(notes({.train = spec, .val = second})[0], "validation: all of " + second);
  EXPECT_EQ(notes({.train = second, .val_fraction = 0}),
            (Names{"validation: none; the data has no such part and data.val_fraction is 0",
                   "training on 1 images of 1 classes"}));
  EXPECT_EQ(notes({.train = spec, .val = spec})[0], "validation: the validation part of " + spec);
  other.file("labels.csv", "filename,labels\nb/1.png,b\n");
  EXPECT_EQ(said_by([&] { open_data({.train = spec, .val = second}); }),
            "data: the training data has one label an image, the validation data several");
  EXPECT_EQ(said_by([&] { open_data({.train = spec, .val = second, .classes = {"c"}}); }).substr(0, 5),
            "data:");
  EXPECT_EQ(notes({.train = second, .val_fraction = 0})[1],
            "training on 1 images of 1 classes (several labels an image)");
}

TEST(DatasetFacts, ClassesWithoutAnyImageAreNoData) {
  const DataFolder folder;
  folder.file("train/a/1.png", png(1));
  folder.folder("train/empty");
  folder.file("val/a/2.png", png(1));
  EXPECT_EQ(said_by([&] { open_data({.train = "folder:" + folder.path(), .classes = {"empty"}}); }),
            "data: no image belongs to the classes of data.classes");
}

TEST(OverlapFacts, SharesOfWhatWasCompared) {
  EXPECT_EQ((Overlap{.looked_at = 0}.share()), 0);
  EXPECT_EQ((Overlap{.looked_at = 100, .found = 10, .one_in = 4}.share()), 0.4);
  EXPECT_EQ((Overlap{.looked_at = 100, .found = 50, .one_in = 4}.share()), 1);
  FakeDataset data(100, 3);
  const std::vector<ImageMark> marks = marks_of(data, 4);
  ASSERT_EQ(marks.size(), 4u);
  // The centres of four equal parts.
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(marks[i].key, contents_key(data, static_cast<int64_t>(25 * i + 12)).value());
}

}  // namespace
}  // namespace vitrail
