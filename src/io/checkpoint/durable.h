// Operations that checkpoints need of the disk beyond single files: flushing, folders that appear whole,
// links that change atomically, free space. Failures are Error(kWrite) with path and reason. Knows no format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vitrail {

// Returns the folder that a path lies in: "." for a plain name.
std::string parent_of(const std::string& path);

// Lists the names in the folder, sorted; none where there is no such folder. Throws Error(kData) when it
// cannot be listed.
std::vector<std::string> names_in(const std::string& folder);

// Flushes the content of a file, or the names in a folder, to the disk. A failed flush is never retried,
// because the content is lost even if a second attempt succeeds.
void sync_file(const std::string& path);
void sync_folder(const std::string& path);

// Throws Error(kWrite) when a file exists under the name of a folder to be made.
void require_no_file(const std::string& path);
// Makes the folder and its missing parents, their names durable.
void make_folders(const std::string& path);
// Makes one folder that must not exist yet.
void make_new_folder(const std::string& path);

// Renames the finished folder `from` to `to`, atomically and durably; a folder that had the name is swapped
// out and deleted, later if it cannot be now. Where the file system cannot swap (NFS, Lustre, FUSE), it is
// first moved to the name `aside`, and for a moment there is no `to`: see finish_replacing. All three lie in
// the same parent. On failure `to` is unchanged.
void replace_folder(const std::string& from, const std::string& to, const std::string& aside);
// Completes a replacement whose process died: without `to`, what was moved to `aside` gets its name back
// (true); otherwise it is deleted. replace_folder begins with it; a reader of `to` may call it, too.
bool finish_replacing(const std::string& to, const std::string& aside);

// Points the symbolic link `path` to `target`, atomically and durably; `temporary` is a free name beside it.
// Does nothing where links are not supported.
void replace_link(const std::string& path, const std::string& target, const std::string& temporary);

// Renames a folder that others may be reading out of the way, durably, and deletes it.
void remove_folder(const std::string& path);

// Deletes a folder that is no longer needed, if it exists, under another name, so that what is called `path`
// is always whole. What cannot be deleted now (a file that a reader on NFS holds open) is left to the next
// call for the same name. Never fails.
void discard(const std::string& path);

// Returns whether so many bytes are free there; true where the file system does not report it.
bool has_space(const std::string& folder, uint64_t bytes);
// Throws Error(kWrite) with path, needed and free bytes when fewer than `bytes` are free there.
void require_space(const std::string& folder, uint64_t bytes);

}  // namespace vitrail
