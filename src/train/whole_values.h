// The persistent values of a run as one would have them: whole, whatever part each rank holds. The first rank
// reads them one at a time and gets the other ranks' parts then; the others serve until it is done. Memory:
// one value.
#pragma once

#include <memory>
#include <span>

#include "runtime/persistent_store.h"
#include "train/part_table.h"

namespace vitrail {

class WholeValues {
 public:
  // `ranks` may be null: then this rank has everything.
  WholeValues(const PersistentStore& store, MeshCommunicators* ranks);

  const PersistentStore& store() const { return store_; }
  const PersistentLayout& layout() const { return store_.layout(); }
  // All values of the run, those of other stages of a pipeline too. Where ranks hold parts, the first rank
  // asks for these while all others serve().
  const std::vector<PersistentValue>& values();
  bool has(const std::string& name);
  const PersistentValue& at(const std::string& name);
  // The shape of the whole value, outermost dim first.
  static std::vector<int64_t> shape_of(const PersistentValue& value);
  static size_t bytes_of(const PersistentValue& value);

  // Reads a whole value into `target`, of bytes_of() bytes. Where ranks hold parts of it, the first rank
  // calls it while all others serve().
  void read(const PersistentValue& value, std::span<std::byte> target);
  std::vector<float> read_floats(const std::string& name);
  // Hands this rank's parts to the first one until that has called end_serving(). Both do nothing where every
  // rank has everything.
  void serve();
  void end_serving();

  // The parts of all ranks, of which there must be several; all of them ask for it at the same time.
  const PartTable& table();

 private:
  int64_t exchange_request(int64_t mine);
  void receive_part(const PersistentValue& value, int sender, std::span<std::byte> target);
  void give_part(size_t index);

  const PersistentStore& store_;
  MeshCommunicators* ranks_;
  bool in_parts_ = false;  // some value is, or lies on another stage
  std::unique_ptr<PartTable> table_;
};

// While it lives, the first rank may read values that lie in parts; the others are released with it.
class Served {
 public:
  explicit Served(WholeValues& values) : values_(values) {}
  ~Served();
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

 private:
  WholeValues& values_;
};

}  // namespace vitrail
