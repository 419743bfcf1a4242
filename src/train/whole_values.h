// The persistent values of a run as one would have them: whole, whatever part each rank holds. The first rank
// reads them one at a time and gets the other ranks' parts then; the others serve until it is done. Memory: one
// value.
#pragma once

#include <span>

#include "runtime/persistent_store.h"

namespace vitrail {

class WholeValues {
 public:
  // `ranks` may be null: then this rank has everything.
  WholeValues(const PersistentStore& store, MeshCommunicators* ranks);

  const PersistentLayout& layout() const { return store_.layout(); }
  // The shape of the whole value, outermost dim first.
  static std::vector<int64_t> shape_of(const PersistentValue& value);
  static size_t bytes_of(const PersistentValue& value);

  // Reads a whole value into `target`, of bytes_of() bytes. Where ranks hold parts of it, the first rank calls
  // it while all others serve().
  void read(const PersistentValue& value, std::span<std::byte> target);
  std::vector<float> read_floats(const std::string& name);
  // Hands this rank's parts to the first one until that has called end_serving(). Both do nothing where every
  // rank has everything.
  void serve();
  void end_serving();
  // Writes this rank's part of a whole value.
  void write(const PersistentValue& value, std::span<const std::byte> whole);

 private:
  int64_t exchange_request(int64_t mine);
  std::vector<int64_t> parts_of_ranks(const PersistentValue& value);
  void receive_part(const PersistentValue& value, int sender, std::span<std::byte> target);
  void give_part(const PersistentValue& value);
  std::vector<std::byte> own_part(const PersistentValue& value) const;

  const PersistentStore& store_;
  MeshCommunicators* ranks_;  // null: no value lies in parts
};

}  // namespace vitrail
