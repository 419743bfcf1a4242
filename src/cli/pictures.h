// The pictures a command was given: files, folders, lists; and their way into a model's input. Used by
// predict and explain.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/preprocess_config.h"
#include "base/thread_pool.h"

namespace vitrail::cli {

// Files as they are, folders as every picture below them by byte order of the path, "-" as the list read
// from `list_text` (one path a line). Throws Error(kData) when a name does not exist or nothing is left.
std::vector<std::string> list_pictures(const std::vector<std::string>& arguments,
                                       const std::string& list_text);

// Whether its ending is one of jpg, jpeg, png, webp.
bool is_picture_name(const std::string& path);

struct LoadedBatch {
  std::vector<float> pixels;    // of the pictures that could be read, one after the other
  std::vector<size_t> indices;  // which of `paths` they are
  std::vector<std::pair<size_t, Error>> failures;
};
// Decodes and preprocesses in parallel; a picture that cannot be read is a failure, not an exception.
LoadedBatch load_batch(const std::vector<std::string>& paths, size_t first, size_t count,
                       const PreprocessConfig& config, size_t picture_elems, ThreadPool& pool);

}  // namespace vitrail::cli
