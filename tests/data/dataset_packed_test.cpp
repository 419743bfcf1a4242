// The packed format: what is written is read back, and every flipped byte is detected.
#include "data/datasets/packed.h"

#include "base/crc32c.h"
#include "base/file.h"
#include "dataset_files.h"

namespace vitrail {
namespace {

using namespace test;

std::string packed(const DataFolder& folder, bool multi_label) {
  std::string path = folder.path("set.vtpack");
  PackWriter writer(path, {"cat", "dog"}, multi_label);
  const std::vector<int32_t> one = {1}, both = {0, 1};
  Image grey = Image::blank(2, 3, 1);
  grey.pixels = {1, 2, 3, 4, 5, 6};
  writer.add("dog/1.png", one, Part::kTrain, PackedImage::of_file(png(7)));
  writer.add("x", multi_label ? both : one, Part::kTrain, PackedImage::of_pixels(grey));
  writer.add("held out", one, Part::kVal, PackedImage::of_pixels(flat(3, 9)));
  writer.finish();
  EXPECT_EQ(writer.bytes(), std::filesystem::file_size(path));
  return path;
}

std::unique_ptr<Dataset> open_bytes(const std::string& bytes, Part part = Part::kAll) {
  return open_packed_bytes(std::make_unique<MemoryBytes>("memory", bytes), part);
}

TEST(Packed, RoundTrip) {
  for (const bool multi_label : {false, true}) {
    const DataFolder folder;
    const std::string spec = "packed:" + packed(folder, multi_label);
    const auto train = open_dataset(spec, Part::kTrain), val = open_dataset(spec, Part::kVal);
    EXPECT_EQ(train->classes(), (std::vector<std::string>{"cat", "dog"}));
    EXPECT_EQ(train->multi_label(), multi_label);
    ASSERT_EQ(train->size(), 2);
    EXPECT_EQ(train->sample_name(0), "dog/1.png");
    EXPECT_EQ(train->load(0, 0).pixels, flat(4, 7).pixels);
    EXPECT_EQ(*train->encoded(0), png(7));
    EXPECT_FALSE(train->encoded(1).has_value());
    EXPECT_EQ(train->load(1, 0).pixels, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(train->labels(1).size(), multi_label ? 2u : 1u);
    ASSERT_EQ(val->size(), 1);
    EXPECT_EQ(val->load(0, 0).pixels[0], 9);
    EXPECT_EQ(open_dataset(spec, Part::kAll)->size(), 3);
  }
}

// The shape is known only where every image is stored as pixels and all are alike: then they may be stored on
// a device.
TEST(Packed, TheShapeOfPixelsIsToldWhereAllAreAlike) {
  const auto shape_of = [](const std::vector<PackedImage>& images) {
    const DataFolder folder;
    const std::string path = folder.path("set.vtpack");
    PackWriter writer(path, {"cat"}, false);
    for (size_t i = 0; i < images.size(); ++i)
      writer.add(std::to_string(i), std::vector<int32_t>{0}, Part::kTrain, images[i]);
    writer.finish();
    return open_dataset("packed:" + path, Part::kAll)->pixel_shape();
  };
  const auto small = PackedImage::of_pixels(flat(3, 1)), large = PackedImage::of_pixels(flat(4, 1));
  const auto grey = PackedImage::of_pixels(Image::blank(3, 3, 1)), file = PackedImage::of_file(png(7));
  EXPECT_EQ(shape_of({small, small, small}), (PixelShape{3, 3, 3}));
  EXPECT_EQ(shape_of({grey}), (PixelShape{3, 3, 1}));
  EXPECT_FALSE(shape_of({small, large}));
  EXPECT_FALSE(shape_of({small, small, grey}));
  EXPECT_FALSE(shape_of({small, file}));
}

TEST(Packed, NothingRemainsUnlessFinished) {
  const DataFolder folder;
  { PackWriter writer(folder.path("half"), {"a"}, false); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Packed, EveryFlippedByteIsNoticed) {
  const DataFolder folder;
  const std::string whole = read_file(packed(folder, true), 1 << 20);
  constexpr size_t kUnused[2] = {12, 16};  // reserved bytes of the header
  const size_t spare = whole.size() - 12;  // and the footer's copy of the version
  for (size_t at = 0; at < whole.size(); ++at) {
    if ((at >= kUnused[0] && at < kUnused[1]) || (at >= spare && at < spare + 4)) continue;
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 0x10);
    EXPECT_THROW(
        {
          const auto data = open_bytes(broken);
          for (int64_t i = 0; i < data->size(); ++i) data->load(i, 0);
        },
        Error)
        << "byte " << at;
  }
}

// A table that holds more than its samples, with a valid checksum.
TEST(Packed, BytesAfterTheLastSampleAreRefused) {
  const DataFolder folder;
  const std::string whole = read_file(packed(folder, false), 1 << 20);
  ByteCursor old(as_byte_span(whole).last(32));
  const auto offset = old.take<uint64_t>(), bytes = old.take<uint64_t>();
  const auto with = [&](const std::string& more) {
    const std::string table = whole.substr(offset, bytes) + more;
    std::string changed = whole.substr(0, offset) + table;
    append_le(changed, offset);
    append_le(changed, static_cast<uint64_t>(table.size()));
    append_le(changed, crc32c(as_byte_span(table)));
    return changed + whole.substr(whole.size() - 12);
  };
  EXPECT_EQ(open_bytes(with(""))->size(), 3);
  expect_refused("1 bytes after the last sample", [&] { open_bytes(with("x")); });
}

// A row that no writer makes, under a valid checksum: neither a file nor pixels, or pixels of another size.
TEST(Packed, RowsThatContradictThemselvesAreRefused) {
  const DataFolder folder;
  const std::string whole = read_file(packed(folder, false), 1 << 20);
  ByteCursor footer(as_byte_span(whole).last(32));
  const auto offset = footer.take<uint64_t>(), bytes = footer.take<uint64_t>();
  // Two classes of three letters, the flag of several labels, the number of samples.
  constexpr size_t kRow = 4 + 2 * (4 + 3) + 1 + 8, kHeight = kRow + 16, kPixels = kRow + 24,
                   kChannels = kRow + 25;
  const auto with = [&](size_t at, char value) {
    std::string table = whole.substr(offset, bytes);
    table[at] = value;
    std::string changed = whole.substr(0, offset) + table;
    append_le(changed, offset);
    append_le(changed, bytes);
    append_le(changed, crc32c(as_byte_span(table)));
    return changed + whole.substr(whole.size() - 12);
  };
  EXPECT_EQ(open_bytes(with(kPixels, 0))->size(), 3);
  expect_refused("pixels and 0 channels", [&] { open_bytes(with(kPixels, 1)); });
  expect_refused("pixels and 0 channels", [&] { open_bytes(with(kPixels, 2)); });
  EXPECT_EQ(open_bytes(with(kHeight, 9))->size(), 3) << "of a file nobody asks for its size";
  EXPECT_EQ(open_bytes(with(kChannels, 9))->size(), 3);
}

// The name of a class, which no writer makes so long, under a valid checksum.
TEST(Packed, ANameHasAtMost4096Bytes) {
  const DataFolder folder;
  const std::string whole = read_file(packed(folder, false), 1 << 20);
  ByteCursor footer(as_byte_span(whole).last(32));
  const auto offset = footer.take<uint64_t>(), bytes = footer.take<uint64_t>();
  const auto named = [&](uint32_t length) {
    std::string table = whole.substr(offset, 4);  // so many classes
    append_le(table, length);
    table += std::string(length, 'c') + whole.substr(offset + 4 + 4 + 3, bytes - 4 - 4 - 3);
    std::string changed = whole.substr(0, offset) + table;
    append_le(changed, offset);
    append_le(changed, static_cast<uint64_t>(table.size()));
    append_le(changed, crc32c(as_byte_span(table)));
    return changed + whole.substr(whole.size() - 12);
  };
  EXPECT_EQ(open_bytes(named(4096))->classes(), (std::vector<std::string>{std::string(4096, 'c'), "dog"}));
  expect_refused("a name of 4097 bytes", [&] { open_bytes(named(4097)); });
}

TEST(Packed, WithoutAValidationPartThereIsNone) {
  const DataFolder folder;
  PackWriter writer(folder.path("p"), {"cat"}, false);
  writer.add("a", std::vector<int32_t>{0}, Part::kTrain, PackedImage::of_pixels(flat(3, 1)));
  writer.finish();
  EXPECT_EQ(open_part_if_any("packed:" + folder.path("p"), Part::kVal), nullptr);
  EXPECT_NE(open_part_if_any("packed:" + folder.path("p"), Part::kTrain), nullptr);
}

TEST(Packed, EveryCutIsNoticed) {
  const DataFolder folder;
  const std::string whole = read_file(packed(folder, false), 1 << 20);
  for (size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    expect_refused("memory", [&] { open_bytes(whole.substr(0, size)); });
  }
  expect_refused("memory", [&] { open_bytes(whole + "x"); });
}

}  // namespace
}  // namespace vitrail
