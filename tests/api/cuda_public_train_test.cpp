// Ranks of the public API on a GPU ask the environment that they are handed for NCCL.
#include <vitrail/train.h>

#include "cuda_test.h"
#include "dist/nccl_world.h"
#include "temp_folder.h"
#include "vitrail/error.h"

namespace vitrail {
namespace {

const std::string kConfig = R"({
  "model": {"image_height": 16, "image_width": 16, "patch": 8, "width": 32, "depth": 1, "heads": 2, "mlp": 64},
  "data": {"train": "synthetic:3x16x16x4x64"},
  "mesh": {"transport": "TRANSPORT"},
  "train": {"batch": 16, "steps": 2, "tensorboard": false}
})";

std::string over(const char* transport) {
  std::string config = kConfig;
  return config.replace(config.find("TRANSPORT"), 9, transport);
}

const char* too_old(const char* name) {
  return std::string_view(name) == kNcclVariable ? VT_OLD_NCCL : nullptr;
}

class CudaPublicTrain : public CudaTest {
 protected:
  TrainOptions options() const {
    return {
        .folder = (folder_.path() / "run").string(), .device = "cuda:0", .ranks = 2, .variables = too_old};
  }
  const TempFolder folder_;
};

TEST_F(CudaPublicTrain, TakesTheNcclThatAVariableNames) {
  try {
    train(over("nccl"), options());
    FAIL() << "an NCCL that is too old was taken, or another one";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    EXPECT_NE(error.message().find(VT_OLD_NCCL), std::string::npos) << error.message();
  }
}

TEST_F(CudaPublicTrain, TellsWhyValuesTravelThroughTheHost) {
  std::string notes;
  const TrainCallbacks callbacks{.on_note = [&](const std::string& text) { notes += text + "\n"; }};
  EXPECT_TRUE(train(over("auto"), options(), callbacks).finished);
  EXPECT_NE(notes.find("through the host"), std::string::npos) << notes;
  EXPECT_NE(notes.find(VT_OLD_NCCL), std::string::npos) << notes;
}

}  // namespace
}  // namespace vitrail
