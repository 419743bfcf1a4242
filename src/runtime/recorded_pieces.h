// A program as a device replays it: recorded whole, or in the pieces between nodes that are run anew each
// time, such as exchanges through the host. Knows nothing of ranks.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backend/device.h"

namespace vitrail {

class RecordedPieces {
 public:
  using RunNode = std::function<void(size_t node)>;

  // `apart` says which nodes are run anew.
  RecordedPieces(size_t nodes, const std::function<bool(size_t node)>& apart);

  // Returns false when another thread's work spoilt a recording; then it may be called again.
  bool record(Device& device, const RunNode& run_node);
  void replay(const RunNode& run_node) const;
  size_t recordings() const;

 private:
  struct Piece {
    size_t first, end;  // nodes
    bool apart;
    std::unique_ptr<Recording> recording = nullptr;
  };
  std::vector<Piece> pieces_;
};

}  // namespace vitrail
