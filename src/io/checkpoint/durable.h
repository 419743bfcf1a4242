// What checkpoints need of the disk beyond single files: flushing, folders that appear whole, links that
// change at once, room. Failures are Error(kWrite) with path and reason. Knows no format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vitrail {

// The folder that a path lies in: "." for a plain name.
std::string parent_of(const std::string& path);

// Names in the folder, sorted; none where there is no such folder. Error(kData) when it cannot be listed.
std::vector<std::string> names_in(const std::string& folder);

// Flush the content of a file, or the names in a folder, to the disk. Never retried: after a failed flush
// the content is lost, whatever a second try says.
void sync_file(const std::string& path);
void sync_folder(const std::string& path);

// Error(kWrite) when a file has the name that a folder is to have.
void require_no_file(const std::string& path);
// The folder and those above it, made where missing, their names durable.
void make_folders(const std::string& path);
// One folder that must not exist yet.
void make_new_folder(const std::string& path);

// Gives the finished folder `from` the name `to`, at once and durably; a folder that had the name is swapped
// out and deleted, later if it cannot be now. Where the file system cannot swap (NFS, Lustre, FUSE), it is
// first moved to the name `aside`, and for a moment there is no `to`: see finish_replacing. All three lie in
// the same parent. On failure `to` is what it was.
void replace_folder(const std::string& from, const std::string& to, const std::string& aside);
// Ends a replacement that died with its process: without `to`, what was moved to `aside` gets its name back
// (true); otherwise it is deleted. replace_folder begins with it; whoever only reads `to` may call it, too.
bool finish_replacing(const std::string& to, const std::string& aside);

// Lets the symbolic link `path` point to `target`, at once and durably; `temporary` is a free name beside it.
// Does nothing where links are not supported.
void replace_link(const std::string& path, const std::string& target, const std::string& temporary);

// Takes a folder that others may look at out of sight, durably, and deletes it.
void remove_folder(const std::string& path);

// Deletes a folder that is needed no longer, if it is there, under another name: what is called `path` is
// always whole. What cannot be deleted now (a file that a reader on NFS holds open) is left to the next call
// for the same name. Never fails.
void discard(const std::string& path);

// Whether so many bytes are free there; true where the file system does not say.
bool has_space(const std::string& folder, uint64_t bytes);
// Error(kWrite) with path, needed and free bytes when less than `bytes` are free there.
void require_space(const std::string& folder, uint64_t bytes);

}  // namespace vitrail
