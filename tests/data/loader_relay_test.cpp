// Batches that one loader makes and another receives, batches without images, and what a loader refuses.
#include <cstring>
#include <deque>

#include "data/dataset_files.h"
#include "data/decoding_memory.h"
#include "data/fake_dataset.h"
#include "data/loader_helpers.h"

namespace vitrail {
namespace {

using test::Copy;
using test::error_of;
using test::FakeDataset;
using test::small_settings;
using test::take;

// What the giver passes, in order.
struct Wire {
  std::deque<std::vector<std::byte>> passed;
};
class Giver : public BatchRelay {
 public:
  explicit Giver(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}
  void pass(std::span<std::byte> bytes) override { wire_->passed.emplace_back(bytes.begin(), bytes.end()); }

 private:
  std::shared_ptr<Wire> wire_;
};
class Receiver : public BatchRelay {
 public:
  explicit Receiver(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}
  void pass(std::span<std::byte> bytes) override {
    ASSERT_FALSE(wire_->passed.empty());
    ASSERT_EQ(wire_->passed.front().size(), bytes.size());
    std::copy(wire_->passed.front().begin(), wire_->passed.front().end(), bytes.begin());
    wire_->passed.pop_front();
  }

 private:
  std::shared_ptr<Wire> wire_;
};

struct Pair {
  std::shared_ptr<Wire> wire = std::make_shared<Wire>();
  LoaderSettings gives = small_settings(), receives = small_settings();
  Pair() {
    for (LoaderSettings* s : {&gives, &receives})
      s->loader.on_error = OnError::kSkip, s->loader.max_bad_fraction = 1;
    gives.relay = std::make_shared<Giver>(wire);
    receives.relay = std::make_shared<Receiver>(wire);
    receives.receives = true;
  }
};

TEST(LoaderRelay, WhatIsReceivedIsWhatWasMade) {
  FakeDataset data(64, 5), never(64, 5);
  data.broken = {3, 21};
  Pair pair;
  const auto giver = make_eval_loader(data, pair.gives), receiver = make_eval_loader(never, pair.receives);
  const std::vector<Copy> made = take(*giver, 8), received = take(*receiver, 8);
  EXPECT_TRUE(made == received);
  EXPECT_EQ(never.loads, 0) << "the receiver reads nothing";
  EXPECT_TRUE(pair.wire->passed.empty());
  ASSERT_EQ(receiver->bad_samples().size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const BadSample &there = giver->bad_samples()[i], &here = receiver->bad_samples()[i];
    EXPECT_EQ(here.sample, there.sample);
    EXPECT_EQ(here.name, there.name);
    EXPECT_EQ(here.reason, there.reason);
    EXPECT_EQ(here.error.kind(), there.error.kind());
    EXPECT_STREQ(here.error.what(), there.error.what());
  }
  EXPECT_FALSE(receiver->peek()) << "nothing is ready before it is asked for";
  EXPECT_EQ(Loader::staging_bytes(pair.receives), BatchParts::bytes(pair.receives)) << "one slot";
}

TEST(LoaderRelay, ABatchOfAnotherNumberIsRefused) {
  const FakeDataset data(64, 5);
  Pair pair;
  const auto giver = make_eval_loader(data, pair.gives), receiver = make_eval_loader(data, pair.receives);
  giver->seek(2);
  take(*giver, 1);
  const Error error = error_of([&] { receiver->next(); });
  EXPECT_EQ(error.kind(), ErrorKind::kInternal);
  EXPECT_NE(error.message().find("batch 2 in the place of 0"), std::string::npos) << error.message();
}

TEST(LoaderRelay, AReceiverNeedsSomebodyToAsk) {
  const FakeDataset data(64, 5);
  LoaderSettings settings = small_settings();
  settings.receives = true;
  EXPECT_NE(error_of([&] { make_eval_loader(data, settings); }).message().find("nobody to ask"),
            std::string::npos);
}

TEST(LoaderEnds, NothingComesAfterTheLastBatch) {
  const FakeDataset data(20, 5);
  const auto loader = make_eval_loader(data, small_settings());
  take(*loader, 3);
  EXPECT_NE(error_of([&] { loader->next(); }).message().find("the evaluation has 3 batches"),
            std::string::npos);
}

// Only data that cannot be read is skipped.
TEST(LoaderEnds, OtherErrorsAreNotSkipped) {
  class Full : public FakeDataset {
   public:
    using FakeDataset::FakeDataset;
    Image load(int64_t index, int64_t side) const override {
      if (index == 9) throw Error(ErrorKind::kMemory, "no room");
      return FakeDataset::load(index, side);
    }
  };
  const Full data(64, 5);
  LoaderSettings settings = small_settings();
  settings.loader.on_error = OnError::kSkip;
  settings.loader.max_bad_fraction = 1;
  const auto loader = make_eval_loader(data, settings);
  take(*loader, 1);
  EXPECT_EQ(error_of([&] { loader->next(); }).kind(), ErrorKind::kMemory);
}

TEST(LoaderEnds, WorkIsTheSumOverAllSamples) {
  FakeDataset data(64, 5);
  data.delay = std::chrono::microseconds(500);
  const auto loader = make_eval_loader(data, small_settings(1));
  take(*loader, 8);
  EXPECT_GE(loader->work_seconds(), 64 * 0.0005);
}

TEST(BatchPartsFacts, TargetsAloneTakeNoRoomForImages) {
  LoaderSettings settings = small_settings();
  const auto rounded = [](size_t bytes) { return (bytes + 63) / 64 * 64; };
  const size_t rest = rounded(8 * 5 * 4) + rounded(8 * 4) + rounded(8 * 4) + rounded(8 * 8);
  EXPECT_EQ(BatchParts::bytes(settings), 8u * 192 * 4 + rest);
  settings.form = ImageForm::kPixels;
  EXPECT_EQ(BatchParts::bytes(settings), 8u * 192 + rounded(8 * sizeof(ImageRecipe)) + rest);
  settings.form = ImageForm::kStored;
  EXPECT_EQ(BatchParts::bytes(settings), rounded(8 * sizeof(ImageRecipe)) + rest);
  for (const ImageForm form : {ImageForm::kFloats, ImageForm::kPixels, ImageForm::kStored}) {
    settings.form = form;
    settings.targets_only = true;
    EXPECT_EQ(BatchParts::bytes(settings), rest);
    settings.targets_only = false;
  }
  const FakeDataset data(64, 5);
  settings = small_settings();
  settings.targets_only = true;
  const auto loader = make_eval_loader(data, settings);
  const Batch& batch = loader->next();
  EXPECT_TRUE(batch.images.empty());
  EXPECT_EQ(batch.labels[7], 2);
  EXPECT_EQ(data.loads, 0);
}

// Which files are looked at.
class Looked : public FakeDataset {
 public:
  using FakeDataset::FakeDataset;
  std::optional<std::string> encoded(int64_t index) const override {
    seen.push_back(index);
    return test::png(1);
  }
  mutable std::vector<int64_t> seen;
};

TEST(DecodingMemoryFacts, ThirtyTwoImagesSpreadEvenlyAreLookedAt) {
  const Looked few(5, 2), many(100, 2);
  largest_decoding(few);
  EXPECT_EQ(few.seen, (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(largest_decoding(many), test::png(1).size() + 4 * 4 * 3);
  ASSERT_EQ(many.seen.size(), 32u);
  EXPECT_EQ(many.seen[1], 3);    // 100 / 32
  EXPECT_EQ(many.seen[31], 96);  // 31 * 100 / 32
}

}  // namespace
}  // namespace vitrail
