#include "runtime/prefetch.h"

#include "base/error.h"

namespace vitrail {

Prefetch::Prefetch(size_t bytes, RankContext& rank)
    : device_(rank.hardware.get()), buffer_(bytes, Category::kStaging, rank.memory()) {
  if (bytes == 0) return;
  stream_ = device_->create_stream();
  landed_ = device_->create_event();
  taken_ = device_->create_event();
}

void Prefetch::send(std::span<const std::byte> piece) {
  VT_CHECK(piece.size() == buffer_.bytes(), "%zu bytes where %zu land", piece.size(), buffer_.bytes());
  stream_->upload(buffer_.data(), piece.data(), piece.size());
  stream_->record(*landed_);
}

void Prefetch::take(void* target) {
  Stream& programs = device_->stream();
  programs.wait(*landed_);
  programs.copy(target, buffer_.data(), buffer_.bytes());
  programs.record(*taken_);
  stream_->wait(*taken_);  // the prefetch buffer is free again
}

}  // namespace vitrail
