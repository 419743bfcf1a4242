#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "cli/environment.h"
#include "data/image_list.h"
#include "io/find_model.h"
#include "measure/host.h"
#include "measure/libraries.h"
#include "temp_folder.h"
#include "working_folder.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

TEST(ModelPath, OnlyTheProgramsOwnPlaces) {
  const TempFolder tree;
  const fs::path built = tree.path() / "build/release/vitrail";
  using Places = std::vector<fs::path>;
  EXPECT_EQ(model_places_for("/env", "/opt/vitrail/bin/vitrail"),
            (Places{"/env", "/opt/vitrail/share/vitrail/models"}));
  EXPECT_EQ(model_places_for("", built), Places{}) << "two folders up is nobody's unless it was built there";
  tree.file("build/release/CMakeCache.txt");
  EXPECT_EQ(model_places_for("", built), Places{tree.path() / "models"});
  EXPECT_EQ(model_places_for("", ""), Places{});
}

TEST(ModelPath, FindsFoldersAndFilesByName) {
  const TempFolder first, second;
  first.file("tiny/model.safetensors");
  second.file("tiny/model.safetensors");
  second.file("big.npz");
  second.file("not-a-model/readme.txt");
  const std::vector<fs::path> places = {first.path(), "/no/such/place", second.path()};
  const auto models = bundled_models(places);
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].name, "big.npz");
  EXPECT_EQ(models[1].path, first.path() / "tiny") << "the first place wins";
  EXPECT_EQ(find_model("tiny", places), (first.path() / "tiny").string());
  EXPECT_EQ(find_model((second.path() / "big.npz").string(), places), (second.path() / "big.npz").string());
}

// A default name means the bundled model, even beside a folder of that name.
TEST(ModelPath, ADefaultNameIsNoPath) {
  const TempFolder here, bundled;
  here.file("tiny/model.safetensors");
  bundled.file("tiny/model.safetensors");
  const WorkingFolder there(here.path());
  EXPECT_EQ(find_model("tiny", {bundled.path()}), "tiny");
  EXPECT_EQ(find_model("tiny", {bundled.path()}, ModelSource::kBundled), (bundled.path() / "tiny").string());
  EXPECT_TRUE(model_is_there("tiny", {}));
  EXPECT_FALSE(model_is_there("tiny", {}, ModelSource::kBundled));
}

TEST(ModelPath, AFolderWithWeightsOfItsOwnIsNoRuns) {
  const TempFolder folder;
  folder.file("run/best/model.safetensors");
  folder.file("model/best/model.safetensors");
  folder.file("model/model.safetensors");
  EXPECT_EQ(find_model((folder.path() / "run").string(), {}), (folder.path() / "run/best").string());
  EXPECT_EQ(find_model((folder.path() / "model").string(), {}), (folder.path() / "model").string());
  EXPECT_TRUE(is_run_folder((folder.path() / "run").string()));
  EXPECT_FALSE(is_run_folder((folder.path() / "model").string()));
}

TEST(ModelPath, SaysWhereItLookedAndWhatThereIs) {
  const TempFolder folder;
  folder.file("tiny/model.safetensors");
  for (const auto& [name, says] :
       {std::pair<std::string, std::string>{"tinny", "did you mean tiny?"}, {"something else", "tiny"}}) {
    try {
      find_model(name, {folder.path()});
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_NE(error.message().find(folder.path().string()), std::string::npos);
      EXPECT_NE(error.hint().find(says), std::string::npos) << error.hint();
    }
  }
}

TEST(Images, FoldersAreWalkedInByteOrder) {
  const TempFolder folder;
  for (const char* name : {"b.PNG", "a/z.jpg", "B.webp", "a/notes.txt", "c.jpeg", "a/._z.jpg"})
    folder.file(name);
  std::vector<std::string> names;
  for (const std::string& path : list_images({folder.path().string()}, ""))
    names.push_back(fs::relative(path, folder.path()).string());
  EXPECT_EQ(names, (std::vector<std::string>{"B.webp", "a/z.jpg", "b.PNG", "c.jpeg"}));
}

TEST(Images, LinksToFoldersAreFollowedAndLoopsAreNot) {
  const TempFolder folder, classes;
  classes.file("cat/one.png");
  fs::create_directory_symlink(classes.path() / "cat", folder.path() / "cat");
  fs::create_directory_symlink(folder.path(), folder.path() / "again");
  EXPECT_EQ(list_images({folder.path().string()}, ""),
            std::vector<std::string>{(folder.path() / "cat/one.png").string()});
}

TEST(Images, ListsKeepTheirOrder) {
  const TempFolder folder;
  const std::string one = folder.file("one.bin"), two = folder.file("two.png");
  EXPECT_EQ(list_images({"-", one}, two + "\r\n\n" + one + "\n"), (std::vector<std::string>{two, one, one}));
  const std::string list = folder.file("list.txt", one + "\n" + two);
  EXPECT_EQ(list_images({two, "@" + list}, ""), (std::vector<std::string>{two, one, two}));
}

TEST(Images, RefusesListsThatNameNothing) {
  EXPECT_THROW(list_images({"-"}, ""), Error);
  EXPECT_THROW(list_images({"@/no/such/list"}, ""), Error);
}

TEST(Images, WhatIsNotThereFailsWhenItIsRead) {
  const TempFolder folder;
  const std::string list = folder.file("list.txt", "a.png\nb.png\n"), page = folder.file("a.png", "<html>");
  const std::string empty = (folder.path() / "empty").string();
  std::filesystem::create_directory(empty);
  const std::pair<std::string, const char*> cases[] = {
      {"/no/such.png", "there is no image"}, {empty, "no images"}, {list, "@"}, {page, "no image"}};
  for (const auto& [path, says] : cases) {
    ASSERT_EQ(list_images({path}, ""), std::vector<std::string>{path});
    try {
      std::string note;
      load_listed_image(path, false, note);
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      const Error told = with_list_hint(path, error);
      EXPECT_NE(std::string(told.what()).find(says), std::string::npos) << told.what();
    }
  }
}

TEST(Environment, NamesTheNearest) {
  const std::vector<CommandSpec> specs = {
      {.name = "x", .summary = "", .examples = {}, .options = {{.name = "top-k", .help = ""}}}};
  const std::vector<std::string> fine = {"HOME", "VITRAIL_TOP_K", "VITRAIL_MODELS", "VITRAIL_JSON"};
  EXPECT_TRUE(environment_warnings(fine, specs).empty());
  const std::vector<std::string> wrong = {"VITRAIL_TOPK", "VITRAIL_MODEL_PATHS_AND_MORE"};
  const std::vector<std::string> warnings = environment_warnings(wrong, specs);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[0].find("did you mean VITRAIL_TOP_K?"), std::string::npos) << warnings[0];
}

TEST(Machine, ReadsProcAndSysfsText) {
  const std::string text = "processor\t: 0\nmodel name\t: A Processor\nflags\t\t:\nMemTotal:   1024 kB\n";
  EXPECT_EQ(proc_field(text, "model name"), "A Processor");
  EXPECT_EQ(proc_field(text, "MemTotal"), "1024 kB");
  EXPECT_EQ(proc_field(text, "flags"), "");
  EXPECT_EQ(proc_field(text, "model"), "");
  EXPECT_EQ(parse_cache_size("32K"), 32u << 10);
  EXPECT_EQ(parse_cache_size("8M"), 8u << 20);
  EXPECT_EQ(parse_cache_size(""), 0u);
}

TEST(Machine, InstructionsAreWholeWordsOfTheFlags) {
  using Words = std::vector<std::string>;
  MachineInfo machine;
  read_instructions("avx512_bf16 ssse3 avx2", machine);
  EXPECT_EQ(machine.isa, (Words{"avx2", "avx512_bf16"})) << "the first and the last word, too";
  EXPECT_EQ(machine.isa_missing, (Words{"sse4_2", "avx", "fma", "avx512f", "avx512bw", "avx_vnni",
                                        "avx512_vnni", "amx_tile", "amx_bf16", "amx_int8"}));
}

TEST(Machine, ThisOneHasCoresAndMemory) {
  const MachineInfo machine = read_machine();
  EXPECT_GE(machine.usable, 1);
  EXPECT_GE(machine.cores, machine.usable);
  EXPECT_GT(machine.memory_bytes, 0u);
  EXPECT_LE(machine.memory_available_bytes, machine.memory_bytes);
  EXPECT_EQ(free_disk_bytes("/no/such/folder"), 0u);
}

TEST(Libraries, VersionsFromNames) {
  EXPECT_EQ(version_in_soname("/usr/lib/libjpeg.so.62.3.0"), "62.3.0");
  EXPECT_EQ(version_in_soname("/usr/bin/vitrail"), "");
}

}  // namespace
}  // namespace vitrail::cli
