#include "data/decode.h"

#include <unistd.h>

#include <filesystem>

#include "data/image_helpers.h"

namespace vitrail {
namespace {

TEST(EncodePng, ReadsBackEqual) {
  for (int64_t channels : {1, 3, 4}) {
    const Image image = test::noise(13, 17, channels, 2);
    DecodeReport report;
    const Image back = decode_image(encode_png(image), {}, &report);
    EXPECT_EQ(report.colour, channels == 1 ? "grey" : channels == 3 ? "rgb" : "rgba");
    for (int64_t i = 0; i < 13 * 17; ++i)
      for (int64_t c = 0; c < 3; ++c)
        ASSERT_EQ(back.pixels[static_cast<size_t>(i * 3 + c)],
                  image.pixels[static_cast<size_t>(i * channels + (channels == 1 ? 0 : c))]);
  }
}

TEST(EncodePng, EmptyAndMisshapenImagesAreErrors) {
  EXPECT_THROW(encode_png(Image::blank(0, 5, 3)), Error);
  EXPECT_THROW(encode_png(Image{4, 4, 3, {}}), Error);
  EXPECT_THROW(encode_png(Image::blank(4, 4, 2)), Error);
}

TEST(WritePng, ReplacesTheFileOrNamesIt) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / strf("vitrail-png-%d", static_cast<int>(::getpid()));
  fs::create_directories(folder);
  const std::string path = folder / "a.png";
  write_png(path, test::noise(3, 4, 3, 1));
  write_png(path, test::noise(5, 6, 3, 2));
  EXPECT_EQ(load_image(path).pixels, test::noise(5, 6, 3, 2).pixels);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);  // no temporary left
  const std::string nowhere = folder / "missing" / "a.png";
  const Error error = test::error_of([&] { write_png(nowhere, test::noise(3, 4, 3, 1)); });
  EXPECT_EQ(error.kind(), ErrorKind::kWrite);
  EXPECT_NE(std::string(error.what()).find("missing"), std::string::npos) << error.what();
  fs::remove_all(folder);
}

}  // namespace
}  // namespace vitrail
