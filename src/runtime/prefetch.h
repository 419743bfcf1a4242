// Prefetch of bytes to a device during its work: one piece at a time is uploaded on a stream of its own to a
// prefetch buffer, from which the programs' stream copies it. Events alone order the two streams; the host
// never waits. Knows nothing of batches, and of programs only that they run on the device's own stream.
#pragma once

#include <memory>
#include <span>

#include "runtime/rank_context.h"
#include "tensor/buffer.h"

namespace vitrail {

class Prefetch {
 public:
  // Pieces of `bytes`; of 0, it has no stream and is never used.
  Prefetch(size_t bytes, RankContext& rank);

  size_t bytes() const { return buffer_.bytes(); }
  // Starts to bring a piece. It stays as it is until work behind take(), or Device::finish(), is done.
  void send(std::span<const std::byte> piece);
  // A copy of the piece sent last, enqueued like any other work; the next may be sent at once.
  void take(void* target);

 private:
  Device* device_;
  Buffer buffer_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> landed_, taken_;
};

}  // namespace vitrail
