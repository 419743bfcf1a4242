// Files of torch.save: a pickle that describes tensors, and their storages, one zip entry each or, in the
// form before torch 1.6, one after the other behind the pickle. The pickle is read as data, so a file that
// would run code is refused. Knows which keys training scripts put a state dict under, and no tensor names.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/pickle.h"
#include "io/strided.h"
#include "io/tensor_source.h"
#include "io/zip.h"

namespace vitrail {

std::unique_ptr<TensorSource> open_torch(const std::string& path);
// Opens `zip`, which was read from a file of this name.
std::unique_ptr<TensorSource> open_torch(std::unique_ptr<const ZipReader> zip, const std::string& name);

// Opens the form before torch 1.6, which timm's published .pth files have.
std::unique_ptr<TensorSource> open_torch_legacy(std::shared_ptr<const ByteSource> bytes);
inline constexpr std::string_view kTorchLegacyMagic =
    "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";

// Returns whether a zip is torch.save's: it has an entry NAME/data.pkl.
bool looks_like_torch(const ZipReader& zip);

// A tensor as the pickle describes it: a view of a storage.
struct TorchTensor {
  std::string name, storage_key;
  DType dtype = DType::kF32;
  uint64_t storage_elems = 0;
  StridedView view;  // within storage_elems, checked
};

struct TorchStorage {
  DType dtype = DType::kF32;
  uint64_t elems = 0;
};

struct TorchStateDict {
  std::string key;  // of the outer dict ("model", "ema.state_dict"), empty when the tensors lie at the top
  std::string passed_over;  // keys of the other state dicts, which are skipped ("state_dict, teacher")
  std::vector<TorchTensor> tensors;
  std::map<std::string, TorchStorage> storages;  // all of the file's by key, those of other dicts too
  size_t pickle_bytes = 0;                       // length of the pickle in the input
};

// Views may be many and storages few: refuses when reading all tensors takes too many bytes (`read`) for what
// is `stored`.
void require_bounded_views(uint64_t read, uint64_t stored);

// Reads the state dict inside data.pkl. It needs no files, for tests and fuzzing.
TorchStateDict read_torch_pickle(std::span<const std::byte> pickle);

}  // namespace vitrail
