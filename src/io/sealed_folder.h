// Model folders with a manifest (io/checkpoint/manifest.h): it is written last, and the files are checked
// against it as they are read, a block at a time. A folder without a manifest of ours, and a file that it
// does not list, are read unchecked.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/manifest.h"

namespace vitrail {

// Returns whether a file accompanies a model (licence, readme) without being part of it, so that no manifest
// lists it.
bool is_companion(const std::string& name);

// Returns whether the folder holds a manifest of ours, damaged or not.
bool is_sealed(const std::string& folder);

// Flushes these files of the folder, reads them back and returns their records. Their writer need not have
// flushed them.
std::vector<FileRecord> seal_files(const std::string& folder, const std::vector<std::string>& names);

// Rewrites the folder's manifest: every plain file in it except companions. Step and facts of an existing
// manifest, as a checkpoint's, stay; `facts` are for a folder that had none.
void seal_folder(const std::string& folder, Json facts = Json::object());

// Returns nothing where there is no manifest, or one of another program. Throws Error(kData) when it is
// damaged.
std::optional<Manifest> folder_manifest(const std::string& folder);

// Opens a file; reading it throws Error(kData) where it differs from its folder's manifest.
std::shared_ptr<const ByteSource> open_sealed(const std::string& path);
// Reads the whole file.
std::string read_sealed(const std::string& path, size_t max_bytes);

// The key that identifies a weight file without reading all of it: its size and a checksum of its end, where
// a zip keeps the checksums of its members. It is stored in the JSON beside a single file.
inline constexpr const char* kWeightsMark = "vitrail_weights";
Json weights_mark(const std::string& path);
// Throws Error(kData) when the JSON carries the mark of another file than `path`.
void require_own_weights(const Json& sidecar, const std::string& sidecar_name, const std::string& path);

// Throws Error(kData) naming the first of `names` that the folder's manifest lists and the folder lacks.
void require_present(const std::string& folder, const std::vector<std::string>& names);

// A model says this of its own past wherever it goes: in the manifest of its folder, in the metadata of a
// safetensors file, or in the JSON beside an npz. It holds no path, since a model may be published.
inline constexpr const char* kLearnedFrom = "learned_from";  // the training data: train/learned_from.h
// Returns an object with those facts that stay with the model when it is written anew; empty where nothing is
// known. Damage is ignored here: reading the model itself reports it.
Json kept_facts(const std::string& path);

struct SealedFile {
  std::string name;
  std::string problem;  // empty: as it was written
};
// Reads every file that the manifest lists in full.
std::vector<SealedFile> check_sealed(const std::string& folder, const Manifest& manifest);
// Returns a row for each file: its name, its size, and what is wrong with it.
std::string sealed_table(const Manifest& manifest, const std::vector<SealedFile>& files);

// The same as {"folder", "same", "files": [{"name", "same", "problem"}]}.
nlohmann::ordered_json sealed_json(const std::string& folder, const std::vector<SealedFile>& files);

// The folder's manifest; Error(kData) when it has none.
Manifest require_manifest(const std::string& folder);
// Error(kUsage) when the folder holds neither weights nor a manifest: what lies there is not ours to list.
void require_model(const std::string& folder);

}  // namespace vitrail
