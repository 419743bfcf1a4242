// Which setting the refusal of a config speaks of, and what is advised for it.
#include "train/setting_advice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "train/config_io.h"

namespace vitrail {
namespace {

constexpr const char* kAllSettings = "vitrail train --help lists every setting with its default";

// Returns the hint that a refusal gets where these settings were given.
std::string advice_on(const std::string& message, const std::vector<std::string>& given = {}) {
  return with_advice(Error(ErrorKind::kConfig, message), train_fields(),
                     [&](const std::string& key) { return std::ranges::find(given, key) != given.end(); })
      .hint();
}

TEST(SettingAdvice, OnlyWhatLacksAdviceGetsSome) {
  const auto none = [](const std::string&) { return false; };
  const Error own(ErrorKind::kConfig, "optim.lr is -1", "its own"), data(ErrorKind::kData, "optim.lr is -1");
  EXPECT_EQ(with_advice(own, train_fields(), none).hint(), "its own");
  EXPECT_EQ(with_advice(data, train_fields(), none).hint(), "");
  Error placed = Error(ErrorKind::kConfig, "optim.lr is -1; expected a number above 0").at("inner");
  placed.at("outer");
  const Error better = with_advice(placed, train_fields(), none);
  EXPECT_NE(better.hint().find("optim.lr="), std::string::npos) << better.hint();
  EXPECT_EQ(better.context(), placed.context());
}

// A name counts where it stands as a word of its own, and may end a sentence.
TEST(SettingAdvice, ANameIsAWordOfItsOwn) {
  const std::string lr = "optim.lr=0.001, its default (base learning rate, before the schedule)";
  for (const char* message :
       {"optim.lr", "wrong is optim.lr", "optim.lr: no number", "(optim.lr)", "look at optim.lr.",
        "look at optim.lr. It is wrong", "not optim.lrs but optim.lr"})
    EXPECT_EQ(advice_on(message), lr) << message;
  for (const char* message : {"look at optim.lrs", "look at optim.lr_x", "look at optim.lr-x",
                              "look at optim.lr.x", "look at optim.lrs. It is wrong", "look at my-optim.lr",
                              "look at x.optim.lr", "the dtype is odd, as are backend, resume and check"})
    EXPECT_EQ(advice_on(message), kAllSettings) << message;
}

TEST(SettingAdvice, OfSeveralTheOneThatWasGiven) {
  const std::string both = "model.depth and optim.lr do not go together";
  EXPECT_TRUE(advice_on(both, {"optim.lr"}).starts_with("optim.lr=")) << advice_on(both, {"optim.lr"});
  EXPECT_NE(advice_on(both, {"model.depth"}).find("model.depth"), std::string::npos);
  EXPECT_TRUE(advice_on("the lr is odd", {"optim.lr"}).starts_with("optim.lr="))
      << "by the last part of its name";
  EXPECT_EQ(advice_on("the lr is odd"), kAllSettings) << "nobody gave it";
  EXPECT_NE(advice_on("model.image_width is odd", {"model.image"}).find("leave model.image out"),
            std::string::npos)
      << "by the name that it stands for";
}

}  // namespace
}  // namespace vitrail
