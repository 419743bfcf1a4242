// TensorBoard event files: records with masked CRC-32C around hand-encoded Event messages. Each start of a
// run writes a file of its own, as TensorBoard expects. Knows no training.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "telemetry/append_file.h"

namespace vitrail {

// A PNG image; sizes in pixels.
struct EncodedPng {
  std::span<const uint8_t> bytes;
  int64_t width = 0, height = 0;
  int64_t channels = 3;
};

class EventWriter {
 public:
  // Creates a file in `folder`, which must exist; its name sorts after those of the files that are there,
  // also when the clock was set back. `first_step` is a resumed run's next step: TensorBoard then discards
  // earlier files' events from that step on.
  EventWriter(const std::string& folder, double wall_time, std::optional<int64_t> first_step = {},
              WriteTrouble trouble = {});
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  void scalar(const std::string& tag, double value, int64_t step, double wall_time);
  void image(const std::string& tag, const EncodedPng& image, int64_t step, double wall_time);
  void text(const std::string& tag, const std::string& markdown, int64_t step, double wall_time);
  // Writes what was buffered to the file; this also happens when the buffer is large, and in the destructor.
  void flush();
  // Flushes, and on to the disk.
  void sync();
  const std::string& path() const { return file_.path(); }

 private:
  void record(const std::string& bytes);

  AppendFile file_;
  std::string pending_;
};

}  // namespace vitrail
