#include "data/datasets/packed.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/text.h"
#include "data/datasets/formats.h"
#include "data/datasets/tables.h"
#include "data/preprocess.h"

namespace vitrail {

namespace {

constexpr std::string_view kMagic = "VITRPACK";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kHeaderBytes = 16, kFooterBytes = 32;
constexpr uint32_t kMaxName = 4096;

void append_text(std::string& target, std::string_view text) {
  append_le(target, static_cast<uint32_t>(text.size()));
  target += text;
}

std::string take_name(ByteCursor& table) {
  const auto length = table.take<uint32_t>();
  VT_REQUIRE(length <= kMaxName, ErrorKind::kData, "a name of %u bytes", length);
  return std::string(table.take_text(length));
}

struct Place {
  uint64_t offset;
  uint32_t bytes, crc;
  uint32_t height, width;
  uint8_t pixels, channels;
};

Place take_place(ByteCursor& table, uint64_t data_end) {
  Place place{};
  place.offset = table.take<uint64_t>();
  place.bytes = table.take<uint32_t>();
  place.crc = table.take<uint32_t>();
  place.height = table.take<uint32_t>();
  place.width = table.take<uint32_t>();
  place.pixels = table.take<uint8_t>();
  place.channels = table.take<uint8_t>();
  VT_REQUIRE(
      place.offset >= kHeaderBytes && place.offset <= data_end && place.bytes <= data_end - place.offset,
      ErrorKind::kData, "an image of %u bytes at byte %llu, beyond the end", place.bytes,
      static_cast<unsigned long long>(place.offset));
  const bool shaped = (place.channels == 1 || place.channels == 3) && place.height > 0 &&
                      place.height < 65536 && place.width > 0 && place.width < 65536 &&
                      uint64_t{place.height} * place.width * place.channels == place.bytes;
  VT_REQUIRE(place.pixels <= 1 && (!place.pixels || shaped), ErrorKind::kData,
             "%u bytes for an image of %u x %u pixels and %u channels", place.bytes, place.height,
             place.width, place.channels);
  return place;
}

class Packed : public Dataset {
 public:
  Packed(std::unique_ptr<ByteSource> bytes, Part part) : bytes_(std::move(bytes)) {
    const std::string content = read_table();
    ByteCursor table(as_byte_span(content));
    const auto count = table.take<uint32_t>();
    VT_REQUIRE(count <= ClassNames::kMost, ErrorKind::kData, "%u classes", count);
    for (uint32_t i = 0; i < count; ++i) classes_.push_back(take_name(table));
    multi_label_ = table.take<uint8_t>() != 0;
    labels_ = LabelTable(multi_label_);
    const auto samples = table.take<uint64_t>();
    for (uint64_t i = 0; i < samples; ++i) take_sample(table, part);
    VT_REQUIRE(table.remaining() == 0, ErrorKind::kData, "%zu bytes after the last sample",
               table.remaining());
    size_ = static_cast<int64_t>(places_.size());
  }

  std::string sample_name(int64_t index) const override {
    return std::string(names_[static_cast<size_t>(index)]);
  }
  std::span<const int32_t> labels(int64_t index) const override {
    return labels_[static_cast<size_t>(index)];
  }

  Image load(int64_t index, int64_t least_side) const override {
    const Place& place = places_[static_cast<size_t>(index)];
    const std::string name = sample_name(index);
    if (!place.pixels) return formats::decode_sample(*encoded(index), name, least_side);
    Image image = Image::blank(place.height, place.width, place.channels);
    read_image(place, name, std::as_writable_bytes(std::span(image.pixels)));
    return image;
  }

  std::optional<std::string> encoded(int64_t index) const override {
    const Place& place = places_[static_cast<size_t>(index)];
    if (place.pixels) return std::nullopt;
    std::string bytes(place.bytes, '\0');
    read_image(place, sample_name(index), std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }

  uint64_t stored_bytes(int64_t index) const override { return places_[static_cast<size_t>(index)].bytes; }

  std::optional<PixelShape> pixel_shape() const override {
    std::optional<PixelShape> shape;
    for (const Place& place : places_) {
      const PixelShape own{place.height, place.width, place.channels};
      if (!place.pixels || (shape && *shape != own)) return std::nullopt;
      shape = own;
    }
    return shape;
  }

 private:
  std::string read_table() {
    VT_REQUIRE(bytes_->size() >= kHeaderBytes + kFooterBytes, ErrorKind::kData,
               "too short for a packed dataset");
    char header[kHeaderBytes], footer[kFooterBytes];
    bytes_->read_at(0, std::as_writable_bytes(std::span(header)));
    bytes_->read_at(bytes_->size() - kFooterBytes, std::as_writable_bytes(std::span(footer)));
    ByteCursor head(std::as_bytes(std::span(header))), foot(std::as_bytes(std::span(footer)));
    VT_REQUIRE(head.take_text(kMagic.size()) == kMagic, ErrorKind::kData, "not a packed dataset");
    const auto version = head.take<uint32_t>();
    VT_REQUIRE(version == kVersion, ErrorKind::kData, "packed as version %u, this program reads version %u",
               version, kVersion);
    table_offset_ = foot.take<uint64_t>();
    const auto table_bytes = foot.take<uint64_t>();
    const auto crc = foot.take<uint32_t>();
    foot.take<uint32_t>();
    VT_REQUIRE(foot.take_text(kMagic.size()) == kMagic, ErrorKind::kData,
               "cut short: it does not end as it should");
    const uint64_t end = bytes_->size() - kFooterBytes;
    VT_REQUIRE(table_offset_ >= kHeaderBytes && table_offset_ <= end && table_bytes == end - table_offset_,
               ErrorKind::kData, "its table lies outside of it");
    require_free_memory(table_bytes, "the table of a packed dataset");
    std::string table(table_bytes, '\0');
    bytes_->read_at(table_offset_, std::as_writable_bytes(std::span(table)));
    VT_REQUIRE(crc32c(as_byte_span(table)) == crc, ErrorKind::kData, "its table is damaged (checksum)");
    return table;
  }

  void take_sample(ByteCursor& table, Part wanted) {
    const Place place = take_place(table, table_offset_);
    const bool val = table.take<uint8_t>() != 0;
    const std::string name = take_name(table);
    const auto count = table.take<uint32_t>();
    VT_REQUIRE(count <= table.remaining() / sizeof(int32_t) && (multi_label_ || count == 1), ErrorKind::kData,
               "%u labels for %s", count, quoted(name).c_str());
    std::vector<int32_t> labels(count);
    for (int32_t& label : labels) {
      label = table.take<int32_t>();
      VT_REQUIRE(label >= 0 && label < static_cast<int32_t>(classes_.size()), ErrorKind::kData,
                 "the label %d of %s, expected 0 to %zu", label, quoted(name).c_str(), classes_.size() - 1);
    }
    if (wanted != Part::kAll && val != (wanted == Part::kVal)) return;
    places_.push_back(place);
    names_.add(name);
    labels_.add(labels);
  }

  void read_image(const Place& place, const std::string& name, std::span<std::byte> target) const {
    bytes_->read_at(place.offset, target);
    VT_REQUIRE(crc32c(target) == place.crc, ErrorKind::kData, "%s: %s is damaged (checksum)",
               bytes_->name().c_str(), formats::printable(name).c_str());
  }

  std::unique_ptr<ByteSource> bytes_;
  uint64_t table_offset_ = 0;
  std::vector<Place> places_;
  NameList names_;
  LabelTable labels_;
};

}  // namespace

PackedImage PackedImage::of_pixels(const Image& image) {
  return {true, image.height, image.width, image.channels,
          std::string(image.pixels.begin(), image.pixels.end())};
}

PackWriter::PackWriter(const std::string& path, const std::vector<std::string>& classes, bool multi_label)
    : file_(path) {
  std::string header(kMagic);
  append_le(header, kVersion);
  append_le(header, uint32_t{0});
  file_.write(header);
  append_le(head_, static_cast<uint32_t>(classes.size()));
  for (const std::string& name : classes) append_text(head_, name);
  append_le(head_, static_cast<uint8_t>(multi_label));
}

void PackWriter::add(const std::string& name, std::span<const int32_t> labels, Part part,
                     const PackedImage& image) {
  VT_REQUIRE(name.size() <= kMaxName && image.bytes.size() <= UINT32_MAX, ErrorKind::kData,
             "%s: the name or the image is too long to be packed", quoted(name).c_str());
  append_le(rows_, file_.position());
  append_le(rows_, static_cast<uint32_t>(image.bytes.size()));
  append_le(rows_, crc32c(as_byte_span(image.bytes)));
  append_le(rows_, static_cast<uint32_t>(image.height));
  append_le(rows_, static_cast<uint32_t>(image.width));
  append_le(rows_, static_cast<uint8_t>(image.pixels));
  append_le(rows_, static_cast<uint8_t>(image.channels));
  append_le(rows_, static_cast<uint8_t>(part == Part::kVal));
  append_text(rows_, name);
  append_le(rows_, static_cast<uint32_t>(labels.size()));
  for (const int32_t label : labels) append_le(rows_, label);
  file_.write(image.bytes);
  ++count_;
}

void PackWriter::finish() {
  std::string table = std::move(head_);
  append_le(table, count_);
  table += rows_;
  std::string footer;
  append_le(footer, file_.position());
  append_le(footer, static_cast<uint64_t>(table.size()));
  append_le(footer, crc32c(as_byte_span(table)));
  append_le(footer, kVersion);
  footer += kMagic;
  file_.write(table);
  file_.write(footer);
  file_.commit();
}

std::unique_ptr<Dataset> open_packed_bytes(std::unique_ptr<ByteSource> bytes, Part part) {
  const std::string name = bytes->name();
  return with_context(name, [&]() -> std::unique_ptr<Dataset> {
    auto dataset = std::make_unique<Packed>(std::move(bytes), part);
    if (part == Part::kVal && dataset->size() == 0) return nullptr;
    return dataset;
  });
}

std::unique_ptr<Dataset> formats::open_packed(const std::string& place, Part part) {
  return open_packed_bytes(std::make_unique<RandomAccessFile>(place), part);
}

PackedImage packed(const Dataset& data, int64_t index, int64_t side) {
  if (side > 0) {
    PreprocessConfig config;
    config.height = config.width = config.resize = side;
    return PackedImage::of_pixels(crop_for_display(data.load(index, side), config));
  }
  const Image image = data.load(index, 0);  // decoded in any case: what is packed can be read
  if (auto file = data.encoded(index)) return PackedImage::of_file(std::move(*file));
  return PackedImage::of_pixels(image);
}

}  // namespace vitrail
