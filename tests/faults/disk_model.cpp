#include "faults/disk_model.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/rng.h"

namespace vitrail::testing {

namespace fs = std::filesystem;

namespace {
std::string parent(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}
std::string leaf(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}
}  // namespace

std::vector<LoggedCall> read_log(const std::string& path) {
  std::istringstream log(read_file(path, size_t{64} << 20));
  std::vector<LoggedCall> calls;
  for (std::string line; std::getline(log, line);) {
    LoggedCall call;
    std::istringstream fields(line);
    std::getline(fields, call.kind, '\t');
    for (std::string field; std::getline(fields, field, '\t');) call.args.push_back(field);
    if (call.kind == "write" || call.kind == "say") {
      call.data.resize(std::stoul(call.args.back()));
      call.args.pop_back();
      log.read(call.data.data(), static_cast<std::streamsize>(call.data.size()));
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

DiskModel::DiskModel(std::string root) : root_(std::move(root)) {
  add({.kind = Inode::kFolder});
}

int DiskModel::add(Inode inode) {
  inodes_.push_back(std::move(inode));
  return static_cast<int>(inodes_.size()) - 1;
}

std::map<std::string, int> DiskModel::names(const Inode& folder, size_t changes) {
  std::map<std::string, int> names;
  for (size_t i = 0; i < changes; ++i)
    for (const auto& [name, inode] : folder.changes[i])
      if (inode < 0)
        names.erase(name);
      else
        names[name] = inode;
  return names;
}

int DiskModel::find(const std::string& path) const {
  VT_CHECK(path.starts_with(root_), "%s", path.c_str());
  std::istringstream steps(path.substr(root_.size()));
  int inode = 0;
  for (std::string step; std::getline(steps, step, '/');) {
    if (step.empty()) continue;
    const Inode& folder = inodes_[static_cast<size_t>(inode)];
    inode = names(folder, folder.changes.size()).at(step);
  }
  return inode;
}

void DiskModel::change(const std::string& folder, Change change) {
  inodes_[static_cast<size_t>(find(folder))].changes.push_back(std::move(change));
}

void DiskModel::apply(const LoggedCall& call) {
  const std::string& path = call.args.empty() ? call.kind : call.args.back();
  const std::string folder = parent(path), name = leaf(path);
  if (call.kind == "create") {
    change(folder, {{name, add({.kind = Inode::kFile})}});
  } else if (call.kind == "mkdir") {
    change(folder, {{name, add({.kind = Inode::kFolder})}});
  } else if (call.kind == "symlink") {
    change(folder, {{name, add({.kind = Inode::kLink, .now = call.args[0]})}});
  } else if (call.kind == "remove") {
    change(folder, {{name, -1}});
  } else if (call.kind == "rename" || call.kind == "exchange") {
    VT_CHECK(parent(call.args[0]) == folder);
    const int replaced = call.kind == "exchange" ? find(path) : -1;
    change(folder, {{leaf(call.args[0]), replaced}, {name, find(call.args[0])}});
  } else if (call.kind == "write") {
    std::string& content = inodes_[static_cast<size_t>(find(call.args[0]))].now;
    const size_t offset = std::stoul(call.args[1]);
    content.resize(std::max(content.size(), offset + call.data.size()));
    content.replace(offset, call.data.size(), call.data);
  } else if (call.kind == "sync") {
    Inode& inode = inodes_[static_cast<size_t>(find(path))];
    inode.flushed = inode.now;
    inode.flushed_changes = inode.changes.size();
  } else {
    VT_CHECK(call.kind == "say", "%s", call.kind.c_str());
  }
}

void DiskModel::materialise(const std::string& target, Loss loss, uint64_t seed) const {
  write_node(0, target, loss, seed);
}

void DiskModel::write_node(int index, const std::string& target, Loss loss, uint64_t seed) const {
  const Inode& inode = inodes_[static_cast<size_t>(index)];
  const uint64_t chance = counter_hash(seed, static_cast<uint64_t>(index));
  const bool random = loss == Loss::kRandom;
  if (inode.kind == Inode::kLink) return fs::create_symlink(inode.now, target);
  if (inode.kind == Inode::kFolder) {
    size_t kept = loss == Loss::kEverythingUnflushed ? inode.flushed_changes : inode.changes.size();
    if (random) kept -= chance % (kept - inode.flushed_changes + 1);
    fs::create_directory(target);
    for (const auto& [name, child] : names(inode, kept)) write_node(child, target + "/" + name, loss, seed);
    return;
  }
  std::string content = inode.flushed;
  if (loss == Loss::kUnflushedDataIsZero || (random && chance % 3 == 0)) {
    content.resize(inode.now.size());
  } else if (random && chance % 3 == 1) {
    content = inode.now.substr(0, content.size() + chance / 3 % (inode.now.size() - content.size() + 1));
  }
  std::ofstream(target, std::ios::binary) << content;
}

}  // namespace vitrail::testing
