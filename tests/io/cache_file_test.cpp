// The cache container: what was written is read back, and nothing else is ever accepted.
#include "io/cache_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include "io/model_files.h"
#include "io/safetensors.h"
#include "io/source_identity.h"
#include "samples.h"

namespace vitrail {
namespace {

using testing::put;
using testing::TempFolder;

constexpr size_t kMost = 64 << 20;
const std::string kIdentity = "made from the test's rule\n";

std::vector<std::byte> content(size_t bytes, unsigned seed = 1) {
  std::vector<std::byte> made(bytes);
  for (size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>((i * 2654435761u + seed) >> 13);
  return made;
}

std::string read_back(const std::string& path, std::vector<std::byte>& target,
                      const std::string& identity = kIdentity) {
  ThreadPool pool(2);
  return read_cache_file(path, identity, target, pool);
}

void write(const std::string& path, const std::vector<std::byte>& bytes) {
  ThreadPool pool(2);
  write_cache_file(path, kIdentity, bytes, pool);
}

TEST(CacheFile, GivesBackWhatWasWritten) {
  const TempFolder folder;
  for (const size_t bytes : {0, 1, 4096, (1 << 20) - 1, 1 << 20, (2 << 20) + 77}) {
    const auto written = content(bytes);
    write(folder / "c.bin", written);
    std::vector<std::byte> found(bytes);
    EXPECT_EQ(read_back(folder / "c.bin", found), "");
    EXPECT_EQ(found, written) << bytes;
  }
}

TEST(CacheFile, RefusesWhatIsNotItsOwn) {
  const TempFolder folder;
  write(folder / "c.bin", content(5000));
  std::vector<std::byte> found(5000), shorter(4999), longer(5001);
  EXPECT_NE(read_back(folder / "absent.bin", found), "");
  EXPECT_NE(read_back(folder.path().string(), found), "") << "a folder";
  EXPECT_NE(read_back(folder / "c.bin", shorter), "");
  EXPECT_NE(read_back(folder / "c.bin", longer), "");
  std::string other = kIdentity;
  other[3] ^= 1;
  EXPECT_EQ(read_back(folder / "c.bin", found, other), "it was made from something else");
  EXPECT_NE(read_back(folder / "c.bin", found, kIdentity + "x"), "");
  EXPECT_NE(read_back(folder / "c.bin", found, ""), "");
  EXPECT_NE(read_back(put(folder, "text.bin", "no cache"), found), "");
}

// Flips one bit of a file in place; a second call restores it.
void flip(const std::string& path, size_t at) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(at));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ (1 << (at % 8))));
}

TEST(CacheFile, FindsEveryFlippedByteOfTheHeaderAndOneInEveryPage) {
  const TempFolder folder;
  const std::string path = folder / "c.bin";
  const auto written = content((1 << 20) + 5000);
  write(path, written);
  const size_t whole = std::filesystem::file_size(path), header = whole - written.size();
  std::vector<std::byte> found(written.size());
  ThreadPool pool(1);
  const auto refused = [&](size_t at) {
    flip(path, at);
    const bool is = !read_cache_file(path, kIdentity, found, pool).empty();
    flip(path, at);
    return is;
  };
  for (size_t at = 0; at < header; ++at) ASSERT_TRUE(refused(at)) << at;
  for (size_t at = header; at < whole; at += 4096) ASSERT_TRUE(refused(at)) << at;
  ASSERT_TRUE(refused(whole - 1));
  EXPECT_EQ(read_cache_file(path, kIdentity, found, pool), "") << "and whole again it serves";
}

TEST(CacheFile, FindsEveryTruncationAndGrowth) {
  const TempFolder folder;
  const auto written = content(9000);
  write(folder / "c.bin", written);
  const std::string whole = read_file(folder / "c.bin", kMost);
  std::vector<std::byte> found(written.size());
  for (size_t length = 0; length < whole.size(); length += 97)
    ASSERT_NE(read_back(put(folder, "d.bin", whole.substr(0, length)), found), "") << length;
  ASSERT_NE(read_back(put(folder, "d.bin", whole + "x"), found), "");
}

TEST(CacheFile, ADiskThatIsFullLeavesNothingBehind) {
  const TempFolder folder;
  struct rlimit before {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 100'000, before.rlim_max };
  ::setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(write(folder / "c.bin", content(300'000)), Error);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// Each reader sees one writer's content, whole.
TEST(CacheFile, WritersAndReadersDoNotDisturbEachOther) {
  const TempFolder folder;
  const auto first = content(200'000, 1), second = content(200'000, 7);
  write(folder / "c.bin", first);
  std::thread writer([&] {
    for (int i = 0; i < 20; ++i) write(folder / "c.bin", i % 2 ? first : second);
  });
  for (int i = 0; i < 100; ++i) {
    std::vector<std::byte> found(first.size());
    ASSERT_EQ(read_back(folder / "c.bin", found), "");
    ASSERT_TRUE(found == first || found == second);
  }
  writer.join();
}

TEST(SourceIdentity, ChangesWithContentSizeAndTime) {
  const TempFolder folder;
  const std::string path = folder / "w.safetensors";
  constexpr int64_t kElems = 300'000;
  const auto write_weights = [&](float value, int64_t elems) {
    write_safetensors(
        path, {{{"w", DType::kF32, {elems}, static_cast<size_t>(elems) * 4}, [=](std::span<std::byte> to) {
                  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
                  for (size_t i = 0; i < to.size(); ++i) to[i] = bytes[i % 4];
                }}});
  };
  const auto identity = [&] { return source_identity(*open_safetensors(path)); };
  const auto set_time = [&](long nanoseconds) {
    const struct timespec times[2] = {{1000, nanoseconds}, {1000, nanoseconds}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  };
  write_weights(1, kElems);
  set_time(5);
  const std::string before = identity();
  EXPECT_EQ(identity(), before);
  set_time(6);
  EXPECT_NE(identity(), before) << "a nanosecond later";
  write_weights(2, kElems);
  set_time(5);
  EXPECT_NE(identity(), before) << "other weights, size and time kept";
  write_weights(1, kElems + 1);
  set_time(5);
  EXPECT_NE(identity(), before);
  write_weights(1, kElems);
  set_time(5);
  EXPECT_EQ(identity(), before) << "the same again, in another inode";
  put(folder, "adapters.safetensors", "anything");
  EXPECT_NE(identity(), before) << "adapters came";
}

// Whatever the shards are called, and where the index is named without its folder.
TEST(SourceIdentity, CoversEveryShardOfAnIndex) {
  const TempFolder folder;
  const auto write_shard = [&](float value) {
    write_safetensors(folder / "part-1", {{{"w", DType::kF32, {1}, 4}, [=](std::span<std::byte> to) {
                                             std::memcpy(to.data(), &value, to.size());
                                           }}});
  };
  put(folder, "index.json", R"({"weight_map": {"w": "part-1"}})");
  const auto identity = [](const std::string& path) { return source_identity(*open_tensors(path)); };
  write_shard(1);
  const std::string before = identity(folder / "index.json");
  write_shard(2);
  const std::string after = identity(folder / "index.json");
  EXPECT_NE(after, before);
  put(folder, "other.safetensors", "none of its shards");
  EXPECT_EQ(identity(folder / "index.json"), after);
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_NO_THROW(EXPECT_EQ(identity("index.json"), after));
  std::filesystem::current_path(here);
}

}  // namespace
}  // namespace vitrail
