// Programs that are run for what they write: their output, their failures, and where they may lie.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "io/find_model.h"
#include "launch/child_process.h"

namespace vitrail {
namespace {

TEST(OutputOf, IsWhatTheProgramWroteToItsFile) {
  EXPECT_EQ(output_of({"/bin/sh", "-c", "yes x | head -c 20000 > \"$2\"", "sh"}).size(), 20000u);
  EXPECT_EQ(output_of({"/bin/sh", "-c", "printf told > \"$2\"", "sh"}), "told");
}

TEST(OutputOf, AProgramThatFailsOrIsMissingIsAnError) {
  EXPECT_THROW(output_of({"/bin/sh", "-c", "echo x > \"$2\"; exit 3", "sh"}), Error);
  EXPECT_THROW(output_of({"/bin/sh", "-c", "kill -9 $$", "sh"}), Error);
  EXPECT_THROW(output_of({"/nonexistent/program"}), Error);
}

TEST(OwnProgram, OnlyWhatLiesBesideThisOneCounts) {
  EXPECT_THROW(own_program("sh", "nothing"), Error);
  const std::string self = std::filesystem::path(this_program()).filename().string();
  EXPECT_EQ(own_program(self, "nothing"), this_program().string());
}

}  // namespace
}  // namespace vitrail
