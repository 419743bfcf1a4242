// --cache: which folders it uses, and that outputs stay the same.
#include <gtest/gtest.h>

#include "api/packed_cache.h"
#include "in_process.h"
#include "source_root.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;
using Places = std::vector<std::string>;

TEST(CachePlaces, BesideTheModelThenTheUsers) {
  const TempFolder folder;
  const std::string file = folder.file("model/w.safetensors"), model = (folder.path() / "model").string();
  const std::string beside = model + "/.vitrail-cache";
  EXPECT_EQ(packed_cache_places(model, "/xdg", "/home/me"), (Places{beside, "/xdg/vitrail"}));
  EXPECT_EQ(packed_cache_places(file, "", "/home/me"), (Places{beside, "/home/me/.cache/vitrail"}));
  EXPECT_EQ(packed_cache_places(file, "relative", ""), Places{beside});
  EXPECT_EQ(packed_cache_places("w.safetensors", "", ""), Places{".vitrail-cache"});
}

TEST(Cache, IsOnlyWrittenWhenAskedFor) {
  const TempFolder folder;
  const fs::path model = folder.path() / "model";
  fs::copy(std::string(VT_SOURCE_DIR) + "/tests/golden/models/hf_single", model, fs::copy_options::recursive);
  const std::string image = std::string(VT_SOURCE_DIR) + "/examples/images/coffee.png";
  const auto predict = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-m", model.string(), image});
    return run_in_process("predict", arguments).out;
  };
  const std::string expected = predict({});
  EXPECT_FALSE(fs::exists(model / ".vitrail-cache"));
  EXPECT_EQ(predict({"--cache"}), expected);
  EXPECT_TRUE(fs::exists(model / ".vitrail-cache"));
  EXPECT_EQ(predict({"--cache"}), expected);
}

}  // namespace
}  // namespace vitrail::cli
