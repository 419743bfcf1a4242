// The dataset formats: one function each, listed in formats.cpp, and what they share. Private to
// src/data/datasets and its tests.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace vitrail::formats {

// Each function opens one part of what lies at `place` (what follows "FORMAT:"). For kVal of data that has no
// validation part it returns nothing; kTrain is then everything.
std::unique_ptr<Dataset> open_cifar10(const std::string& place, Part part);
std::unique_ptr<Dataset> open_cifar100(const std::string& place, Part part);
std::unique_ptr<Dataset> open_folder(const std::string& place, Part part);
std::unique_ptr<Dataset> open_idx(const std::string& place, Part part);
std::unique_ptr<Dataset> open_packed(const std::string& place, Part part);
std::unique_ptr<Dataset> open_synthetic(const std::string& place, Part part);
std::unique_ptr<Dataset> open_tar(const std::string& place, Part part);

// Decodes a stored JPEG, PNG or WebP file as a sample: under the limits for datasets, and a truncated file is
// refused although the codec could fill the rest with grey.
Image decode_sample(std::string_view bytes, const std::string& name, int64_t least_side);
inline constexpr uint64_t kMaxImageBytes = uint64_t{64} << 20;

// Returns whether the file name's ending is that of an image: formats that are read, and those that are
// refused by name.
bool has_image_ending(std::string_view name);

// Returns a name fit for a message: quoted when it is not plain text.
std::string printable(const std::string& name);

}  // namespace vitrail::formats
