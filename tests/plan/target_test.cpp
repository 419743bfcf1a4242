// Device files by name: where they are looked for, and what is said of a name that is none.
#include "plan/target.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;

TEST(DevicePath, AFileGoesBeforeANameAndTheFirstPlaceWins) {
  const TempFolder first, second;
  const std::string file = first.file("desk.json"), other = second.file("lab.json");
  second.file("desk.json");
  const std::vector<fs::path> places = {"/no/such/place", first.path(), second.path()};
  EXPECT_EQ(find_device_file("desk", places), file);
  EXPECT_EQ(find_device_file("lab", places), other);
  EXPECT_EQ(find_device_file(other, {}), other);
}

TEST(DevicePath, ANameThatIsNoneIsRefusedWithTheNearest) {
  const TempFolder folder;
  folder.file("desk.json");
  for (const auto& [name, says] : {std::pair<std::string, std::string>{"dask", "did you mean --target desk?"},
                                   {"something else", "bench calibrate"}}) {
    try {
      find_device_file(name, {folder.path()});
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_NE(error.message().find(name), std::string::npos) << error.message();
      EXPECT_NE(error.hint().find(says), std::string::npos) << error.hint();
    }
  }
}

}  // namespace
}  // namespace vitrail
