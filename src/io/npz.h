// numpy's .npz: a zip of .npy arrays, named by entry without the ".npy". Knows no tensor names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/tensor_source.h"
#include "io/zip.h"

namespace vitrail {

std::unique_ptr<TensorSource> open_npz(const std::string& path);
// Opens `zip`, which was read from a file of this name.
std::unique_ptr<TensorSource> open_npz(std::unique_ptr<const ZipReader> zip, const std::string& name);

// Writes atomically, one tensor at a time in order; entries are stored, not deflated.
void write_npz(const std::string& path, const std::vector<TensorToWrite>& tensors);

}  // namespace vitrail
