// Model folders with a manifest (io/checkpoint/manifest.h): written last by whoever writes the folder, and
// held against the files again as they are read, a block at a time. A folder without a manifest of ours, and
// a file that it does not list, are read as they are.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/manifest.h"

namespace vitrail {

// Beside a model and about it (licence, readme): no part of it, so not in its manifest.
bool is_companion(const std::string& name);

// Whether the folder holds a manifest of ours, damaged or not.
bool is_sealed(const std::string& folder);

// These files of the folder, flushed and read back. Whoever wrote them need not be trusted to have flushed.
std::vector<FileRecord> seal_files(const std::string& folder, const std::vector<std::string>& names);

// Writes the folder's manifest anew: every plain file in it but companions. Step and facts of a manifest that
// is there, as a checkpoint's, stay; `facts` are those of a folder that had none.
void seal_folder(const std::string& folder, Json facts = Json::object());

// Nothing where there is none, or one of some other program. Error(kData) when it is damaged.
std::optional<Manifest> folder_manifest(const std::string& folder);

// Opens a file; reading it is an Error(kData) where it is not what its folder's manifest says.
std::shared_ptr<const ByteSource> open_sealed(const std::string& path);
// All of it.
std::string read_sealed(const std::string& path, size_t max_bytes);

// What tells a weight file from another of the same form without reading all of it: its size and a checksum
// of its end, where a zip keeps the checksums of its members. Kept in the JSON beside a single file.
inline constexpr const char* kWeightsMark = "vitrail_weights";
Json weights_mark(const std::string& path);
// Error(kData) when the JSON carries the mark of another file than `path`.
void require_own_weights(const Json& sidecar, const std::string& sidecar_name, const std::string& path);

// Error(kData) naming the first of `names` that the folder's manifest lists and the folder lacks.
void require_present(const std::string& folder, const std::vector<std::string>& names);

struct SealedFile {
  std::string name;
  std::string problem;  // empty: as it was written
};
// Every file that the manifest lists, read in full.
std::vector<SealedFile> check_sealed(const std::string& folder, const Manifest& manifest);

}  // namespace vitrail
