// vitrail data check, stats, show and pack, on small generated sets; a tenth of one set is broken in every
// way known.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <sstream>

#include "data/dataset.h"
#include "data/decode.h"
#include "in_process.h"
#include "run_words.h"
#include "source_root.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

std::string png(uint8_t red, uint8_t green, uint8_t blue, int64_t height, int64_t width) {
  Image image = Image::blank(height, width, 3);
  for (size_t i = 0; i < image.pixels.size(); i += 3)
    image.pixels[i] = red, image.pixels[i + 1] = green, image.pixels[i + 2] = blue;
  const std::vector<uint8_t> bytes = encode_png(image);
  return {bytes.begin(), bytes.end()};
}

std::vector<nlohmann::json> lines_of(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

// Runs a command that must fail its check; returns its output.
std::string run_failing(const std::string& name, const std::vector<std::string>& arguments) {
  const Command& command = command_named(name);
  const Options options = parse_options(
      command.spec, arguments, [](const std::string&) -> const char* { return nullptr; }, read_config_file);
  const TempFolder folder;
  const std::string out = folder.file("out", "");
  ConsoleSettings settings;
  settings.json = settings.quiet = true;
  settings.out_fd = ::open(out.c_str(), O_WRONLY);
  bool failed = false;
  {
    Console console(settings);
    try {
      command.run(options, console);
    } catch (const Error& error) {
      failed = error.kind() == ErrorKind::kCheck;
    }
    console.flush();
  }
  ::close(settings.out_fd);
  EXPECT_TRUE(failed) << "no Error(kCheck)";
  return read_file(out, 16 << 20);
}

TEST(DataCheck, ListsEveryBrokenImage) {
  const TempFolder folder;
  const std::string whole = png(1, 2, 3, 6, 8);
  const std::string photograph = read_file(VT_SOURCE_DIR "/examples/images/rocket.jpg", 1 << 20);
  for (int i = 0; i < 930; ++i) folder.file("d/ok/" + std::to_string(i) + ".png", whole);
  std::map<std::string, std::string> expected;  // name -> part of the reason
  const bool root = ::geteuid() == 0;
  for (int i = 0; i < 10; ++i) {
    const std::string at = "bad/" + std::to_string(i);
    folder.file("d/" + at + "cut.png", whole.substr(0, whole.size() - 20));
    expected[at + "cut.png"] = "ends too early";
    folder.file("d/" + at + "cut.jpg", photograph.substr(0, photograph.size() / 2));
    expected[at + "cut.jpg"] = "cut short";
    folder.file("d/" + at + "empty.png", "");
    expected[at + "empty.png"] = "an empty file";
    folder.file("d/" + at + "page.jpg", "<html><body>not found</body></html>");
    expected[at + "page.jpg"] = "an HTML page";
    fs::create_directories(folder.path() / "d" / (at + "folder.jpg"));
    expected[at + "folder.jpg"] = "is a folder";
    fs::create_symlink(std::to_string(i) + "loop.jpg", folder.path() / "d" / (at + "loop.jpg"));
    expected[at + "loop.jpg"] = "symbolic links";
    folder.file("d/" + at + "line\nend.png", whole);
    expected[at + "line\nend.png"] = "the name holds";
    if (root) continue;  // who may read everything
    const std::string closed = folder.file("d/" + at + "closed.png", whole);
    ::chmod(closed.c_str(), 0);
    expected[at + "closed.png"] = "Permission denied";
  }
  for (const char* threads : {"1", "3"}) {
    const auto lines =
        lines_of(run_failing("data check", {"folder:" + (folder.path() / "d").string(), "-t", threads}));
    ASSERT_EQ(lines.size(), expected.size() + 1);
    for (size_t i = 0; i + 1 < lines.size(); ++i) {
      const std::string name = lines[i]["sample"], problem = lines[i]["problem"];
      ASSERT_TRUE(expected.count(name)) << name;
      EXPECT_NE(problem.find(expected[name]), std::string::npos) << name << ": " << problem;
    }
    EXPECT_EQ(lines.back()["bad"], expected.size());
    EXPECT_EQ(lines.back()["checked"], 930 + expected.size());
  }
}

const std::string kNoImage = "expected a JPEG, PNG or WebP image, found ";

// As text, a line an image: its name, a tab, what is wrong with it.
TEST(DataCheck, ABrokenImageIsALineOfText) {
  const TempFolder folder;
  folder.file("d/a/1.png", png(1, 2, 3, 6, 8));
  folder.file("d/a/2.png", "");
  folder.file("d/b/3.jpg", "<html>");
  const Ended ended = run_words({"data", "check", "folder:" + (folder.path() / "d").string()});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.out, "a/2.png\t" + kNoImage + "an empty file\nb/3.jpg\t" + kNoImage + "an HTML page\n");
  EXPECT_EQ(ended.err,
            "error: 2 of 3 samples cannot be used\n  try: fetch or remove them; training can also pass them "
            "over (loader.on_error=skip)\n");
}

TEST(DataCheck, AWholeSetPasses) {
  const auto lines = lines_of(run_in_process("data check", {"synthetic:3x8x8x4x50"}).out);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["checked"], 60);
  EXPECT_EQ(lines[0]["bad"], 0);
  EXPECT_NE(run_in_process("data check", {"synthetic:3x8x8x4x50"}, false).out.find("60 samples"),
            std::string::npos);
}

TEST(DataStats, CountsSizesAndMeans) {
  const TempFolder folder;
  folder.file("cat/1.png", png(0, 51, 255, 2, 4));
  folder.file("cat/2.png", png(255, 51, 255, 2, 4));
  folder.file("dog/3.png", png(255, 51, 255, 4, 4));
  folder.file("dog/4.png", "");
  const std::string spec = "folder:" + folder.path().string();
  const auto json = run_in_process("data stats", {spec, "-t", "2"}).json();
  EXPECT_EQ(json["count"], 4);
  EXPECT_EQ(json["bad"], 1);
  EXPECT_EQ(json["classes"][1]["name"], "dog");
  EXPECT_EQ(json["classes"][1]["count"], 2);
  EXPECT_EQ(json["height"]["max"], 4);
  EXPECT_EQ(json["height"]["median"], 2);
  EXPECT_DOUBLE_EQ(json["mean"][0], 0.75);
  EXPECT_DOUBLE_EQ(json["mean"][1], 0.2);
  EXPECT_NEAR(json["std"][0].get<double>(), std::sqrt(0.75 * 0.25), 1e-12);
  EXPECT_NEAR(json["std"][2].get<double>(), 0, 1e-12);
  const Answer text = run_in_process("data stats", {spec}, false);
  EXPECT_NE(text.out.find("dog"), std::string::npos);
  EXPECT_NE(text.err.find("1 of 4 images cannot be read"), std::string::npos);
  EXPECT_EQ(run_in_process("data stats", {"synthetic:1x8x8x4x500", "--limit", "10"}).json()["looked_at"], 10);
}

TEST(DataShow, WritesASheet) {
  const TempFolder folder;
  const std::string out = (folder.path() / "sheet.png").string();
  const auto show = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"synthetic:1x8x8x4x50", "-o", out, "--count", "6", "--side", "32"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_in_process("data show", arguments).json();
  };
  const auto first = show({}), again = show({"-t", "2"}), other = show({"--seed", "1"});
  EXPECT_EQ(first["samples"].size(), 6u);
  EXPECT_EQ(first["samples"], again["samples"]);
  EXPECT_NE(first["samples"], other["samples"]);
  const Image sheet = load_image(out);
  EXPECT_EQ(sheet.width, 8 + 3 * (32 + 8));
  EXPECT_EQ(sheet.height, 8 + 2 * (24 + 32 + 8));
  show({"--class", "2"});
  EXPECT_THROW(show({"--class", "cat"}), Error);
}

// What cannot be read is told and left out; a sheet of nothing is none.
TEST(DataShow, ASheetHasAtLeastOneImage) {
  const TempFolder folder;
  folder.file("d/a/1.png", "");
  folder.file("d/b/2.jpg", "<html>");
  const std::string spec = "folder:" + (folder.path() / "d").string(),
                    out = (folder.path() / "sheet.png").string(),
                    first = "warning: a/1.png: " + kNoImage + "an empty file\n",
                    second = "warning: b/2.jpg: " + kNoImage + "an HTML page\n";
  const auto show = [&] { return run_words({"data", "show", spec, "-o", out, "--threads", "1"}); };
  const Ended none = show();
  EXPECT_EQ(none.code, 65);
  EXPECT_EQ(none.out, "");
  EXPECT_TRUE(none.err == first + second + "error: none of the images can be shown\n" ||
              none.err == second + first + "error: none of the images can be shown\n")
      << none.err;
  EXPECT_FALSE(fs::exists(out));
  folder.file("d/b/2.jpg", png(1, 2, 3, 6, 8));
  const Ended one = show();
  EXPECT_EQ(one.code, 0);
  EXPECT_EQ(one.out, out + ": 1 image\n");
  EXPECT_EQ(one.err, first);
}

TEST(DataPack, KeepsPartsNamesAndImages) {
  const TempFolder folder;
  for (const char* name : {"in/train/a/1.png", "in/train/b/2.png", "in/val/b/3.png"})
    folder.file(name, png(static_cast<uint8_t>(name[0]), 9, 9, 10, 20));
  const std::string spec = "folder:" + (folder.path() / "in").string(),
                    out = (folder.path() / "out.vtpack").string();
  const auto json = run_in_process("data pack", {spec, "-o", out}).json();
  EXPECT_EQ(json["train"], 2);
  EXPECT_EQ(json["val"], 1);
  const auto before = open_dataset(spec, Part::kTrain), after = open_dataset("packed:" + out, Part::kTrain);
  EXPECT_EQ(before->fingerprint(), after->fingerprint());
  EXPECT_EQ(before->load(1, 0).pixels, after->load(1, 0).pixels);
  EXPECT_EQ(open_dataset("packed:" + out, Part::kVal)->sample_name(0), "val/b/3.png");
  run_in_process("data pack", {spec, "-o", out, "--side", "6"});
  const Image small = open_dataset("packed:" + out, Part::kTrain)->load(0, 0);
  EXPECT_EQ(small.height, 6);
  EXPECT_EQ(small.width, 6);
  folder.file("in/train/a/broken.png", "");
  EXPECT_THROW(run_in_process("data pack", {spec, "-o", out}), Error);
  EXPECT_EQ(open_dataset("packed:" + out, Part::kTrain)->size(), 2) << "the earlier file stays";
  EXPECT_EQ(run_in_process("data pack", {spec, "-o", out, "--skip-bad"}).json()["left_out"], 1);
}

}  // namespace
}  // namespace vitrail::cli
