// A model that is moved: from elsewhere, inside a callback of its own, and while other threads use it.
#include <vitrail/vitrail.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <type_traits>

#include "hostile_calls.h"

namespace {

using hostile::expect_error;
using hostile::kImage;
using hostile::kModel;
using vitrail::ErrorKind;
using vitrail::ImageView;
using vitrail::Model;

TEST(PublicHostile, AModelThatWasMovedFrom) {
  Model model = Model::load(kModel);
  const Model taken = std::move(model);
  EXPECT_EQ(taken.classify(kImage).size(), 5u);
  const std::vector<ImageView> images(2, kImage);
  const std::vector<float> floats(12);
  const auto ignored = [](const vitrail::FileResult&) { return true; };
  // NOLINTNEXTLINE(bugprone-use-after-move): calls of a moved model are the point.
  const std::vector<std::function<void()>> calls = {[&] { model.classify(kImage); },
                                                    [&] { model.classify(images); },
                                                    [&] { model.logits(kImage); },
                                                    [&] { model.logits(images); },
                                                    [&] { model.logits(std::span(floats)); },
                                                    [&] { model.embed(kImage); },
                                                    [&] { model.embed(images); },
                                                    [&] { model.attention(kImage); },
                                                    [&] { model.attention(images); },
                                                    [&] { model.classify_files({}, ignored); },
                                                    [&] { model.logits_files({}, ignored); },
                                                    [&] { model.embed_files({}, {}); },
                                                    [&] { model.attention_files({}, {}); },
                                                    [&] { model.preprocess(kImage); },
                                                    [&] { (void)model.classes(); },
                                                    [&] { (void)model.channels(); },
                                                    [&] { (void)model.image_height(); },
                                                    [&] { (void)model.image_width(); },
                                                    [&] { (void)model.feature_width(); },
                                                    [&] { (void)model.batch(); },
                                                    [&] { (void)model.labels(); }};
  for (const auto& call : calls)
    expect_error(ErrorKind::kUsage, "expected a loaded Model, found one that was moved from", call);
  model = Model::load(kModel);
  EXPECT_EQ(model.classes(), 5);
  Model& same = model;
  model = std::move(same);
  EXPECT_EQ(model.classify(kImage).size(), 5u) << "moved onto itself";
}

// The stream goes on with what it holds, whatever becomes of the object.
TEST(PublicHostile, ACallbackMayMoveOrDestroyItsModel) {
  const std::vector<std::string> paths(3, kImage);
  auto model = std::make_unique<Model>(Model::load(kModel));
  const std::vector<float> wanted = model->logits(kImage);
  size_t heard = 0;
  model->logits_files(paths, [&](const vitrail::FileResult& result) {
    EXPECT_EQ(std::vector(result.values.begin(), result.values.end()), wanted);
    if (heard == 0) const Model gone = std::move(*model);
    if (heard == 1) model.reset();
    return ++heard > 0;
  });
  EXPECT_EQ(heard, 3u);
}

// Calls that have begun end with the right answer; those after a move are told so.
TEST(PublicModelThreads, AModelIsMovedWhileOthersUseIt) {
  Model model = Model::load(kModel, {.threads = 1});
  const std::vector<float> image = model.preprocess(kImage),
                           wanted = model.logits(std::span<const float>(image));
  std::atomic<int> right = 0, refused = 0, wrong = 0;
  std::atomic<bool> done = false;
  std::vector<std::thread> users;
  users.reserve(4);
  for (int t = 0; t < 4; ++t)
    users.emplace_back([&] {
      while (!done) {
        try {
          ++(model.logits(std::span<const float>(image)) == wanted ? right : wrong);
        } catch (const vitrail::Error& error) {
          ++(error.kind() == ErrorKind::kUsage ? refused : wrong);
        }
      }
    });
  for (int turn = 0; turn < 50 || right == 0 || refused == 0; ++turn) {
    Model elsewhere = std::move(model);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    model = std::move(elsewhere);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  done = true;
  for (std::thread& user : users) user.join();
  EXPECT_EQ(wrong, 0);
}

static_assert(!std::is_copy_constructible_v<Model> && std::is_nothrow_move_constructible_v<Model>);

}  // namespace
