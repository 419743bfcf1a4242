// A crash between any two steps on the disk, without a second program: this test program has its own rename,
// renameat2, unlinkat and fsync, which pass everything on until a fault is set.
#pragma once

#include <functional>

namespace vitrail::testing {

// From now on folders cannot be swapped, as on NFS, Lustre and FUSE.
void refuse_exchange(bool refuse);

// From now on files named .nfs* cannot be deleted: NFS leaves them of files that a process holds open.
void hold_nfs_files(bool hold);

// Runs `body` in a process of its own, which dies instead of its `call`-th such step, counted from 1. Returns
// false when it made fewer steps and ended by itself.
bool dies_at(long call, const std::function<void()>& body);

}  // namespace vitrail::testing
