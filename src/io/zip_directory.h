// The directory of a zip file: where it lies, what it lists, and whether the local headers agree with it. The
// record layouts and their signatures serve the writer too.
#pragma once

#include <vector>

#include "io/zip.h"

namespace vitrail {

namespace zip_format {
constexpr uint32_t kLocalHeader = 0x04034B50, kDirectoryEntry = 0x02014B50;
constexpr uint32_t kEnd = 0x06054B50, kEnd64 = 0x06064B50, kLocator64 = 0x07064B50;
constexpr uint64_t kLocalBytes = 30, kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr uint16_t kExtra64 = 0x0001;
constexpr uint32_t kSee64 = 0xFFFFFFFF;
constexpr uint16_t kSee64Count = 0xFFFF;
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint16_t kFlagDescriptor = 1 << 3, kFlagUtf8 = 1 << 11;
constexpr uint16_t kVersion64 = 45;
constexpr uint16_t kFirstDay = 0x0021;  // 1980-01-01: equal content gives equal files
}  // namespace zip_format

// Returns all entries, validated: names, sizes within the file, no overlap, agreement with the local headers.
std::vector<ZipEntry> read_zip_directory(const ByteSource& bytes, const ZipLimits& limits);

}  // namespace vitrail
