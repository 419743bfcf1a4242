// What people are shown of data: statistics, samples drawn, tiles and their labels, letters, images of lists.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "data/dataset_files.h"
#include "data/fake_dataset.h"
#include "data/image_list.h"
#include "data/overlay.h"
#include "data/sheet.h"
#include "data/statistics.h"
#include "data/tiny_font.h"
#include "data/walk.h"

namespace vitrail {
namespace {

using test::DataFolder;
using test::error_of;
using test::FakeDataset;

Image pixels_of(int64_t height, int64_t width, int64_t channels, std::vector<uint8_t> pixels) {
  return {height, width, channels, std::move(pixels)};
}

TEST(ImageStatisticsFacts, MeansAndDeviationsOfPixels) {
  const ImageSums sums = sums_of(pixels_of(1, 2, 3, {1, 2, 3, 5, 6, 7}));
  EXPECT_EQ(sums.sum, (std::array<uint64_t, 3>{6, 8, 10}));
  EXPECT_EQ(sums.squares, (std::array<uint64_t, 3>{26, 40, 58}));
  EXPECT_EQ(sums.height, 1);
  EXPECT_EQ(sums.width, 2);
  ImageStatistics statistics;
  statistics.add(sums);
  const ImageSums grey = sums_of(pixels_of(2, 1, 1, {255, 255}));
  EXPECT_EQ(grey.sum, (std::array<uint64_t, 3>{510, 510, 510})) << "grey counts for every channel";
  EXPECT_EQ(grey.squares[2], 2u * 255 * 255);
  statistics.add(grey);
  EXPECT_EQ(statistics.count(), 2u);
  EXPECT_EQ(statistics.channels(), 3);
  ASSERT_EQ(statistics.mean().size(), 3u);
  // Of the first channel: 1, 5, 255, 255.
  EXPECT_DOUBLE_EQ(statistics.mean()[0], 516.0 / 4 / 255);
  EXPECT_NEAR(statistics.deviation()[0], std::sqrt((26 + 2.0 * 255 * 255) / 4 - 129.0 * 129) / 255, 1e-12);
  EXPECT_EQ(statistics.heights().max, 2);
  EXPECT_EQ(statistics.widths().min, 1);
}

TEST(SampleOf, DrawsByTheSeedAndSortsByClass) {
  FakeDataset data(50, 5);
  data.set_multi_label();
  data.set_labels(7, {});
  data.set_labels(8, {1, 4});
  const std::vector<int64_t> drawn = sample_of(data, 10, 3, "");
  EXPECT_EQ(drawn.size(), 10u);
  EXPECT_EQ(sample_of(data, 10, 3, ""), drawn);
  EXPECT_NE(sample_of(data, 10, 4, ""), drawn);
  const auto first = [&](int64_t i) { return data.labels(i).empty() ? 99 : data.labels(i)[0]; };
  for (size_t i = 1; i < drawn.size(); ++i)
    EXPECT_LT(std::pair(first(drawn[i - 1]), drawn[i - 1]), std::pair(first(drawn[i]), drawn[i]));
  EXPECT_EQ(sample_of(data, 100, 3, "").back(), 7) << "without a label it comes last";
  const std::vector<int64_t> fours = sample_of(data, 100, 3, "class4");
  EXPECT_EQ(fours.size(), 11u) << "4, 9, 14 to 49, and the second label of 8";
  EXPECT_EQ(fours.front(), 8);
  const Error unknown = error_of([&] { sample_of(data, 1, 0, "clas4"); });
  EXPECT_EQ(unknown.kind(), ErrorKind::kUsage);
  EXPECT_EQ(unknown.message(), "the data has no class \"clas4\"");
  EXPECT_EQ(error_of([&] { sample_of(data, 1, 0, "something else"); }).hint(),
            "vitrail data stats lists them");
}

TEST(Walk, GoesThroughInOrderPastWhatCannotBeRead) {
  ThreadPool pool(2);
  std::vector<std::pair<int64_t, int64_t>> checks;
  std::vector<int64_t> advanced, used, failed;
  const WalkHooks hooks{[&](int64_t done, int64_t total) { checks.emplace_back(done, total); },
                        [&](int64_t count) { advanced.push_back(count); }};
  in_order<int64_t>(
      70, pool, hooks,
      [](int64_t i) {
        if (i == 65) throw Error(ErrorKind::kData, "bad");
        return 10 * i;
      },
      [&](int64_t i, int64_t& result, const std::optional<Error>& error) {
        used.push_back(i);
        if (error)
          failed.push_back(i);
        else
          EXPECT_EQ(result, 10 * i);
      });
  EXPECT_EQ(checks, (std::vector<std::pair<int64_t, int64_t>>{{0, 70}, {64, 70}})) << "32 for each thread";
  EXPECT_EQ(advanced, (std::vector<int64_t>{64, 6}));
  EXPECT_EQ(failed, std::vector<int64_t>{65});
  ASSERT_EQ(used.size(), 70u);
  for (int64_t i = 0; i < 70; ++i) EXPECT_EQ(used[static_cast<size_t>(i)], i);
  const auto fails = [](int64_t) -> int64_t { throw Error(ErrorKind::kMemory, "full"); };
  const auto ignored = [](int64_t, int64_t&, const std::optional<Error>&) {};
  EXPECT_EQ(error_of([&] { in_order<int64_t>(1, pool, {}, fails, ignored); }).kind(), ErrorKind::kMemory);
}

TEST(Walk, ProblemsAreOneLineWithoutTheSamplesName) {
  Error error(ErrorKind::kData, "cut\nshort", "a hint");
  error.at("inner").at("cat/1.png").at("outer");
  EXPECT_EQ(problem_text(error, "cat/1.png"), "inner: outer: cut?short");
  EXPECT_EQ(problem_text(Error(ErrorKind::kData, "a\tb"), "x"), "a?b");
}

TEST(Sheet, TilesAndTheirLabels) {
  FakeDataset data(4, 3);
  data.set_multi_label();
  data.set_labels(1, {0, 2});
  data.set_labels(2, {});
  EXPECT_EQ(tile_label(data, 0, 1000), "class0");
  EXPECT_EQ(tile_label(data, 1, 1000), "class0 class2");
  EXPECT_EQ(tile_label(data, 1, 120), "class0 cla") << "12 pixels a letter";
  EXPECT_EQ(tile_label(data, 2, 1000), "");
  const Image wide = square_tile(pixels_of(2, 4, 1, {9, 1, 2, 9, 9, 3, 4, 9}), 2);
  EXPECT_EQ(wide.height, 2);
  EXPECT_EQ(wide.channels, 3);
  EXPECT_EQ(wide.pixels, (std::vector<uint8_t>{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4})) << "its middle";
  const DataFolder folder;
  write_samples(data, {0, 2}, folder.path());
  EXPECT_TRUE(std::filesystem::exists(folder.path("class0-fake_0.png")));
  EXPECT_TRUE(std::filesystem::exists(folder.path("none-fake_2.png")));
  EXPECT_EQ(load_image(folder.path("class0-fake_0.png")).pixels, data.load(0, 0).pixels);
}

// Dots of text at scale 1, rows from the top.
std::vector<std::string> drawn(std::string_view text, int64_t rows, int64_t columns) {
  Image image = Image::blank(rows, columns, 1);
  draw_tiny_text(text, 0, 0, 1, 200, image);
  std::vector<std::string> dots;
  for (int64_t y = 0; y < rows; ++y) {
    dots.emplace_back();
    for (int64_t x = 0; x < columns; ++x) dots.back() += image.row(y)[x] == 200 ? '#' : '.';
  }
  return dots;
}

TEST(TinyFontFacts, LettersAndDigits) {
  using Dots = std::vector<std::string>;
  EXPECT_EQ(drawn("4", 7, 6), (Dots{"...#..", "..##..", ".#.#..", "#..#..", "#####.", "...#..", "...#.."}));
  EXPECT_EQ(drawn("1", 7, 5), (Dots{"..#..", ".##..", "..#..", "..#..", "..#..", "..#..", ".###."}));
  EXPECT_EQ(drawn("g", 9, 5),
            (Dots{".....", ".....", ".####", "#...#", "#...#", "#...#", ".####", "....#", ".###."}))
      << "two rows lower";
  EXPECT_EQ(drawn("az", 7, 11), (Dots{"...........", "...........", ".###..#####", "....#....#.",
                                      ".####...#..", "#...#..#...", ".####.#####"}));
  EXPECT_EQ(drawn("? z", 7, 17)[2], "............#####") << "what the font lacks is a gap";
  EXPECT_EQ(drawn("A", 7, 5), Dots(7, "....."));
}

TEST(OverlayFacts, ColoursAreTheStopsAndMixedBetween) {
  const std::tuple<float, int, int, int> rows[] = {{0, 4, 4, 20},       {1.0f / 6, 58, 14, 96},
                                                   {0.5f, 190, 52, 85}, {5.0f / 6, 250, 176, 46},
                                                   {1, 253, 248, 176},  {1.0f / 12, 31, 9, 58}};
  for (const auto& [heat, red, green, blue] : rows) {
    const Colour colour = heat_colour(heat);
    EXPECT_NEAR(colour.red, red, 1) << heat;
    EXPECT_NEAR(colour.green, green, 1) << heat;
    EXPECT_NEAR(colour.blue, blue, 1) << heat;
  }
}

// One cell: the heat is the same everywhere. base = 0.55 (grey / 2 + own / 2), then
// base + (0.15 + 0.6 heat) (colour - 0.35 base).
TEST(OverlayFacts, PixelsAreBlendedWithTheirGrey) {
  const Image out = heat_overlay(pixels_of(1, 1, 3, {100, 200, 0}), std::vector<float>{0.5f}, 1, 1);
  const double grey = 0.299 * 100 + 0.587 * 200, own[] = {100, 200, 0}, heat[] = {190, 52, 85};
  for (size_t c = 0; c < 3; ++c) {
    const double base = 0.55 * (grey + own[c]) / 2;
    EXPECT_NEAR(out.pixels[c], std::floor(base + 0.45 * (heat[c] - 0.35 * base)), 1) << c;
  }
}

TEST(OverlayFacts, MapsAreDrawnOverTheEnlargedCrop) {
  PreprocessConfig config{.height = 100, .width = 200, .resize = 100};
  const Image image = test::noise(150, 250, 1, 2);
  const std::vector<LabelledMap> maps(4, {"m", std::vector<float>(6, 0.5f)});
  const MapSheet drawn_maps = draw_maps(image, config, maps, 2, 3);
  ASSERT_EQ(drawn_maps.overlays.size(), 4u);
  EXPECT_EQ(drawn_maps.overlays[0].height, 500) << "at least 448, by a whole factor";
  EXPECT_EQ(drawn_maps.overlays[0].width, 1000);
  // 5 tiles: round(sqrt(7.5)) is 3 in a row, so 2 rows; 36 rows of label and 8 between.
  EXPECT_EQ(drawn_maps.sheet.width, 3 * 1008 + 8);
  EXPECT_EQ(drawn_maps.sheet.height, 2 * (36 + 500 + 8) + 8);
  config = {.height = 448, .width = 448, .resize = 448};
  EXPECT_EQ(draw_maps(image, config, {maps[0]}, 2, 3).overlays[0].height, 448);
  EXPECT_EQ(contact_sheet(std::vector<Tile>(2, Tile{"", Image::blank(4, 4, 3)}), 3).width, 2 * 12 + 8);
}

TEST(ImageList, AFolderIsListedByEveryWayToIt) {
  const DataFolder folder;
  using Paths = std::vector<std::string>;
  folder.file("target/c.png", test::png(1));
  std::filesystem::create_directory(folder.path("links"));
  for (const char* link : {"left", "right"})
    std::filesystem::create_directory_symlink("../target", folder.path("links/") + link);
  EXPECT_EQ(list_images({folder.path("links")}, ""),
            (Paths{folder.path("links/left/c.png"), folder.path("links/right/c.png")}));
}

TEST(ImageList, ListsAndFoldersAndWhatIsWrong) {
  const DataFolder folder;
  folder.file("a.png", test::png(1));
  folder.file("sub/b.JPEG", test::png(1));
  folder.file("sub/notes.txt", "x");
  folder.file("list.txt", folder.path("a.png") + "\r\n\n" + folder.path("missing.png"));
  using Paths = std::vector<std::string>;
  EXPECT_EQ(list_images({"@" + folder.path("list.txt")}, ""),
            (Paths{folder.path("a.png"), folder.path("missing.png")}));
  EXPECT_EQ(list_images({"-", "x"}, "one\ntwo"), (Paths{"one", "two", "x"}));
  EXPECT_EQ(list_images({folder.path()}, ""), (Paths{folder.path("a.png"), folder.path("sub/b.JPEG")}));
  EXPECT_EQ(error_of([&] { list_images({"-"}, "\n"); }).message(), "the list names no images");
  for (const char* name : {"a.jpg", "a.jpeg", "a.png", "a.webp", "A.WebP"})
    EXPECT_TRUE(is_image_name(name)) << name;
  for (const char* name : {"a.gif", "png", "a.png.txt", "a", ".png", "a."})
    EXPECT_FALSE(is_image_name(name)) << name;
  std::filesystem::create_directory_symlink("..", folder.path("sub/up"));
  EXPECT_EQ(list_images({folder.path()}, ""), (Paths{folder.path("a.png"), folder.path("sub/b.JPEG")}))
      << "no loops";
  std::string note;
  const auto said = [&](const std::string& path) {
    return error_of([&] { load_listed_image(path, false, note); });
  };
  EXPECT_EQ(said(folder.path("none.png")).message(), "there is no image \"" + folder.path("none.png") + "\"");
  EXPECT_EQ(said(folder.path("sub")).message(),
            "no images (jpg, jpeg, png, webp) can be read under \"" + folder.path("sub") + "\"");
  const std::string no_image = "it is no image, whatever its name says; fetch the file again";
  const auto listed = [&](const std::string& path) { return with_list_hint(path, said(path)).hint(); };
  EXPECT_EQ(said(folder.path("list.txt")).hint(), no_image) << "who knows of no lists advises none";
  EXPECT_EQ(listed(folder.path("list.txt")),
            "if it lists images, one path a line: @" + folder.path("list.txt"));
  folder.file("text.png", "words");
  EXPECT_EQ(listed(folder.path("text.png")), no_image);
  EXPECT_TRUE(note.empty());
  const std::string turned = test::golden("exif6.jpg");
  EXPECT_EQ(load_listed_image(turned, true, note).width, 19) << "27 x 19 lying on its side";
  EXPECT_EQ(load_listed_image(turned, false, note).width, 27);
  EXPECT_EQ(note, turned + ": EXIF orientation 6 not applied");
  // A PNG that is mirrored: an eXIf chunk after its header of 33 bytes.
  const std::string exif(
      "\0\0\0\x1a"
      "eXIf"
      "MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\2\0\0\0\0\0\0"
      "\x22\x28\x6f\x7a",
      38);
  const std::string whole = test::png(1);
  const std::string mirrored = folder.file("m.png", whole.substr(0, 33) + exif + whole.substr(33));
  load_listed_image(mirrored, false, note);
  EXPECT_EQ(note, mirrored + ": EXIF orientation 2 not applied");
}

}  // namespace
}  // namespace vitrail
