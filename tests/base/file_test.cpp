#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/bytes.h"
#include "base/error.h"

namespace vitrail {
namespace {

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "vitrail-file-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  size_t file_count() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  std::filesystem::path folder_;
};

template <typename Body>
ErrorKind kind_of(Body&& body, const std::string& says) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    return error.kind();
  }
  ADD_FAILURE() << "no error; expected " << says;
  return ErrorKind::kInternal;
}

TEST_F(FileTest, WholeFileWithCap) {
  write_file(at("f"), std::string(200000, 'x'));
  EXPECT_EQ(read_file(at("f"), 200000), std::string(200000, 'x'));
  EXPECT_EQ(kind_of([&] { read_file(at("f"), 199999); }, "larger than"), ErrorKind::kData);
  EXPECT_EQ(kind_of([&] { read_file(at("none"), 10); }, "No such file"), ErrorKind::kData);
  EXPECT_EQ(kind_of([&] { read_file(folder_, 10); }, "Is a directory"), ErrorKind::kData);
  write_file(at("empty"), "");
  EXPECT_EQ(read_file(at("empty"), 0), "");
}

TEST_F(FileTest, RandomAccessChecksItsRange) {
  write_file(at("f"), "0123456789");
  const RandomAccessFile file(at("f"));
  const MemoryBytes memory("memory", "0123456789");
  for (const ByteSource* source :
       {static_cast<const ByteSource*>(&file), static_cast<const ByteSource*>(&memory)}) {
    EXPECT_EQ(source->size(), 10u);
    std::string target(4, ' ');
    source->read_at(6, std::as_writable_bytes(std::span(target)));
    EXPECT_EQ(target, "6789");
    source->read_at(10, {});
    for (const uint64_t offset : {uint64_t{7}, uint64_t{11}, ~uint64_t{0}, ~uint64_t{0} - 2})
      EXPECT_EQ(
          kind_of([&] { source->read_at(offset, std::as_writable_bytes(std::span(target))); }, "cut short"),
          ErrorKind::kData);
  }
}

TEST_F(FileTest, OnlyRegularFilesAreOpened) {
  EXPECT_EQ(kind_of([&] { RandomAccessFile{folder_.string()}; }, "a folder"), ErrorKind::kData);
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(kind_of([&] { RandomAccessFile{at("pipe")}; }, "is a pipe"), ErrorKind::kData);
  EXPECT_EQ(kind_of([&] { RandomAccessFile{at("none")}; }, "No such file"), ErrorKind::kData);
}

TEST_F(FileTest, APipeWithANameOrADeviceIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(kind_of([&] { read_file(at("pipe"), 10); }, "pipe is a pipe, expected a regular file"),
            ErrorKind::kData);
  EXPECT_EQ(kind_of([] { read_file("/dev/zero", 10); }, "is a device"), ErrorKind::kData);
}

TEST_F(FileTest, APipeFromTheShellIsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the reader has to wait for the first byte
    EXPECT_EQ(::write(ends[1], "late", 4), 4);
    ::close(ends[1]);
  });
  EXPECT_EQ(read_file(strf("/dev/fd/%d", ends[0]), 10), "late");
  writer.join();
  ::close(ends[0]);
}

TEST_F(FileTest, AFolderIsRefusedBeforeAnythingIsWritten) {
  std::filesystem::create_directory(folder_ / "home");
  std::filesystem::create_symlink("home", at("link"));
  for (const char* name : {"home", "home/", "link", "unborn/"}) {
    EXPECT_EQ(kind_of([&] { AtomicFile file(at(name)); }, "is a folder"), ErrorKind::kWrite) << name;
    EXPECT_EQ(kind_of([&] { AtomicFile file(at(name)); }, "try: name a file in it"), ErrorKind::kWrite);
  }
  EXPECT_EQ(file_count(), 2u);
}

TEST_F(FileTest, ALinkStaysAndWhatItLeadsToIsReplaced) {
  std::filesystem::create_directory(folder_ / "home");
  write_file(at("home/real"), "old");
  std::filesystem::create_symlink("home/real", at("near"));
  std::filesystem::create_symlink(at("near"), at("far"));
  std::filesystem::create_symlink("home/unborn", at("dangling"));
  write_file(at("far"), "new");
  write_file(at("dangling"), "born");
  EXPECT_EQ(read_file(at("home/real"), 10), "new");
  EXPECT_EQ(read_file(at("home/unborn"), 10), "born");
  for (const char* link : {"near", "far", "dangling"})
    EXPECT_TRUE(std::filesystem::is_symlink(at(link))) << link;
  EXPECT_EQ(file_count(), 4u);
}

TEST_F(FileTest, APipeOrADeviceIsWrittenToAndStays) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(kind_of([&] { write_file(at("pipe"), "x"); }, "nobody reads from it"), ErrorKind::kWrite);
  const int reader = ::open(at("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  write_file(at("pipe"), "through");
  char got[16] = {};
  EXPECT_EQ(::read(reader, got, sizeof got), 7);
  EXPECT_STREQ(got, "through");
  ::close(reader);
  std::filesystem::create_symlink("/dev/null", at("null"));
  write_file(at("null"), "gone");
  EXPECT_TRUE(std::filesystem::is_fifo(at("pipe")));
  EXPECT_TRUE(std::filesystem::is_character_file(at("null")));
  EXPECT_EQ(file_count(), 2u);
}

TEST_F(FileTest, ADescriptorOfOursKeepsWhatItHolds) {
  const int held = ::open(at("f").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::write(held, "first ", 6), 6);
  write_file(strf("/dev/fd/%d", held), "second");
  ::close(held);
  EXPECT_EQ(read_file(at("f"), 20), "first second");
}

TEST_F(FileTest, AtomicFileReplacesOnlyOnCommit) {
  write_file(at("f"), "old");
  {
    AtomicFile abandoned(at("f"));
    abandoned.write("half");
    EXPECT_EQ(abandoned.position(), 4u);
    EXPECT_EQ(file_count(), 2u);
  }
  EXPECT_EQ(file_count(), 1u);
  EXPECT_EQ(read_file(at("f"), 10), "old");
  AtomicFile file(at("f"));
  file.write("new ");
  file.write(as_byte_span("text"));
  EXPECT_EQ(read_file(at("f"), 10), "old");
  file.commit();
  EXPECT_EQ(read_file(at("f"), 10), "new text");
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(FileTest, NothingIsWrittenAfterACommit) {
  AtomicFile file(at("f"));
  file.write("x");
  file.commit();
  EXPECT_EQ(kind_of([&] { file.write("y"); }, "write after commit"), ErrorKind::kInternal);
  EXPECT_EQ(kind_of([&] { file.commit(); }, "committed twice"), ErrorKind::kInternal);
  EXPECT_EQ(read_file(at("f"), 10), "x");
}

TEST_F(FileTest, APathThatIsNotThereIsToBeChecked) {
  EXPECT_EQ(kind_of([&] { read_file(at("none"), 10); }, "try: check the path"), ErrorKind::kData);
  try {
    read_file(folder_, 10);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.hint(), "") << "it is there, and a folder";
  }
}

TEST_F(FileTest, WritingFailuresNameThePath) {
  EXPECT_EQ(kind_of([&] { write_file(at("no/such/f"), "x"); }, "no/such/f"), ErrorKind::kWrite);
  std::filesystem::create_directory(folder_ / "taken");
  std::ofstream(at("taken/inside")) << "x";
  EXPECT_EQ(kind_of([&] { write_file(at("taken"), "x"); }, "taken is a folder"), ErrorKind::kWrite);
  EXPECT_EQ(file_count(), 1u);
}

// The system takes what stands before a NUL for the whole path, so that another file would be read or
// replaced.
TEST_F(FileTest, PathsEndWhereTheyEnd) {
  write_file(at("f"), "kept");
  const std::string cut = at("f") + std::string("\0x", 2);
  EXPECT_EQ(kind_of([&] { read_file(cut, 10); }, "a NUL ends a path"), ErrorKind::kData);
  EXPECT_EQ(kind_of([&] { RandomAccessFile file(cut); }, "a NUL ends a path"), ErrorKind::kData);
  EXPECT_EQ(kind_of([&] { write_file(cut, "other"); }, "a NUL ends a path"), ErrorKind::kWrite);
  EXPECT_EQ(read_file(at("f"), 10), "kept");
  EXPECT_EQ(kind_of([&] { require_path(std::string("f\0", 2)); }, "expected a path, found \"f\\x00\""),
            ErrorKind::kUsage);
  EXPECT_NO_THROW(require_path(at("f")));
}

TEST(ByteCursor, NeverPassesTheEnd) {
  ByteCursor cursor(as_byte_span("\x01\x02\x03"));
  EXPECT_EQ(cursor.take<uint16_t>(), 0x0201);
  EXPECT_EQ(cursor.remaining(), 1u);
  EXPECT_EQ(kind_of([&] { cursor.take<uint16_t>(); }, "cut short"), ErrorKind::kData);
  EXPECT_EQ(kind_of([&] { cursor.take(UINT64_MAX); }, "cut short"), ErrorKind::kData);
  EXPECT_EQ(cursor.take_text(1), "\x03");
}

}  // namespace
}  // namespace vitrail
