// Folders and files that are not of this study: named, and refused before anything is measured.
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "study_program.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

std::string hint_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
    return error.hint();
  }
  return "accepted";
}

TEST(Study, AFolderWithoutACaseIsBegunAnew) {
  const TempFolder temp;
  StudyConfig config = small_study();
  const std::string path = temp.path().string() + "/s";
  config.models = {"vit_tiny_patch16_22"};
  { const StudyFolder mistaken(path, config); }
  config.models = {"vit_tiny_patch16_224"};
  { const StudyFolder mended(path, config); }
  EXPECT_EQ(read_file(path + "/study-config.json", 1 << 20).find("patch16_22\""), std::string::npos);
  write_file(path + "/cases/one.json", "{}");
  config.repeat = 7;
  EXPECT_THROW(StudyFolder(path, config), Error);
}

TEST(Study, OtherFoldersAreRefusedByName) {
  const TempFolder temp;
  const StudyConfig config = small_study();
  const std::string path = temp.path().string() + "/s";
  { const StudyFolder made(path, config); }
  write_file(path + "/cases/one.json", "{}");  // without a case it would be begun anew
  const auto message = [&](const StudyConfig& other) {
    try {
      const StudyFolder folder(path, other);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message(config), "");
  StudyConfig other = config;
  other.repeat = 7;
  EXPECT_NE(message(other).find("config.repeat is 2 there and 7 here"), std::string::npos) << message(other);
  std::string header = read_file(path + "/study-config.json", 1 << 20);
  const size_t at = header.find("\"vitrail\": \"") + 12;
  write_file(path + "/study-config.json", header.insert(at, "9"));
  EXPECT_NE(message(config).find("holds another study: vitrail is \"9"), std::string::npos)
      << message(config);
  write_file(path + "/study-config.json", "{");
  EXPECT_NE(message(config), "");
  EXPECT_NE(hint_of([&] { const StudyFolder folder(path, config); }).find("another --out"),
            std::string::npos);
  std::filesystem::create_directory(temp.path().string() + "/other");
  write_file(temp.path().string() + "/other/notes.txt", "mine");
  EXPECT_THROW(StudyFolder(temp.path().string() + "/other", config), Error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(temp.path().string() + "/other"), {}), 1);
  EXPECT_THROW(StudyFolder(temp.path().string() + "/other/notes.txt", config), Error);
  const StudyFolder owner(temp.path().string() + "/locked", config);
  EXPECT_THROW(StudyFolder(temp.path().string() + "/locked", config), Error);
}

TEST(Study, AFileOfAnotherCaseIsRefused) {
  const TempFolder temp;
  const StudyConfig config = small_study();
  FakeProgram program, again;
  run_made(config, temp.path().string() + "/s", program);
  const std::string path = temp.path().string() + "/s/cases/vit_tiny_patch16_224.cpu.threads.r2.b16.1.json";
  std::string text = read_file(path, 1 << 20);
  const size_t at = text.find("\"ranks\": 2");
  ASSERT_NE(at, std::string::npos);
  write_file(path, text.replace(at, 10, "\"ranks\": 3"));
  EXPECT_THROW(run_made(config, temp.path().string() + "/s", again), Error);
  EXPECT_EQ(again.started, 0);
}

// Each change is of the same file; what is refused is named, and the way out is told.
TEST(Study, ValuesThatNoCaseMeasuresAreRefused) {
  const TempFolder temp;
  const StudyConfig config = small_study();
  FakeProgram program, again;
  run_made(config, temp.path().string() + "/s", program);
  const std::string path = temp.path().string() + "/s/cases/vit_tiny_patch16_224.cpu.threads.r2.b16.1.json";
  const std::string whole = read_file(path, 1 << 20);
  const auto refusal = [&](const std::string& text) {
    write_file(path, text);
    try {
      run_made(config, temp.path().string() + "/s", again);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_NE(error.hint().find("remove the file"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
      return error.message();
    }
    return std::string("accepted");
  };
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, Json>>{{"update_s", 1e300},
                                                           {"update_s", -1},
                                                           {"update_s", nullptr},
                                                           {"update_s", "long"},
                                                           {"images_per_s", 1e9},
                                                           {"images_per_s", -5},
                                                           {"memory_bytes", -4096},
                                                           {"sent_bytes", 1e30},
                                                           {"took_s", -1},
                                                           {"batch", 17},
                                                           {"rank_times", {{"compute_s", {0.1, -0.1}}}},
                                                           {"rank_times", {{"compute_s", {0.1, "x"}}}},
                                                           {"rank_times", {{"compute_s", {0.1}}}},
                                                           {"epochs", {{{"epoch", "first"}}}},
                                                           {"gpus", {{{"id", 0}, {"used_bytes", -1}}}}}) {
    Json changed = Json::parse(whole);
    changed[key] = value;
    const std::string said = refusal(changed.dump());
    const std::string shown = key == std::string("batch") ? "images a rank" : key;
    EXPECT_TRUE(said.find(shown) != said.npos || said.find("ranks were asked for") != said.npos) << said;
  }
  EXPECT_NE(refusal(""), "accepted");
  EXPECT_NE(refusal(whole.substr(0, whole.size() / 2)), "accepted");
  EXPECT_NE(refusal("[]"), "accepted");
  EXPECT_EQ(refusal(whole), "accepted");
  EXPECT_EQ(again.started, 0);
}

}  // namespace
}  // namespace vitrail
