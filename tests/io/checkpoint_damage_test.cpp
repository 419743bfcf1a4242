// Damage to finished checkpoints: each is detected and named, and the older checkpoint is used instead.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/crc32c.h"
#include "faults/small_run.h"
#include "io/checkpoint/manifest.h"
#include "io/samples.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBytes = 300'000;
constexpr const char* kState = "state-00000-of-00001.safetensors";
constexpr const char* kFiles[] = {"config.json", "model.safetensors", "manifest.json", kState};

bool is_long() {
  return std::getenv("VITRAIL_TEST_LONG") != nullptr;
}

class DamageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    CheckpointStore store(run_.path().string());
    for (int64_t step : {1, 2}) store.save(small_content(step, kBytes));
  }
  std::string newest(const std::string& name) {
    return CheckpointStore(run_.path().string()).folder_of(2) + "/" + name;
  }
  // Checks that the newest checkpoint is found bad with `part` in the message, and the older one is used.
  void expect_fallback(const std::string& part) {
    std::vector<std::string> problems;
    const auto opened = CheckpointStore(run_.path().string()).newest_good(&problems);
    ASSERT_TRUE(opened);
    EXPECT_EQ(opened->step, 1);
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_NE(problems[0].find(part), std::string::npos) << problems[0];
  }
  void expect_whole() {
    std::vector<std::string> problems;
    const auto opened = CheckpointStore(run_.path().string()).newest_good(&problems);
    ASSERT_TRUE(opened);
    EXPECT_EQ(opened->step, 2);
    EXPECT_TRUE(problems.empty());
    EXPECT_TRUE(holds_its_step(*opened, kBytes));
  }
  TempFolder run_;
};

void flip(const std::string& path, size_t offset, char mask) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(offset));
  const char byte = static_cast<char>(file.get() ^ mask);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
}

// Every byte of the small files and of the containers' headers, and one in each 4 KiB of the rest.
std::vector<size_t> places_to_flip(const std::string& path) {
  const size_t size = fs::file_size(path);
  size_t header = size;
  if (path.ends_with(".safetensors")) {
    uint64_t length = 0;
    RandomAccessFile(path).read_at(0, std::as_writable_bytes(std::span(&length, 1)));
    header = 8 + static_cast<size_t>(length);
  }
  std::vector<size_t> places;
  for (size_t at = 0; at < header; ++at) places.push_back(at);
  const size_t step = is_long() ? 512 : 4096;
  for (size_t at = header; at < size; at += step) places.push_back(at);
  places.push_back(size - 1);
  return places;
}

TEST_F(DamageTest, AFlippedBitAnywhereIsFoundAndItsFileNamed) {
  for (const char* name : kFiles) {
    const std::string path = newest(name);
    for (const size_t at : places_to_flip(path)) {
      const char mask = static_cast<char>(1 << (counter_hash(1, at) % 8));
      flip(path, at, mask);
      expect_fallback(name);
      flip(path, at, mask);
      ASSERT_FALSE(HasFailure()) << name << " byte " << at;
    }
  }
  expect_whole();
}

TEST_F(DamageTest, TheFirstBadBlockIsNamed) {
  CheckpointStore store(run_.path().string());
  store.save(small_content(2, 3 << 20));
  flip(newest("model.safetensors"), (2 << 20) + 77, 1);
  flip(newest("model.safetensors"), (3 << 20), 1);
  expect_fallback("model.safetensors is damaged: block 2 (bytes 2097152 to 3145727)");
}

TEST_F(DamageTest, WrongSizesAreFound) {
  for (const char* name : kFiles) {
    const std::string path = newest(name), content = read_file(path, 1 << 20);
    std::vector<size_t> sizes = {0, 1, content.size() - 1, content.size() + 1, content.size() + 5000};
    for (size_t at = 4096; at < content.size(); at += is_long() ? 4096 : 65536) sizes.push_back(at);
    for (const size_t size : sizes) {
      fs::resize_file(path, size);
      expect_fallback(name);
      write_file(path, content);
    }
  }
  expect_whole();
}

TEST_F(DamageTest, MissingAndSwappedFilesAreFound) {
  CheckpointStore store(run_.path().string());
  for (const char* name : kFiles) {
    SCOPED_TRACE(name);
    fs::rename(newest(name), newest("kept"));
    expect_fallback(name);
    fs::create_directory(newest(name));
    expect_fallback(name);
    fs::remove(newest(name));
    fs::copy_file(store.folder_of(1) + "/" + name, newest(name));
    expect_fallback(name);
    fs::rename(newest("kept"), newest(name));
  }
  fs::rename(newest("model.safetensors"), newest("kept"));
  fs::rename(newest(kState), newest("model.safetensors"));
  fs::rename(newest("kept"), newest(kState));
  expect_fallback("model.safetensors");
}

TEST_F(DamageTest, NothingGoodIsNothing) {
  CheckpointStore store(run_.path().string());
  for (int64_t step : {1, 2}) fs::remove(store.folder_of(step) + "/manifest.json");
  std::vector<std::string> problems;
  EXPECT_FALSE(store.newest_good(&problems));
  EXPECT_EQ(problems.size(), 2u);
}

// Returns `text` with one replacement, sealed again.
std::string forged(const std::string& text, const std::string& from, const std::string& to) {
  std::string body = text.substr(0, text.rfind(",\n \"manifest_crc32c\""));
  const size_t at = body.find(from);
  if (at == body.npos) ADD_FAILURE() << from << " is not in the manifest";
  body.replace(at, from.size(), to);
  return body + strf(",\n \"manifest_crc32c\": \"%08x\"\n}\n", crc32c(as_byte_span(body)));
}

TEST_F(DamageTest, HostileManifestsAreRefused) {
  const std::string text = read_file(newest("manifest.json"), 1 << 20);
  EXPECT_EQ(parse_manifest(text, "m").step, 2);
  const struct {
    const char *from, *to, *says;
  } cases[] = {
      {"\"step\": 2", "\"step\": -2", "\"step\" is missing or not a count"},
      {"\"step\": 2", "\"step\": 3", "its folder is named for step 2"},
      {"\"step\": 2", "\"step\": 18446744073709551615", "\"step\" is too large"},
      {"\"step\": 2", "\"step\": 2, \"step\": 2", "appears twice"},
      {"\"format\": 1", "\"format\": 0", "format 0 does not exist"},
      {"\"format\": 1", "\"format\": \"1\"", "\"format\" is missing or not a count"},
      {"\"format\": 1", "\"format\": 2", "\"pieces\" is missing or not a count"},
      {"\"format\": 1", "\"format\": 2, \"pieces\": 0, \"save\": \"x\"", "0 pieces"},
      {"\"format\": 1", "\"format\": 2, \"pieces\": 2", "\"save\" is missing or not text"},
      {"\"format\": 1", "\"format\": 2, \"pieces\": 2, \"save\": \"x\"",
       "does not list state-00000-of-00002.safetensors"},
      {"\"facts\": {", "\"facts\": 7, \"other\": {", "\"facts\" is missing or not an object"},
      {"\"files\": [", "\"files\": [7, ", "\"name\" is missing"},
      {"\"name\": \"config.json\"", "\"name\": \"../config.json\"", "not a plain file name"},
      {"\"name\": \"config.json\"", "\"name\": \"/etc/passwd\"", "not a plain file name"},
      {"\"name\": \"config.json\"", "\"name\": \"\"", "not a plain file name"},
      {"\"name\": \"config.json\"", "\"name\": \"..\"", "not a plain file name"},
      {"\"name\": \"config.json\"", "\"name\": \"a\\u0000b\"", "not a plain file name"},
      {"\"name\": \"config.json\"", "\"name\": \"manifest.json\"", "not a plain file name"},
      {"\"name\": \"config.json\"", "\"name\": \"model.safetensors\"", "is listed twice"},
      {"\"name\": \"config.json\"", "\"name\": \"other.json\"", "other.json"},
      {"\"name\": \"state-00000", "\"name\": \"stale-00000", "does not list state-00000"},
      {"\"bytes\": ", "\"bytes\": 9223372036854775807, \"was\": ", "digits of block checksums"},
      {"\"bytes\": ", "\"bytes\": 1e3, \"was\": ", "\"bytes\" is missing or not a count"},
      {"\"crc32c\": \"", "\"crc32c\": \"F", "is no checksum"},
      {"\"blocks\": \"", "\"blocks\": \"0", "digits of block checksums"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.to);
    write_file(newest("manifest.json"), forged(text, c.from, c.to));
    expect_fallback(c.says);
  }
}

TEST_F(DamageTest, ALaterFormatIsRefusedNotPassedOver) {
  const std::string text = read_file(newest("manifest.json"), 1 << 20);
  const std::string later = forged(text, "\"format\": 1", "\"format\": 3");
  const std::string sealed_otherwise = "{\"format\": 4, \"entirely\": \"different\"}";
  for (const std::string& manifest : {later, sealed_otherwise}) {
    write_file(newest("manifest.json"), manifest);
    expect_refusal("resume with the version that wrote it",
                   [&] { CheckpointStore(run_.path().string()).newest_good(); });
  }
  // An unknown member of a known format changes nothing.
  write_file(newest("manifest.json"), forged(text, "\"step\": 2", "\"step\": 2, \"later\": true"));
  expect_whole();
}

TEST(Manifest, NotesEveryBlock) {
  const std::string content(static_cast<size_t>(2 * kChecksumBlock) + 5, 'x');
  const FileRecord record = record_of(MemoryBytes("f", content), "f");
  EXPECT_EQ(record.bytes, content.size());
  EXPECT_EQ(record.crc, crc32c(as_byte_span(content)));
  ASSERT_EQ(record.blocks.size(), 3u);
  EXPECT_EQ(record.blocks[0], record.blocks[1]);
  EXPECT_EQ(record.blocks[2], crc32c(as_byte_span("xxxxx")));
  EXPECT_EQ(parse_manifest(manifest_text({3, {{"a", 1}}, {record}}), "m").files.at(0), record);
  EXPECT_TRUE(record_of(MemoryBytes("f", ""), "f").blocks.empty());
}

}  // namespace
}  // namespace vitrail::testing
