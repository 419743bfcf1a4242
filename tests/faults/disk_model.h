// A model of a disk that loses unflushed data: it replays the calls that the fault shim logged and computes
// what could be left of the files after a power failure. Names in a folder survive in the order they were
// given, at least up to the folder's last flush; content of a file is certain up to the file's last flush and
// anything after it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace vitrail::testing {

struct LoggedCall {
  std::string kind;               // create write sync rename exchange mkdir symlink remove say
  std::vector<std::string> args;  // paths, or the offset of a write
  std::string data;               // of a write, or what was said
};

std::vector<LoggedCall> read_log(const std::string& path);

class DiskModel {
 public:
  explicit DiskModel(std::string root);  // an empty folder, durable
  void apply(const LoggedCall& call);

  enum class Loss { kEverythingUnflushed, kUnflushedData, kUnflushedDataIsZero, kRandom };

  // Writes one state that the disk could be in now to the folder `target`, which must not exist.
  void materialise(const std::string& target, Loss loss, uint64_t seed) const;

 private:
  // Names that change together: inode, or -1 for none.
  using Change = std::vector<std::pair<std::string, int>>;
  struct Inode {
    enum Kind { kFile, kFolder, kLink } kind = kFile;
    std::string flushed, now;     // content of a file, target of a link
    std::vector<Change> changes;  // of a folder, in order
    size_t flushed_changes = 0;
  };

  int add(Inode inode);
  int find(const std::string& path) const;
  static std::map<std::string, int> names(const Inode& folder, size_t changes);
  void change(const std::string& folder, Change change);
  void write_node(int index, const std::string& target, Loss loss, uint64_t seed) const;

  std::string root_;
  std::vector<Inode> inodes_;
};

}  // namespace vitrail::testing
