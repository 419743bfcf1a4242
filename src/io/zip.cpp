#include "io/zip.h"

#include <zlib.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "base/text.h"
#include "io/zip_directory.h"

namespace vitrail {

// Inflates one entry piece by piece, reading its packed bytes as it goes.
class ZipStream::Inflater {
 public:
  Inflater(const ByteSource& bytes, const ZipEntry& entry)
      : bytes_(bytes), offset_(entry.data_offset), left_(entry.packed_size) {
    VT_CHECK(inflateInit2(&stream_, -MAX_WBITS) == Z_OK, "zlib does not start");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Returns the bytes produced: target.size(), or fewer at the end of the stream.
  size_t inflate_into(std::span<std::byte> target) {
    size_t produced = 0;
    while (produced < target.size() && !ended_) {
      const size_t room = std::min<size_t>(target.size() - produced, 1u << 30);
      stream_.next_out = reinterpret_cast<Bytef*>(target.data() + produced);
      stream_.avail_out = static_cast<uInt>(room);
      step();
      produced += room - stream_.avail_out;
    }
    return produced;
  }

  // Returns whether the stream is complete, gives nothing more, and used all its bytes.
  bool finished() {
    std::byte extra;
    return inflate_into({&extra, 1}) == 0 && ended_ && left_ == 0 && stream_.avail_in == 0;
  }

 private:
  void step() {
    if (stream_.avail_in == 0 && left_ > 0) {
      const size_t count = static_cast<size_t>(std::min<uint64_t>(left_, buffer_.size()));
      bytes_.read_at(offset_, std::span(buffer_).first(count));
      offset_ += count;
      left_ -= count;
      stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
      stream_.avail_in = static_cast<uInt>(count);
    }
    const int status = ::inflate(&stream_, Z_NO_FLUSH);
    ended_ = status == Z_STREAM_END;
    // With input and room given, Z_BUF_ERROR means that the packed bytes ran out.
    VT_REQUIRE(ended_ || status == Z_OK, ErrorKind::kData, "damaged deflate data (%s)",
               stream_.msg ? stream_.msg : "it ends too early");
  }

  const ByteSource& bytes_;
  uint64_t offset_, left_;
  bool ended_ = false;
  z_stream stream_{};
  std::vector<std::byte> buffer_ = std::vector<std::byte>(64 << 10);
};

namespace {

uint32_t crc_of(uint32_t crc, std::span<const std::byte> bytes) {
  if (bytes.empty()) return crc;  // zlib would restart the checksum at a null pointer
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

ZipStream::ZipStream(const ByteSource& bytes, const ZipEntry& entry) : bytes_(bytes), entry_(entry) {
  if (entry.deflated) inflater_ = std::make_unique<Inflater>(bytes, entry);
}
ZipStream::~ZipStream() = default;

void ZipStream::read(std::span<std::byte> target) {
  VT_CHECK(target.size() <= entry_.size - position_);
  with_context(bytes_.name() + ": zip entry " + quoted(entry_.name), [&] {
    if (!inflater_) bytes_.read_at(entry_.data_offset + position_, target);
    VT_REQUIRE(!inflater_ || inflater_->inflate_into(target) == target.size(), ErrorKind::kData,
               "inflates to less than the %llu bytes it announces",
               static_cast<unsigned long long>(entry_.size));
    crc_ = crc_of(crc_, target);
    position_ += target.size();
    if (position_ == entry_.size) check_end();
  });
}

void ZipStream::skip(uint64_t count) {
  std::vector<std::byte> passed(static_cast<size_t>(std::min<uint64_t>(count, 64 << 10)));
  for (uint64_t left = count; left > 0;) {
    const auto piece = std::span(passed).first(static_cast<size_t>(std::min<uint64_t>(left, passed.size())));
    read(piece);
    left -= piece.size();
  }
}

void ZipStream::check_end() {
  VT_REQUIRE(!inflater_ || inflater_->finished(), ErrorKind::kData,
             "inflates to more than the %llu bytes it announces",
             static_cast<unsigned long long>(entry_.size));
  if (crc_ != entry_.crc)
    throw Error(ErrorKind::kData, strf("CRC is %08x, expected %08x: the data is damaged", crc_, entry_.crc),
                "fetch or write the file again");
}

ZipReader::ZipReader(std::shared_ptr<const ByteSource> bytes, const ZipLimits& limits)
    : bytes_(std::move(bytes)), entries_(read_zip_directory(*bytes_, limits)) {
  for (size_t i = 0; i < entries_.size(); ++i)
    VT_REQUIRE(by_name_.emplace(entries_[i].name, i).second, ErrorKind::kData, "two zip entries are named %s",
               quoted(entries_[i].name).c_str());
}

std::optional<size_t> ZipReader::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

size_t ZipReader::peek(size_t index, std::span<std::byte> target) const {
  const ZipEntry& entry = entries_.at(index);
  const auto wanted = target.first(static_cast<size_t>(std::min<uint64_t>(target.size(), entry.size)));
  return with_context("zip entry " + quoted(entry.name), [&] {
    if (entry.deflated) return ZipStream::Inflater(*bytes_, entry).inflate_into(wanted);
    bytes_->read_at(entry.data_offset, wanted);
    return wanted.size();
  });
}

void ZipReader::read(size_t index, std::span<std::byte> head, std::span<std::byte> body) const {
  const ZipEntry& entry = entries_.at(index);
  VT_CHECK(head.size() + body.size() == entry.size);
  ZipStream stream(*bytes_, entry);
  stream.read(head);
  stream.read(body);
}

void ZipReader::read_stored(size_t index, uint64_t offset, std::span<std::byte> target) const {
  const ZipEntry& entry = entries_.at(index);
  VT_CHECK(!entry.deflated && offset <= entry.size && target.size() <= entry.size - offset);
  with_context("zip entry " + quoted(entry.name),
               [&] { bytes_->read_at(entry.data_offset + offset, target); });
}

std::unique_ptr<ZipStream> ZipReader::stream(size_t index) const {
  return std::make_unique<ZipStream>(*bytes_, entries_.at(index));
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> head,
                    std::span<const std::byte> body) {
  using namespace zip_format;
  const uint64_t size = head.size() + body.size();
  written_.push_back({name, size, file_.position(), crc_of(crc_of(0, head), body)});
  const bool is64 = size >= zip64_from_;
  std::string header;
  append_le(header, kLocalHeader);
  append_le(header, kVersion64);
  append_le(header, kFlagUtf8);
  append_le(header, kStored);
  append_le<uint16_t>(header, 0);
  append_le(header, kFirstDay);
  append_le(header, written_.back().crc);
  for (int i = 0; i < 2; ++i) append_le<uint32_t>(header, is64 ? kSee64 : static_cast<uint32_t>(size));
  append_le(header, static_cast<uint16_t>(name.size()));
  append_le<uint16_t>(header, is64 ? 20 : 0);
  header += name;
  if (is64) {
    append_le(header, kExtra64);
    append_le<uint16_t>(header, 16);
    for (int i = 0; i < 2; ++i) append_le(header, size);
  }
  file_.write(header);
  file_.write(head);
  file_.write(body);
}

std::string ZipWriter::directory_record(const Written& entry) const {
  using namespace zip_format;
  const bool size64 = entry.size >= zip64_from_, offset64 = entry.offset >= zip64_from_;
  std::string extra;
  for (int i = 0; size64 && i < 2; ++i) append_le(extra, entry.size);
  if (offset64) append_le(extra, entry.offset);
  std::string record;
  append_le(record, kDirectoryEntry);
  for (int i = 0; i < 2; ++i) append_le(record, kVersion64);
  append_le(record, kFlagUtf8);
  append_le(record, kStored);
  append_le<uint16_t>(record, 0);
  append_le(record, kFirstDay);
  append_le(record, entry.crc);
  for (int i = 0; i < 2; ++i) append_le(record, size64 ? kSee64 : static_cast<uint32_t>(entry.size));
  append_le(record, static_cast<uint16_t>(entry.name.size()));
  append_le(record, static_cast<uint16_t>(extra.empty() ? 0 : extra.size() + 4));
  record.append(10, '\0');  // no comment, first disk, no attributes
  append_le(record, offset64 ? kSee64 : static_cast<uint32_t>(entry.offset));
  record += entry.name;
  if (extra.empty()) return record;
  append_le(record, kExtra64);
  append_le(record, static_cast<uint16_t>(extra.size()));
  return record + extra;
}

void ZipWriter::finish() {
  using namespace zip_format;
  const uint64_t offset = file_.position(), count = written_.size();
  std::string end;
  for (const Written& entry : written_) end += directory_record(entry);
  const uint64_t size = end.size();
  const bool is64 =
      offset >= zip64_from_ || size >= zip64_from_ || count >= std::min<uint64_t>(kSee64Count, zip64_from_);
  if (is64) {
    append_le(end, kEnd64);
    append_le<uint64_t>(end, kEnd64Bytes - 12);
    for (int i = 0; i < 2; ++i) append_le(end, kVersion64);
    for (int i = 0; i < 2; ++i) append_le<uint32_t>(end, 0);
    for (int i = 0; i < 2; ++i) append_le(end, count);
    append_le(end, size);
    append_le(end, offset);
    append_le(end, kLocator64);
    append_le<uint32_t>(end, 0);
    append_le(end, offset + size);
    append_le<uint32_t>(end, 1);
  }
  append_le(end, kEnd);
  append_le<uint32_t>(end, 0);
  for (int i = 0; i < 2; ++i) append_le(end, is64 ? kSee64Count : static_cast<uint16_t>(count));
  append_le(end, is64 ? kSee64 : static_cast<uint32_t>(size));
  append_le(end, is64 ? kSee64 : static_cast<uint32_t>(offset));
  append_le<uint16_t>(end, 0);
  file_.write(end);
}

}  // namespace vitrail
