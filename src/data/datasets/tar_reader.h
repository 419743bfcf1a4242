// Iterates over the members of a tar file without reading their content: ustar, with pax records for path and
// size and GNU long names. Links, devices and other kinds are refused; names are data, never paths. Knows
// nothing of samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"

namespace vitrail {

struct TarMember {
  std::string name;
  uint64_t offset = 0, size = 0;  // of its content in the file
};

class TarReader {
 public:
  explicit TarReader(const ByteSource& file) : file_(file) {}

  // Returns the next regular file, folders skipped; nothing at the end. Throws Error(kData).
  std::optional<TarMember> next();

 private:
  struct Header;
  bool read_header(Header& header);
  void require_end() const;
  std::string read_extension(const Header& header);
  void apply_pax(const std::string& records);

  const ByteSource& file_;
  uint64_t position_ = 0;
  // The fields that extension headers set for the member that follows them.
  std::optional<std::string> name_;
  std::optional<uint64_t> size_;
};

}  // namespace vitrail
