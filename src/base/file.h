// Files, with every system call checked: whole small files, random access, and writing that either replaces
// the target completely or leaves it alone. Knows no format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/error.h"

namespace vitrail {

// Throws `kind` for a path with a NUL in it: the system would take what stands before it for the whole.
void require_path(const std::string& path, ErrorKind kind = ErrorKind::kUsage);

// Returns the whole file as text; more than `max_bytes` is an error. A pipe that the shell opened for us is
// read to its end; a device, or a pipe that has a name, is refused, because a writer may never come.
std::string read_file(const std::string& path, size_t max_bytes);

// Reads the standard input to its end; more than `max_bytes` is an error.
std::string read_standard_input(size_t max_bytes);

// Bytes that can be read at any offset: a file, or memory in tests and fuzzing. Thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }

  // Fills `target` from `offset`; a range past the end is an Error(kData).
  void read_at(uint64_t offset, std::span<std::byte> target) const;

 protected:
  virtual void read_checked(uint64_t offset, std::span<std::byte> target) const = 0;
  std::string name_;
  uint64_t size_ = 0;
};

class RandomAccessFile : public ByteSource {
 public:
  explicit RandomAccessFile(const std::string& path);  // regular files only
  ~RandomAccessFile() override;
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;

 private:
  void read_checked(uint64_t offset, std::span<std::byte> target) const override;
  int fd_;
};

class MemoryBytes : public ByteSource {
 public:
  MemoryBytes(std::string name, std::string content);

 private:
  void read_checked(uint64_t offset, std::span<std::byte> target) const override;
  std::string content_;
};

// A file being written under a temporary name in the target's folder (base/half_written.h). commit() makes it
// durable and gives it its name; without commit() nothing remains. Failures are Error(kWrite). A link stays:
// what it leads to is replaced. A device or a pipe has no content to replace: it is written to as the bytes
// come.
class AtomicFile {
 public:
  // One that `tidies` looks through the folder for what dead processes have left of the same file.
  explicit AtomicFile(std::string path, bool tidies = true);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  uint64_t position() const { return position_; }
  void commit();

 private:
  [[noreturn]] void fail(const char* action) const;
  void open_temporary();

  std::string path_, folder_;
  std::string temporary_;  // empty: written directly, or in place already
  int fd_ = -1;
  uint64_t position_ = 0;
};

// Writes content that is in memory through an AtomicFile, which looks for nothing: such files may be many.
void write_file(const std::string& path, std::string_view content);

}  // namespace vitrail
