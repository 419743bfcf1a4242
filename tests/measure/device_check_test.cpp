// Device files against the machine at hand: which describe it, and what is said of one that does not.
#include "measure/device_check.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "own_device.h"
#include "temp_folder.h"
#include "thrown.h"

namespace vitrail {
namespace {

std::string why(const DeviceFile& file) {
  return mismatch(file, device_here("cpu", 0, ""));
}

TEST(DeviceCheck, SaysWhatDiffers) {
  EXPECT_EQ(why(own_file()), "");
  DeviceFile other = own_file();
  other.name = "Another Processor 9000";
  EXPECT_NE(why(other).find("it is of Another Processor 9000, and this is " + own_file().name),
            std::string::npos)
      << why(other);
  other = own_file();
  std::get<CpuSpec>(other.spec).cores += 3;
  EXPECT_NE(why(other).find("cores, and this process has"), std::string::npos) << why(other);
  other = own_file();
  std::get<CpuSpec>(other.spec).isa = "an older one";
  EXPECT_NE(why(other).find("measured with an older one"), std::string::npos) << why(other);
  other = own_file();
  other.kind = "cuda";
  EXPECT_NE(why(other).find("it is of a cuda, and this is a cpu"), std::string::npos) << why(other);
}

// Nothing is measured for a calibration of another processor, and it is named.
TEST(DeviceCheck, RefusesACalibrationOfAnotherProcessor) {
  const TempFolder folder;
  DeviceFile other = own_file();
  other.name = "Another Processor 9000";
  folder.file("desk.json", file_text(other));
  int64_t measured = 0;
  try {
    check_device_file("desk", {folder.path()}, device_here("cpu", 0, ""), {"f32"}, 0.01,
                      [&](int64_t count) { measured += count; });
    FAIL() << "a file of another processor was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(error.message().find("desk.json does not describe this machine"), std::string::npos);
    EXPECT_NE(error.message().find("Another Processor 9000"), std::string::npos) << error.message();
    EXPECT_NE(error.hint().find("bench calibrate"), std::string::npos);
  }
  EXPECT_EQ(measured, 0);
  EXPECT_EQ(
      thrown_by([&] { check_device_file("dusk", {folder.path()}, device_here("cpu", 0, ""), {}, 0.01, {}); }),
      "data: no device \"dusk\" | did you mean --check desk?");
}

TEST(DeviceCheck, FindsTheFilesOfThisMachine) {
  const TempFolder folder;
  const auto keep = [&](const char* name, const DeviceFile& file) {
    std::string path = (folder.path() / name).string();
    write_file(path, file_text(file));
    return path;
  };
  DeviceFile other = own_file(), bare = own_file();
  other.name = "Another Processor 9000";
  bare.curves = CostCurves();
  const std::string broken = (folder.path() / "broken.json").string();
  write_file(broken, "{\"format\": \"vitrail device 2\"");
  const std::vector<std::string> paths = {broken, keep("bare.json", bare), keep("mine.json", own_file()),
                                          keep("other.json", other)};
  EXPECT_EQ(files_of_this_machine(paths), (std::vector<std::string>{"bare", "mine"}));
  const DeviceInfo device = device_here("cpu", 0, "");
  const auto found = file_of_device(device, paths);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->curves.empty()) << "one without curves predicts no better than a rule of thumb";
  EXPECT_FALSE(file_of_device(device, {broken, paths[3]}));
  EXPECT_TRUE(speed_of(device, "mine", {folder.path()}));
  EXPECT_TRUE(speed_of(device, "", {folder.path()}));
  EXPECT_EQ(speed_path(device, "mine", {folder.path()}), paths[2]);
  EXPECT_EQ(speed_path(device, "", {folder.path()}), paths[2]) << "one without curves is not taken unnamed";
  EXPECT_EQ(speed_path(device, "bare", {folder.path()}), paths[1]);
  EXPECT_FALSE(speed_path(device, "", {}));
  EXPECT_THROW(speed_of(device, "other", {folder.path()}), Error);
  EXPECT_THROW(speed_of(device, "none such", {folder.path()}), Error);
}

}  // namespace
}  // namespace vitrail
