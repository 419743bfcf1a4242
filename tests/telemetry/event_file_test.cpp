#include "telemetry/event_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "base/bytes.h"
#include "data/decode.h"
#include "run_folder.h"
#include "telemetry/run_log.h"

namespace vitrail {
namespace {

// Computes CRC-32C bit by bit, independently of the writer's own.
uint32_t slow_crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
  }
  return ~crc;
}

uint32_t unmasked(uint32_t stored) {
  const uint32_t rotated = stored - 0xA282EAD8u;
  return rotated >> 17 | rotated << 15;
}

// Returns the records of a file; fails the test at the first bad checksum.
std::vector<std::string> records_of(const std::string& content) {
  ByteCursor cursor(as_byte_span(content));
  std::vector<std::string> records;
  while (cursor.remaining() > 0) {
    const std::string length(cursor.take_text(8));
    EXPECT_EQ(unmasked(cursor.take<uint32_t>()), slow_crc32c(length));
    uint64_t bytes = 0;
    std::memcpy(&bytes, length.data(), 8);
    records.emplace_back(cursor.take_text(bytes));
    EXPECT_EQ(unmasked(cursor.take<uint32_t>()), slow_crc32c(records.back()));
  }
  return records;
}

// Returns a protobuf message's fields by number: raw bytes of fixed and text fields, decimal digits of
// varints.
std::map<int, std::string> fields_of(std::string_view message) {
  ByteCursor cursor(as_byte_span(message));
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = cursor.take<uint8_t>();
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
  };
  std::map<int, std::string> fields;
  while (cursor.remaining() > 0) {
    const uint64_t key = varint();
    std::string& value = fields[static_cast<int>(key >> 3)];
    switch (key & 7) {
      case 0:
        value = std::to_string(varint());
        break;
      case 1:
        value = cursor.take_text(8);
        break;
      case 5:
        value = cursor.take_text(4);
        break;
      default:
        value = cursor.take_text(varint());
    }
  }
  return fields;
}

template <typename T>
T number(const std::string& bytes) {
  T value{};
  EXPECT_EQ(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

TEST(EventFile, FramesAndFieldsAreThoseOfTheFormat) {
  const RunFolder folder;
  std::string path;
  const uint8_t png[] = {1, 2, 3};
  {
    EventWriter writer(folder.path(), 1700000000.25, 7);
    writer.scalar("train/loss", 0.5, 300, 1700000001);
    writer.image("image", {png, 640, 480, 3}, 1, 1700000002);
    writer.text("config", "**bold**", 1, 1700000003);
    path = writer.path();
  }
  EXPECT_NE(path.find("/events.out.tfevents.1700000000.25"), std::string::npos);
  const auto records = records_of(read_file(path, 1 << 20));
  ASSERT_EQ(records.size(), 5u);
  EXPECT_EQ(fields_of(records[0])[3], "brain.Event:2");
  EXPECT_EQ(number<double>(fields_of(records[0])[1]), 1700000000.25);
  EXPECT_EQ(fields_of(records[1])[2], "7");
  EXPECT_EQ(fields_of(fields_of(records[1])[7])[1], "1");  // session start
  const auto value = [&](size_t i) { return fields_of(fields_of(fields_of(records[i])[5])[1]); };
  EXPECT_EQ(fields_of(records[2])[2], "300");
  EXPECT_EQ(value(2)[1], "train/loss");
  EXPECT_EQ(number<float>(value(2)[2]), 0.5f);
  auto image = fields_of(value(3)[4]);
  EXPECT_EQ(image[1] + "x" + image[2] + "x" + image[3], "480x640x3");
  EXPECT_EQ(image[4], std::string("\1\2\3"));
  EXPECT_EQ(value(4)[1], "config/text_summary");
  auto tensor = fields_of(value(4)[8]);
  EXPECT_EQ(tensor[8], "**bold**");
  EXPECT_EQ(tensor[1], "7");                                   // of texts
  EXPECT_EQ(fields_of(fields_of(tensor[2])[2])[1], "1");       // one of them
  EXPECT_EQ(fields_of(fields_of(value(4)[9])[1])[1], "text");  // the plugin that shows it
  EXPECT_EQ(number<double>(fields_of(records[3])[1]), 1700000002);
}

TEST(EventFile, EveryStartHasAFileOfItsOwnAndLaterOnesSortLater) {
  const RunFolder folder;
  const std::string first = EventWriter(folder.path(), 1700000000.5).path();
  const std::string second = EventWriter(folder.path(), 1700000000.75).path();
  const std::string third = EventWriter(folder.path(), 1700000010.0).path();
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
}

TEST(EventFile, LaterStartsSortLaterWhateverTheClockSays) {
  const RunFolder folder;
  const std::string before_1970 = EventWriter(folder.path(), -5.0).path();
  EXPECT_NE(before_1970.find("/events.out.tfevents.0"), std::string::npos) << before_1970;
  const std::string first = EventWriter(folder.path(), 1700000000.5).path();
  const std::string set_back = EventWriter(folder.path(), 1600000000.0).path();
  const std::string again = EventWriter(folder.path(), 1600000000.0).path();
  EXPECT_LT(before_1970, first);
  EXPECT_LT(first, set_back);
  EXPECT_LT(set_back, again);
}

// A name without a number, or with one that no clock shows, is no start.
TEST(EventFile, OtherNamesSayNothingOfEarlierStarts) {
  const RunFolder folder;
  std::ofstream(folder.file("events.out.tfevents.junk")) << "x";
  std::ofstream(folder.file("events.out.tfevents.99999999999")) << "x";
  EXPECT_NE(EventWriter(folder.path(), 0.5).path().find("tfevents.0000000000.500000."), std::string::npos);
}

TEST(EventFile, SurvivesManyRecordsAndAMissingFolderIsRefused) {
  const RunFolder folder;
  std::string path;
  {
    EventWriter writer(folder.path(), 1.0);
    for (int64_t i = 0; i < 5000; ++i) writer.scalar("x", static_cast<double>(i), i, 2.0);
    path = writer.path();
  }
  EXPECT_EQ(records_of(read_file(path, 1 << 20)).size(), 5001u);
  EXPECT_THROW(EventWriter(folder.file("none"), 1.0), Error);
}

void log_steps(RunLog& log, int64_t from, int64_t to, double loss) {
  for (int64_t step = from; step <= to; ++step)
    log.train({.step = step, .loss = loss / static_cast<double>(step), .lr = 0.125, .time = 1.7e9});
}

// The sample that tensorboard_test.py reads with TensorBoard's own package: interrupted after step 8, resumed
// at step 5. Without EVENT_FOLDER it only shows that writing works.
TEST(EventFile, SampleRun) {
  const RunFolder own;
  const char* wanted = std::getenv("EVENT_FOLDER");
  const std::string folder = wanted ? wanted : own.path();
  {
    RunLog log(folder, {});
    log_steps(log, 1, 8, 100);
  }
  RunLog log(folder, {.resume_step = 5});
  log_steps(log, 6, 10, 60);
  log.eval({.step = 10, .top1 = 0.75, .top5 = 1.0, .loss = 0.5, .count = 8, .time = 1.7e9});
  const Image image = Image::blank(6, 4, 3);
  const std::vector<uint8_t> png = encode_png(image);
  log.image("image", {png, image.width, image.height, image.channels}, 10);
  log.text("config", "a *text*", 10);
  EXPECT_EQ(log.trimmed().undone, 3);
}

}  // namespace
}  // namespace vitrail
