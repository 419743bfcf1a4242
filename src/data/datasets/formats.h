// The dataset formats: one function each, listed in formats.cpp, and what they share. Private to
// src/data/datasets and its tests.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace vitrail::formats {

// Each opens one part of what lies at `place` (what follows "FORMAT:"). Asked for kVal of data that has no
// validation part, it returns nothing; kTrain then is everything.
std::unique_ptr<Dataset> open_cifar10(const std::string& place, Part part);
std::unique_ptr<Dataset> open_cifar100(const std::string& place, Part part);
std::unique_ptr<Dataset> open_folder(const std::string& place, Part part);
std::unique_ptr<Dataset> open_idx(const std::string& place, Part part);
std::unique_ptr<Dataset> open_packed(const std::string& place, Part part);
std::unique_ptr<Dataset> open_synthetic(const std::string& place, Part part);
std::unique_ptr<Dataset> open_tar(const std::string& place, Part part);

// A stored JPEG, PNG or WebP file as a sample: limits for datasets, and a file that was cut short is refused
// although the codec could fill the rest with grey.
Image decode_sample(std::string_view bytes, const std::string& name, int64_t least_side);
inline constexpr uint64_t kMaxPictureBytes = uint64_t{64} << 20;

// Whether the ending says image: those that are read, and those that are refused by name when read.
bool has_picture_ending(std::string_view name);

// A name as it may stand in a message: quoted when it is not plain text.
std::string printable(const std::string& name);

}  // namespace vitrail::formats
