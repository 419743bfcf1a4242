// Files of torch.save (the zip form since torch 1.6): a pickle that describes tensors and one zip entry per
// storage. The pickle is read as data, so a file that would run code is refused. Used by open_tensors.
// Knows which keys training scripts put a state dict under, and no tensor names.
#pragma once

#include <memory>
#include <string>

#include "base/pickle.h"
#include "io/strided.h"
#include "io/tensor_source.h"
#include "io/zip.h"

namespace vitrail {

std::unique_ptr<TensorSource> open_torch(const std::string& path);
// `zip` was read from a file of this name.
std::unique_ptr<TensorSource> open_torch(std::unique_ptr<const ZipReader> zip, const std::string& name);

// Whether a zip is torch.save's: it has an entry NAME/data.pkl.
bool looks_like_torch(const ZipReader& zip);

// A tensor as the pickle describes it: a view of a storage.
struct TorchTensor {
  std::string name, storage_key;
  DType dtype = DType::kF32;
  uint64_t storage_elems = 0;
  StridedView view;  // within storage_elems, checked
};

struct TorchStateDict {
  std::string key;  // of the outer dict ("model", "ema.state_dict"), empty when the tensors lie at the top
  std::string passed_over;  // keys of the state dicts beside it ("state_dict, teacher")
  std::vector<TorchTensor> tensors;
};

// The state dict inside data.pkl. Apart from files, for tests and fuzzing.
TorchStateDict read_torch_pickle(std::span<const std::byte> pickle);

}  // namespace vitrail
