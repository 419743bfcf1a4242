#include "runtime/recorded_pieces.h"

#include <algorithm>

namespace vitrail {

RecordedPieces::RecordedPieces(size_t nodes, const std::function<bool(size_t node)>& apart) {
  for (size_t node = 0; node < nodes; ++node) {
    const bool alone = apart(node);
    if (pieces_.empty() || alone || pieces_.back().apart)
      pieces_.push_back({node, node + 1, alone});
    else
      pieces_.back().end = node + 1;
  }
}

bool RecordedPieces::record(Device& device, const RunNode& run_node) {
  for (Piece& piece : pieces_) {
    if (piece.apart) continue;
    piece.recording = vitrail::record(device, [&] {
      for (size_t node = piece.first; node < piece.end; ++node) run_node(node);
    });
    if (!piece.recording) return false;
  }
  return true;
}

void RecordedPieces::replay(const RunNode& run_node) const {
  for (const Piece& piece : pieces_) {
    if (piece.recording)
      piece.recording->replay();
    else
      run_node(piece.first);
  }
}

size_t RecordedPieces::recordings() const {
  return static_cast<size_t>(
      std::count_if(pieces_.begin(), pieces_.end(), [](const Piece& piece) { return !piece.apart; }));
}

}  // namespace vitrail
