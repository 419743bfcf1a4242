#include "telemetry/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <type_traits>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/run_files.h"

namespace vitrail {

namespace {
constexpr size_t kFlushBytes = 1 << 16;

// Field numbers of TensorBoard's protocol (event.proto, summary.proto, tensor.proto).
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum SummaryField { kSummaryValue = 1 };
enum ValueField { kTag = 1, kSimpleValue = 2, kImage = 4, kTensor = 8, kMetadata = 9 };
enum ImageField { kHeight = 1, kWidth = 2, kColourspace = 3, kEncoded = 4 };
enum TensorField { kDtype = 1, kTensorShape = 2, kStringValue = 8 };
constexpr uint64_t kDtypeString = 7, kSessionStart = 1;

// One protobuf message being written: a field is a key (number, wire type) and its value.
class Message {
 public:
  Message& varint(int field, uint64_t value) {
    key(field, 0);
    append_varint(value);
    return *this;
  }
  template <typename T>
  requires std::is_floating_point_v<T> Message& fixed(int field, T value) {
    key(field, sizeof value == 8 ? 1 : 5);
    append_le(bytes_, value);
    return *this;
  }
  Message& text(int field, std::string_view value) {
    key(field, 2);
    append_varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void key(int field, unsigned wire_type) { append_varint(static_cast<unsigned>(field) << 3 | wire_type); }
  void append_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

Message event(double wall_time, int64_t step) {
  return Message().fixed(kWallTime, wall_time).varint(kStep, static_cast<uint64_t>(step));
}

std::string summary_event(const Message& value, int64_t step, double wall_time) {
  return event(wall_time, step).message(kSummary, Message().message(kSummaryValue, value)).bytes();
}

// A CRC of data that itself holds CRCs is weak, so the format stores it rotated and shifted.
uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(as_byte_span(bytes));
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

constexpr std::string_view kNameStart = RunFiles::kEvents;
constexpr double kLastSortable = 1e10;  // seconds, in the year 2286; later ones take more digits

// Returns the latest start time in the names of the folder's files; 0 without one.
double newest_start(const std::string& folder) {
  double newest = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    double start = 0;
    if (!name.starts_with(kNameStart)) continue;
    std::from_chars(name.data() + kNameStart.size(), name.data() + name.size(), start,
                    std::chars_format::fixed);
    if (start < kLastSortable) newest = std::max(newest, start);
  }
  return newest;
}

// Makes a name that sorts after those of earlier starts, because TensorBoard reads files in name order.
std::string file_name(const std::string& folder, double wall_time) {
  static std::atomic<unsigned> counter{0};
  constexpr double kTick = 1e-6;
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  return strf("%s%017.6f.%s.%ld.%u", kNameStart.data(), std::max(wall_time, newest_start(folder) + kTick),
              host, static_cast<long>(::getpid()), counter++);
}
}  // namespace

EventWriter::EventWriter(const std::string& folder, double wall_time, std::optional<int64_t> first_step,
                         WriteTrouble trouble)
    : file_(folder + "/" + file_name(folder, wall_time), std::move(trouble)) {
  record(Message().fixed(kWallTime, wall_time).text(kFileVersion, "brain.Event:2").bytes());
  if (first_step) {
    const Message start = Message().varint(1, kSessionStart);
    record(event(wall_time, *first_step).message(kSessionLog, start).bytes());
  }
  flush();
}

EventWriter::~EventWriter() {
  flush();
}

void EventWriter::scalar(const std::string& tag, double value, int64_t step, double wall_time) {
  const Message entry = Message().text(kTag, tag).fixed(kSimpleValue, static_cast<float>(value));
  record(summary_event(entry, step, wall_time));
}

void EventWriter::image(const std::string& tag, const EncodedPng& image, int64_t step, double wall_time) {
  const std::string_view bytes(reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size());
  const Message encoded = Message()
                              .varint(kHeight, static_cast<uint64_t>(image.height))
                              .varint(kWidth, static_cast<uint64_t>(image.width))
                              .varint(kColourspace, static_cast<uint64_t>(image.channels))
                              .text(kEncoded, bytes);
  record(summary_event(Message().text(kTag, tag).message(kImage, encoded), step, wall_time));
}

void EventWriter::text(const std::string& tag, const std::string& markdown, int64_t step, double wall_time) {
  const Message dim = Message().varint(1, 1), shape = Message().message(2, dim);
  const Message tensor =
      Message().varint(kDtype, kDtypeString).message(kTensorShape, shape).text(kStringValue, markdown);
  const Message metadata = Message().message(1, Message().text(1, "text"));
  record(summary_event(
      Message().text(kTag, tag + "/text_summary").message(kTensor, tensor).message(kMetadata, metadata), step,
      wall_time));
}

void EventWriter::record(const std::string& bytes) {
  std::string length;
  append_le(length, uint64_t{bytes.size()});
  pending_ += length;
  append_le(pending_, masked_crc(length));
  pending_ += bytes;
  append_le(pending_, masked_crc(bytes));
  if (pending_.size() >= kFlushBytes) flush();
}

void EventWriter::flush() {
  if (!pending_.empty()) file_.append(pending_);
  pending_.clear();
}

void EventWriter::sync() {
  flush();
  file_.sync();
}

}  // namespace vitrail
