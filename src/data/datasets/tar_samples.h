// The samples of WebDataset shards: consecutive members that share a key (the name up to the first dot of its
// last part) are one sample, of which an image and its label (.cls or .json) are used. Reads headers and
// labels, no images.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/datasets/tables.h"

namespace vitrail {

struct TarLabel {
  std::vector<int64_t> numbers;    // either these
  std::vector<std::string> names;  // or these
  bool several = false;            // a list, of whatever length
};

struct TarSample {
  std::string name;  // of the image's member
  uint64_t offset = 0, size = 0;
  TarLabel label;
};

// Throws Error(kData) naming the member.
std::vector<TarSample> index_tar(const ByteSource& file);

// Parse the content of a .cls file, a number or a name, and of a .json file, the same under "label", "labels"
// or "cls", or a list of them.
TarLabel parse_cls(const std::string& text);
TarLabel parse_json_label(const std::string& text);

}  // namespace vitrail
