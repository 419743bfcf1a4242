// The folder format: one folder per class, parts, label sheets, and files that do not belong.
#include <algorithm>
#include <ctime>

#include "base/file.h"
#include "data/dataset.h"
#include "data/datasets/file_formats.h"
#include "data/datasets/find_files.h"
#include "dataset_files.h"
#include "source_root.h"

namespace vitrail {
namespace {

using namespace test;

std::vector<std::string> names_of(const Dataset& data) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < data.size(); ++i) names.push_back(data.sample_name(i));
  return names;
}

using Names = std::vector<std::string>;

TEST(Folder, ClassesInByteOrder) {
  const DataFolder folder;
  for (const char* name :
       {"b/2.png", "b/1.PNG", "Z/x.png", "a/deep/er/3.png", "a/notes.txt", "a/.hidden.png", "c/readme"})
    folder.file(name, png(static_cast<uint8_t>(name[2])));
  folder.file("stray.png", png(0));
  const auto data = open_dataset("folder:" + folder.path(), Part::kTrain);
  EXPECT_EQ(data->classes(), (Names{"Z", "a", "b", "c"}));
  EXPECT_EQ(names_of(*data), (Names{"Z/x.png", "a/deep/er/3.png", "b/1.PNG", "b/2.png"}));
  EXPECT_EQ(data->labels(3)[0], 2);
  EXPECT_EQ(data->load(3, 0).pixels[0], '2');
  EXPECT_TRUE(data->encoded(0)->starts_with("\x89PNG"));
  EXPECT_FALSE(data->multi_label());
  EXPECT_EQ(open_part_if_any("folder:" + folder.path(), Part::kVal), nullptr);
}

TEST(Folder, PartsShareTheirClasses) {
  const DataFolder folder;
  for (const char* name : {"train/a/1.png", "train/b/2.png", "train/c/3.png", "val/b/4.png", "test/d/5.png"})
    folder.file(name, png(1));
  const std::string spec = "folder:" + folder.path();
  const auto train = open_dataset(spec, Part::kTrain), val = open_dataset(spec, Part::kVal);
  EXPECT_EQ(train->classes(), (Names{"a", "b", "c", "d"}));
  EXPECT_EQ(val->classes(), train->classes());
  EXPECT_EQ(names_of(*val), (Names{"val/b/4.png"}));
  EXPECT_EQ(val->labels(0)[0], 1);
  EXPECT_EQ(open_dataset(spec, Part::kAll)->size(), 5);
}

TEST(Folder, AClassMayBeCalledTrain) {
  const DataFolder folder;
  for (const char* name : {"train/1.png", "bus/2.png"}) folder.file(name, png(1));
  EXPECT_EQ(open_dataset("folder:" + folder.path(), Part::kTrain)->classes(), (Names{"bus", "train"}));
}

TEST(Folder, LinkedClassFoldersAreFollowedAndLoopsAreNot) {
  const DataFolder folder;
  folder.file("real/1.png", png(1));
  folder.folder("data/cat");
  std::filesystem::create_directory_symlink(folder.path("real"), folder.path("data/dog"));
  std::filesystem::create_directory_symlink("..", folder.path("data/cat/up"));
  const auto data = open_dataset("folder:" + folder.path("data"), Part::kTrain);
  EXPECT_EQ(names_of(*data), (Names{"dog/1.png"}));
}

TEST(Folder, LoadingNamesWhatIsWrong) {
  const DataFolder folder;
  const std::string whole = png(9, 40);
  folder.file("a/cut.png", whole.substr(0, whole.size() / 2));
  folder.file("a/empty.png", "");
  folder.file("a/page.jpg", "<!DOCTYPE html><html></html>");
  folder.folder("a/place.jpg");
  std::filesystem::create_symlink("loop.jpg", folder.path("a/loop.jpg"));
  std::filesystem::create_symlink("gone.jpg", folder.path("a/link.jpg"));
  folder.file("a/old.bmp", "BM0000");
  const auto data = open_dataset("folder:" + folder.path(), Part::kTrain);
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"a/cut.png", "ends too early"},  {"a/empty.png", "empty file"}, {"a/link.jpg", "No such file"},
      {"a/loop.jpg", "symbolic links"}, {"a/old.bmp", "found a BMP"},  {"a/page.jpg", "HTML page"},
      {"a/place.jpg", "is a folder"}};
  ASSERT_EQ(data->size(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    EXPECT_EQ(data->sample_name(index), expected[i].first);
    expect_refused(expected[i].first, [&] { data->load(index, 0); });
    expect_refused(expected[i].second, [&] { data->load(index, 0); });
  }
}

TEST(Folder, ATruncatedJpegIsRefused) {
  const DataFolder folder;
  const std::string whole = read_file(VT_SOURCE_DIR "/examples/images/rocket.jpg", 1 << 20);
  folder.file("a/whole.jpg", whole);
  folder.file("a/cut.jpg", whole.substr(0, whole.size() * 2 / 3));
  const auto data = open_dataset("folder:" + folder.path(), Part::kTrain);
  expect_refused("cut short", [&] { data->load(0, 0); });
  EXPECT_NO_THROW(data->load(1, 0));
}

TEST(Folder, SheetOfLabels) {
  const DataFolder folder;
  for (const char* name : {"1.png", "2.png", "sub/3.png"})
    folder.file(name, png(static_cast<uint8_t>(name[0])));
  const struct {
    std::string csv;
    bool multi;
    Names classes;
    std::vector<std::vector<int32_t>> labels;
  } cases[] = {
      {"filename,label\n1.png,dog\n2.png,cat\nsub/3.png,dog\n", false, {"cat", "dog"}, {{1}, {0}, {1}}},
      {"filename,labels\r\n1.png,\"sun; sea\"\r\n2.png,\r\nsub/3.png,sea;sea\r\n",
       true,
       {"sea", "sun"},
       {{0, 1}, {}, {0}}},
      {"\xEF\xBB\xBF"
       "filename,wet,\"a, b\",never\n1.png,1,1,0\n2.png,0,0,0\nsub/3.png,1,0,0",
       true,
       {"a, b", "never", "wet"},
       {{0, 2}, {}, {2}}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.csv);
    folder.file("labels.csv", c.csv);
    const auto data = open_dataset("folder:" + folder.path(), Part::kTrain);
    ASSERT_EQ(data->size(), 3);
    EXPECT_EQ(data->multi_label(), c.multi);
    EXPECT_EQ(data->classes(), c.classes);
    for (size_t i = 0; i < 3; ++i) {
      const auto labels = data->labels(static_cast<int64_t>(i));
      EXPECT_EQ(std::vector<int32_t>(labels.begin(), labels.end()), c.labels[i]);
    }
    EXPECT_EQ(data->load(2, 0).pixels[0], 's');
  }
}

TEST(Folder, SheetRules) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "expected the header"},
      {"name,label\n", "expected the header"},
      {"filename\n", "expected the header"},
      {"filename,a,a\n", "twice"},
      {"filename,a,\n", "not at all"},
      {"filename,label\n1.png\n", "line 2: 1 cells"},
      {"filename,label\n1.png,\n", "line 2: no label"},
      {"filename,a,b\nx.png,1,0\n\n1.png,1,2\n", "line 4, column \"b\""},
      {"filename,label\n\"1.png,a\n", "never closed"},
      {"filename,label\n\"1\"2.png,a\n", "after a closing quote"},
      {"filename,label\n../1.png,a\n", "below the folder"},
      {"filename,label\na/../../1.png,a\n", "below the folder"},
      {"filename,label\n/etc/passwd,a\n", "below the folder"},
      {"filename,label\n\xff.png,a\n", "not UTF-8"},
      {"filename,label\n1.png,a\n2.png,a\n1.png,b\n", "line 4: \"1.png\" has other labels in line 2"},
  };
  for (const auto& [csv, refusal] : cases) {
    SCOPED_TRACE(csv);
    expect_refused(refusal, [&text = csv] { parse_labels(text); });
  }
}

TEST(LabelsCsv, AFileMayBeNamedTwiceWithTheSameLabels) {
  EXPECT_EQ(parse_labels("filename,label\n1.png,a\n1.png,a\n").rows.size(), 2u);
}

TEST(LabelsCsv, ACellOfManyLabelsIsReadInOnePass) {
  std::string csv = "filename,labels\na.png,";
  constexpr size_t kLabels = 200'000;
  for (size_t i = 0; i < kLabels; ++i) csv += strf("%zu;%zu;", i, i);
  const std::clock_t start = std::clock();
  const LabelSheet sheet = parse_labels(csv);
  EXPECT_LT(std::clock() - start, 10 * CLOCKS_PER_SEC);  // of the processor: a busy host changes nothing
  ASSERT_EQ(sheet.rows.size(), 1u);
  ASSERT_EQ(sheet.rows[0].labels.size(), kLabels) << "each once";
  EXPECT_EQ(sheet.rows[0].labels[kLabels - 1], std::to_string(kLabels - 1)) << "in their order";
}

TEST(Folder, ManyFiles) {
  const bool all = std::getenv("VITRAIL_TEST_LONG") != nullptr;
  const int classes = 20, each = all ? 50'000 : 250;
  const DataFolder folder;
  for (int c = 0; c < classes; ++c) {
    folder.folder(strf("class-%02d", c));
    for (int i = 0; i < each; ++i) std::ofstream(folder.path(strf("class-%02d/image-%06d.jpg", c, i)));
  }
  const auto data = open_dataset("folder:" + folder.path(), Part::kTrain);
  EXPECT_EQ(data->size(), classes * each);
  EXPECT_EQ(data->sample_name(each), "class-01/image-000000.jpg");
  EXPECT_EQ(class_counts(*data), std::vector<int64_t>(classes, each));
}

}  // namespace
}  // namespace vitrail
