// A save that several ranks make together. The first one leads: it asks the others for their pieces, and for
// their part in writing the model, until it has committed the checkpoint or given it up. A failure of any
// rank is everybody's, and nobody waits for a rank that failed. Knows no folder but the one it is told.
#pragma once

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/partners.h"

namespace vitrail {

class SharedSave {
 public:
  // `folder` is the store's as this rank sees it. Every rank makes one at the same time.
  SharedSave(Partners& partners, const CheckpointContent& content, std::string folder);

  // Called by the first rank: makes the save and tells the others how it ended. An Error becomes SaveFailed.
  void lead(const std::function<void()>& save);
  // Called by the others: does what the first rank asks for. Throws SaveFailed when the save has failed.
  void follow();

  // Called by the first rank within lead().
  int ranks() const { return partners_.size(); }
  uint64_t state_bytes() const { return state_bytes_; }  // of all ranks
  // Has every rank write its piece into the folder. Throws the error of the first rank that could not; NoRoom
  // only when it is one.
  std::vector<FileRecord> write_pieces(const std::string& folder, const std::string& save);
  void write_model(const std::string& folder);

 private:
  void order(const Json& order) { partners_.from_first(order.dump()); }
  std::vector<std::string> pieces_of_all(const std::string& folder, const std::string& save);
  void require_seen(const std::string& folder, const std::vector<FileRecord>& records);

  Partners& partners_;
  const CheckpointContent& content_;
  std::string folder_;
  uint64_t state_bytes_ = 0;
  int failed_ = 0;           // the rank whose error was thrown last
  std::string failed_text_;  // and its message
};

}  // namespace vitrail
