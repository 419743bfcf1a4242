// Model folders with a manifest: a change since it was written is never read silently.
#include "io/sealed_folder.h"

#include <fstream>

#include "base/rng.h"
#include "io/adapters.h"
#include "io/checkpoint/checkpoint.h"
#include "io/dialect_files.h"
#include "working_folder.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMost = 1 << 20;

class SealedFolder : public DialectTest {
 protected:
  std::string write(const std::string& name, bool manifest = true) {
    write_model(at(name), tiny(), {.dialect = Dialect::kHf, .manifest = manifest}, by_rule);
    return at(name);
  }
  // Returns what opening and reading everything reports; "" when nothing is wrong.
  static std::string complaint(const std::string& path) {
    try {
      const auto model = open_model(path);
      for (const ParamSpec& spec : vit_params(model->card().config)) values(*model, spec);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(exit_code(error.kind()), 65) << error.what();
      return error.what();
    }
  }
  static void put(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }
  // Flips bits all over the file, one at a time: each is found, and the file named.
  static void expect_flips_found(const std::string& model, const std::string& name) {
    const std::string path = model + "/" + name, good = read_file(path, kMost);
    for (uint64_t i = 0; i < 60; ++i) {
      std::string bad = good;
      const uint64_t bit = counter_hash(name_key(name), i) % (8 * good.size());
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
      put(path, bad);
      EXPECT_SAYS(complaint(model), name) << " at bit " << bit;
    }
    put(path, good);
    EXPECT_EQ(complaint(model), "");
  }
};

TEST_F(SealedFolder, ListsEveryFileOfTheModel) {
  const std::string folder = write("m");
  put(folder + "/README.md", "about it");
  seal_folder(folder);
  const std::optional<Manifest> manifest = folder_manifest(folder);
  ASSERT_TRUE(manifest);
  std::vector<std::string> names;
  for (const FileRecord& record : manifest->files) names.push_back(record.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"config.json", "model.safetensors", "preprocessor_config.json"}));
  EXPECT_EQ(complaint(folder), "");
}

TEST_F(SealedFolder, AFlippedBitOfAnyFileIsFound) {
  const std::string folder = write("m");
  for (const char* name : {"model.safetensors", "config.json", "preprocessor_config.json", "manifest.json"})
    expect_flips_found(folder, name);
}

TEST_F(SealedFolder, ABitOfTheWeightsIsFoundHoweverTheyAreNamed) {
  const std::string folder = write("m"), path = folder + "/model.safetensors";
  std::string bytes = read_file(path, kMost);
  bytes[bytes.size() - 5] = static_cast<char>(bytes[bytes.size() - 5] ^ 1);
  put(path, bytes);
  fs::create_directory_symlink(folder, at("link"));
  for (const std::string& name : {path, at("link")}) EXPECT_SAYS(complaint(name), "model.safetensors");
}

// What opening does not look at is compared when it is read.
TEST_F(SealedFolder, ABitOfTheLastOfSeveralBlocksOfWeightsIsFound) {
  ModelCard card = tiny();
  card.config.classes = 24000, card.labels.clear();
  write_model(at("m"), card, {.dialect = Dialect::kHf, .manifest = true}, by_rule);
  const std::string path = at("m/model.safetensors");
  std::string bytes = read_file(path, size_t{8} << 20);
  ASSERT_GT(bytes.size(), 2 * kChecksumBlock);
  ASSERT_EQ(complaint(at("m")), "");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  put(path, bytes);
  EXPECT_SAYS(complaint(at("m")), "model.safetensors does not match its folder's manifest.json");
}

TEST_F(SealedFolder, OtherLengthsAndMissingFilesAreFound) {
  const std::string folder = write("m");
  for (const char* name : {"model.safetensors", "preprocessor_config.json"}) {
    const std::string path = folder + "/" + name, good = read_file(path, kMost);
    for (const std::string& bad : {good + " ", good.substr(0, good.size() - 1)}) {
      put(path, bad);
      EXPECT_SAYS(complaint(folder), name);
    }
    fs::remove(path);
    EXPECT_SAYS(complaint(folder), name);
    put(path, good);
  }
}

TEST_F(SealedFolder, AnEditIsAcceptedOnceSealedAnew) {
  const std::string folder = write("m"), path = folder + "/config.json";
  Json config = parse_json(read_file(path, kMost), path);
  config["id2label"]["0"] = "edited";
  put(path, config.dump(2));
  EXPECT_SAYS(complaint(folder), "config.json");
  EXPECT_SAYS(complaint(folder), "--manifest --update");
  seal_folder(folder);
  EXPECT_EQ(complaint(folder), "");
  EXPECT_EQ(open_model(folder)->card().labels.at(0), "edited");
  fs::remove(folder + "/manifest.json");
  put(path, read_file(path, kMost) + "\n");
  EXPECT_EQ(complaint(folder), "");
}

// The caches of other libraries are laid out like this.
TEST_F(SealedFolder, FilesThatAreLinksAreSealedToo) {
  const std::string folder = write("m", false);
  fs::rename(folder + "/model.safetensors", at("blob"));
  fs::create_symlink("../blob", folder + "/model.safetensors");
  seal_folder(folder);
  EXPECT_EQ(folder_manifest(folder)->files.size(), 3u);
  expect_flips_found(folder, "model.safetensors");
}

TEST_F(SealedFolder, AManifestOfAnotherProgramIsLeftAlone) {
  const std::string folder = write("m", false), path = folder + "/manifest.json";
  for (const char* text : {"{\"name\": \"an app\"}", "no json", ""}) {
    put(path, text);
    EXPECT_EQ(complaint(folder), "") << text;
    EXPECT_THROW(seal_folder(folder), Error);
    EXPECT_EQ(read_file(path, 100), text);
  }
}

TEST_F(SealedFolder, ACheckpointUsedAsAModelIsChecked) {
  CheckpointStore store(at("run"));
  CheckpointContent content;
  content.step = 3;
  content.write_model = [&](const std::string& folder) {
    write_model(folder, tiny(), {.dialect = Dialect::kHf, .overwrite = true}, by_rule);
  };
  store.save(content);
  const std::string folder = at("run/checkpoints/latest");
  EXPECT_EQ(complaint(folder), "");
  for (const char* name : {"model.safetensors", "config.json", "preprocessor_config.json"})
    expect_flips_found(folder, name);
  // The step and the run's facts stay when an edit is accepted.
  seal_folder(folder);
  EXPECT_EQ(store.open(3).step, 3);
}

TEST_F(SealedFolder, AdaptersAreChecked) {
  const std::string folder = write("m");
  const LoraConfig lora{.rank = 2};
  write_adapters(folder, tiny().config, lora, by_rule);
  seal_folder(folder);
  ASSERT_EQ(complaint(folder), "");
  expect_flips_found(folder, kAdaptersFile);
}

// A large file is read in parts: blocks are compared once, whatever the order and the size of the reads.
TEST_F(SealedFolder, BlocksAreComparedWhateverPartIsRead) {
  fs::create_directories(at("big"));
  std::string content(2 * kChecksumBlock + 1000, '\0');
  for (size_t i = 0; i < content.size(); ++i)
    content[i] = static_cast<char>(counter_hash(5, i / 8) >> (i % 8));
  put(at("big/x.bin"), content);
  seal_folder(at("big"));
  const auto check = [&](uint64_t offset, size_t bytes) {
    std::string part(bytes, '\0');
    open_sealed(at("big/x.bin"))->read_at(offset, std::as_writable_bytes(std::span(part)));
    return part == content.substr(offset, bytes);
  };
  const std::pair<uint64_t, size_t> parts[] = {{0, 10},
                                               {kChecksumBlock - 3, 7},
                                               {5, 2 * kChecksumBlock},
                                               {2 * kChecksumBlock, 1000},
                                               {0, content.size()}};
  for (const auto& [offset, bytes] : parts) EXPECT_TRUE(check(offset, bytes)) << offset;
  std::string bad = content;
  bad[kChecksumBlock + 77] = static_cast<char>(bad[kChecksumBlock + 77] ^ 4);
  put(at("big/x.bin"), bad);
  EXPECT_TRUE(check(0, 10));
  for (const auto& [offset, bytes] : {parts[1], parts[2], parts[4]})
    EXPECT_THROW(check(offset, bytes), Error);
  try {
    check(kChecksumBlock, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_SAYS(error.what(),
                "x.bin does not match its folder's manifest.json (bytes 1048576 to 2097151): it is damaged");
  }
}

// A name without a folder is of a file in the folder one stands in.
TEST_F(SealedFolder, WhatIsKeptLiesBesideABareName) {
  const Json facts = {{kLearnedFrom, "cats"}};
  write_model(at("m"), tiny(), {.manifest = true, .facts = facts}, by_rule);
  const WorkingFolder there(at("m"));
  EXPECT_EQ(kept_facts("model.safetensors"), facts);
}

}  // namespace
}  // namespace vitrail
