// What the public API says of mistakes, word by word, and the figures of a plan at the last byte that fits.
#include <gtest/gtest.h>
#include <vitrail/vitrail.h>

#include "base/error.h"
#include "source_root.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

const std::string kToldModel = VT_SOURCE_DIR "/tests/golden/models/timm_hub";

template <typename Body>
std::string usage_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage) << error.what();
    return error.message();
  }
  return "nothing was thrown";
}

TEST(PublicTold, MistakesWithAModel) {
  Model model = Model::load(kToldModel);
  const std::vector<float> one(
      static_cast<size_t>(model.channels() * model.image_height() * model.image_width()));
  const ImageView image = ImageView::tensor(one);
  EXPECT_EQ(usage_of([&] { model.classify(image, 0); }), "top_k is 0; it must be at least 1");
  EXPECT_EQ(model.classify(image, 1).size(), 1u);
  EXPECT_EQ(usage_of([&] { model.classify_files({}, nullptr); }), "expected a callback, found none");
  const Model taken = std::move(model);
  // NOLINTNEXTLINE(bugprone-use-after-move): what is said of such a model is the point.
  EXPECT_EQ(usage_of([&] { (void)model.classes(); }),
            "expected a loaded Model, found one that was moved from: it holds nothing to run");
  EXPECT_GT(taken.classes(), 0);
}

TEST(PublicTold, FloatsThatAreNoImages) {
  const Model model = Model::load(kToldModel);
  const size_t elems = static_cast<size_t>(model.channels() * model.image_height() * model.image_width());
  const std::vector<float> floats(2 * elems);
  EXPECT_EQ(model.logits(std::span<const float>(floats)).size(), static_cast<size_t>(2 * model.classes()));
  const std::string wrong =
      std::to_string(elems + 1) + " floats given; an image has " + std::to_string(elems);
  EXPECT_EQ(usage_of([&] { (void)model.logits(std::span<const float>(floats).first(elems + 1)); }), wrong);
  const ImageView view = ImageView::tensor(std::span<const float>(floats).first(elems - 1));
  EXPECT_EQ(usage_of([&] { (void)model.logits(view); }),
            strf("%zu floats given; an image of this model has %zu: %d x %d x %d", elems - 1, elems,
                 static_cast<int>(model.channels()), static_cast<int>(model.image_height()),
                 static_cast<int>(model.image_width())));
}

TEST(PublicTold, PixelsThatAreNoImage) {
  const Model model = Model::load(kToldModel);
  const std::vector<uint8_t> bytes(5 * 4 * 3);
  const auto says = [&](int64_t height, int64_t width, int64_t channels, int64_t stride, size_t given) {
    return usage_of([&] {
      (void)model.preprocess(
          ImageView::pixels(std::span(bytes).first(given), height, width, channels, stride));
    });
  };
  EXPECT_EQ(says(5, 4, 3, 0, 60), "nothing was thrown");
  EXPECT_EQ(says(5, 4, 3, 0, 59), "59 bytes given for an image of 4 x 5 pixels in 3 channels: it has 60");
  EXPECT_EQ(says(4, 4, 3, 16, 60), "nothing was thrown") << "the last row ends with its pixels";
  EXPECT_EQ(says(4, 4, 3, 11, 60), "a row stride of 11 bytes: a row of 4 pixels in 3 channels has 12");
  EXPECT_EQ(says(5, 4, 2, 0, 60), "an image of 2 channels: expected 1 (grey), 3 (RGB) or 4 (RGBA)");
  EXPECT_NE(says(0, 4, 3, 0, 60).find("an image of 4 x 0 pixels: sides are 1 to "), std::string::npos);
  EXPECT_EQ(says(1, 4, 3, int64_t{1} << 40, 12), "nothing was thrown") << "of one row no stride is taken";
  EXPECT_TRUE(says(1, 4, 3, (int64_t{1} << 40) + 1, 12).starts_with("a row stride of 1099511627777 bytes"));
}

TEST(PublicTold, SidesOfAnImageMetExactly) {
  const Model model = Model::load(kToldModel);
  const std::vector<uint8_t> line(65536, 7);
  const auto says = [&](int64_t height, int64_t width) {
    return usage_of([&] { (void)model.preprocess(ImageView::pixels(line, height, width, 1)); });
  };
  EXPECT_EQ(says(65535, 1), "nothing was thrown");
  EXPECT_EQ(says(1, 65535), "nothing was thrown");
  const std::string limit = " pixels: sides are 1 to 65535, and 50000000 pixels at most";
  EXPECT_EQ(says(65536, 1), "an image of 1 x 65536" + limit);
  EXPECT_EQ(says(1, 65536), "an image of 65536 x 1" + limit);
}

TEST(PublicTold, MistakesWithARun) {
  const auto says = [](const TrainOptions& options) { return usage_of([&] { train("{}", options); }); };
  EXPECT_EQ(says({.folder = ""}),
            "expected a folder for the run, found an empty name: options.folder says where it is kept");
  EXPECT_EQ(says({.folder = "run", .ranks = 0}), "ranks is 0: expected 1 to 256");
  EXPECT_EQ(says({.folder = "run", .ranks = 257}), "ranks is 257: expected 1 to 256");
  EXPECT_EQ(says({.folder = "run", .threads = 4097}), "threads is 4097: expected 0 to 4096");
  EXPECT_EQ(says({.folder = "run", .resume = static_cast<Resume>(7)}),
            "resume is 7: expected kNo, kNewest or kStrict");
  EXPECT_EQ(usage_of([] { plan_inference("vit_tiny_patch16_224", {.device = "cuda"}, "h200"); }),
            "target \"h200\" and device cuda name two devices: leave one of them out");
}

// A processor as a file, with so much memory.
std::string desk(const TempFolder& folder, uint64_t memory) {
  return folder.file("desk.json", strf(R"({"format": "vitrail device 2", "kind": "cpu", "name": "desk",
      "source": "here", "memory_bytes": %llu, "isa": "avx2", "cores": 2,
      "rates": [{"threads": 1, "fma_gflops": 100, "copy_gbps": 10}],
      "products": [{"m": 64, "n": 32, "k": 16, "threads": 1, "gflops": 80}]})",
                                       static_cast<unsigned long long>(memory)));
}

TEST(PublicTold, PlansEndAtTheLastByte) {
  const TempFolder folder;
  const ModelOptions three{.threads = 1, .batch = 3};
  const Plan plan = plan_inference("vit_tiny_patch16_224", three, desk(folder, uint64_t{1} << 34));
  EXPECT_EQ(plan.parameters, 5'717'416);
  EXPECT_EQ(plan.batch, 3);
  EXPECT_EQ(plan.device, "desk");
  EXPECT_EQ(plan.available_bytes, uint64_t{1} << 34);
  // The products of an image: patches, eleven whole blocks, one where only the class token asks, the head.
  const double whole = 197.0 * 192 * (576 + 192 + 1536) + 2.0 * 197 * 197 * 192;
  const double last = 197.0 * 192 * 384 + 192.0 * (192 + 192 + 1536) + 2.0 * 197 * 192;
  const double products = 2 * (196.0 * 768 * 192 + 11 * whole + last + 192 * 1000);
  EXPECT_GT(plan.flops / 3, products);
  EXPECT_LT(plan.flops / 3, 1.005 * products) << "what is not a product is little";
  ASSERT_TRUE(plan.seconds);
  EXPECT_GT(*plan.seconds, plan.flops / 100e9);
  const Plan exact = plan_inference("vit_tiny_patch16_224", three, desk(folder, plan.peak_bytes));
  EXPECT_TRUE(exact.fits);
  EXPECT_EQ(exact.largest_batch, 3);
  const Plan less = plan_inference("vit_tiny_patch16_224", three, desk(folder, plan.peak_bytes - 1));
  EXPECT_FALSE(less.fits);
  EXPECT_EQ(less.largest_batch, 2);
  const Plan wide =
      plan_inference("vit_tiny_patch16_224", {.threads = 1, .image_height = 448, .image_width = 224},
                     desk(folder, uint64_t{1} << 34));
  EXPECT_GT(wide.flops, 1.9 * plan.flops / 3);
}

TEST(PublicTold, PlansOfTraining) {
  const TempFolder folder;
  const Plan plan =
      plan_training(R"({"model": {"image_height": 16, "image_width": 16, "patch": 8, "width": 32, "depth": 1,
      "heads": 2, "mlp": 64}, "data": {"train": "synthetic:3x16x16x4x64"}, "train": {"batch": 12, "micro_batch": 4}})",
                    {}, desk(folder, uint64_t{1} << 30));
  EXPECT_EQ(plan.batch, 4);
  EXPECT_EQ(plan.device, "desk");
  EXPECT_TRUE(plan.fits);
  ASSERT_TRUE(plan.seconds);
  uint64_t sum = 0;
  for (const MemoryItem& item : plan.memory) sum += item.bytes;
  EXPECT_EQ(sum, plan.peak_bytes);
  // 8 x 8 x 3 x 32 + 32 of patches, a token and 5 positions, a block, two norms' worth behind it, the head.
  const int64_t block = 2 * 64 + 32 * 96 + 96 + 32 * 32 + 32 + 2 * 32 * 64 + 64 + 32;
  EXPECT_EQ(plan.parameters, 192 * 32 + 32 + 32 + 5 * 32 + block + 64 + 4 * 32 + 4);
}

}  // namespace
}  // namespace vitrail
