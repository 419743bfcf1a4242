// File systems that tests cannot mount, and a crash between any two steps on the disk, without a second
// program: this test program has its own rename, renameat2, unlinkat, symlink, statvfs and fsync, which pass
// everything on until a fault is set.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace vitrail::testing {

// From now on folders cannot be swapped, as on NFS, Lustre and FUSE; `code` is the errno. 0: they can again.
void refuse_exchange(int code);

// From now on links cannot be made, as on FAT. 0: they can again.
void refuse_links(int code);

// From now on files and folders cannot be flushed. 0: they can again.
void refuse_flushes(int of_files, int of_folders);

// What a file system says of its room, in blocks: those free include those kept for root, which nobody else
// may use.
struct Room {
  uint64_t blocks, free, available;
};
constexpr uint64_t kRoomBlock = 512;

// From now on every file system has this room; none: what it has.
void tell_room(const std::optional<Room>& room);

// From now on files named .nfs* cannot be deleted: NFS leaves them of files that a process holds open.
void hold_nfs_files(bool hold);

// Runs `body` in a process of its own, which dies instead of its `call`-th such step, counted from 1. Returns
// false when it made fewer steps and ended by itself.
bool dies_at(long call, const std::function<void()>& body);

}  // namespace vitrail::testing
