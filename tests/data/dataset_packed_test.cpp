// packed: what is written comes back, and no flipped byte goes unseen.
#include "data/datasets/packed.h"

#include "base/file.h"
#include "dataset_files.h"

namespace vitrail {
namespace {

using namespace test;

std::string packed(const DataFolder& folder, bool multi_label) {
  const std::string path = folder.path("set.vtpack");
  PackWriter writer(path, {"cat", "dog"}, multi_label);
  const std::vector<int32_t> one = {1}, both = {0, 1};
  Image grey = Image::blank(2, 3, 1);
  grey.pixels = {1, 2, 3, 4, 5, 6};
  writer.add("dog/1.png", one, Part::kTrain, PackedPicture::of_file(png(7)));
  writer.add("x", multi_label ? both : one, Part::kTrain, PackedPicture::of_pixels(grey));
  writer.add("held out", one, Part::kVal, PackedPicture::of_pixels(flat(3, 9)));
  writer.finish();
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
