// A published model, whatever its form: folder or file, google npz, timm, Hugging Face or torchvision names.
// Opening it gives its card (architecture, numerics, preprocessing, labels) and its parameters by canonical
// name. Knows the model's config and parameter table, not its computation.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "image/preprocess_config.h"
#include "io/tensor_source.h"
#include "models/vit_config.h"
#include "models/vit_params.h"

namespace vitrail {

enum class Dialect { kTimm, kHf, kTorchvision, kGoogle };
template <>
struct EnumNames<Dialect> {
  static constexpr const char* names[] = {"timm", "hf", "torchvision", "google"};
};

// Says how logits become probabilities: softmax for one class per image, or a sigmoid per class for several
// labels.
enum class ScoreKind { kSoftmax, kSigmoid };
template <>
struct EnumNames<ScoreKind> {
  static constexpr const char* names[] = {"softmax", "sigmoid"};
};

struct ModelCard {
  VitConfig config;
  PreprocessConfig preprocess;
  std::vector<std::string> labels;  // one per class, or empty
  ScoreKind scores = ScoreKind::kSoftmax;
  Dialect dialect = Dialect::kTimm;
  // The interpolation that timm would use if the crop were square; nothing where that is unknown.
  std::optional<Interpolation> square_interpolation;
  // Images that patches do not cover are padded to whole patches; else the remaining pixels are ignored.
  bool pads_images = false;
  std::string path;  // as the user gave it
  // The origin of each decision, one line each ("norm_eps 1e-12: config.json layer_norm_eps").
  std::vector<std::string> notes;
  // Defaults that apply because no file states otherwise: the notes that users should always see.
  std::vector<std::string> warnings;
};

struct ImageSize {
  int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

struct OpenOptions {
  std::string arch;          // timm's name, when the file alone leaves a choice
  int64_t image_height = 0;  // other input size than the file's: positions are resized; 0 keeps the file's
  int64_t image_width = 0;
  int64_t patch = 0;  // other patch size than the file's: its weights are resampled; 0 keeps the file's
  std::optional<PosResize> pos_resize =
      {};  // by whose rule positions are resized; none: the file's library's
};

class OpenedModel {
 public:
  virtual ~OpenedModel() = default;
  const ModelCard& card() const { return card_; }
  const TensorSource& source() const { return *source_; }

  // Reads the parameter as f32 in canonical layout, elems() floats; patch weights and position tables are
  // fitted to the card's config, and adapters stored beside the weights are merged in.
  virtual void read_param(const ParamSpec& spec, std::span<float> target) const = 0;

 protected:
  ModelCard card_;
  std::unique_ptr<TensorSource> source_;
};

// Opens a folder or file. Throws Error(kData) for what cannot be read, Error(kConfig) with the candidates
// when a bare file could be several architectures, and refuses non-plain ViTs by name.
std::unique_ptr<OpenedModel> open_model(const std::string& path, const OpenOptions& options = {});

// Opens only the tensor container, whatever it holds: safetensors, npz, torch zip, sharded folder.
std::unique_ptr<TensorSource> open_tensors(const std::string& path);

struct WriteOptions {
  Dialect dialect = Dialect::kHf;
  DType storage = DType::kF32;  // f32, f16 or bf16
  bool overwrite = false;       // replace what is at the path; otherwise it must not exist
  bool folder = false;          // timm: a folder as timm publishes models, instead of one file
  bool manifest = false;        // folders: seal_folder() at the end, unless more is to come
  Json facts = Json::object();  // kept_facts() of the model, for the manifest or a single file's own JSON
};
using ParamReader = std::function<void(const ParamSpec&, std::span<float>)>;

// Writes a model: a folder for hf (config.json, model.safetensors, preprocessor_config.json, manifest.json),
// one file with numerics in its metadata for timm and torchvision, npz with a sidecar .json for google. What
// exists there is replaced as a whole or stays.
void write_model(const std::string& path, const ModelCard& card, const WriteOptions& options,
                 const ParamReader& read);

// The dialect of model folders: Hugging Face's names, or timm's for models that those cannot express.
Dialect folder_dialect(const VitConfig& config);

}  // namespace vitrail
