// libvitrail: load a Vision Transformer in any published form and run it on pictures. Thread-safe: one Model
// may be used from several threads, whose calls take turns. Errors arrive as exceptions derived from
// std::exception, with a message that says what was expected, what was found and what to try.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vitrail/export.h"

namespace vitrail {

VITRAIL_API const char* version();  // "0.2.0"; the major number changes when this header breaks programs

struct Prediction {
  int index = 0;      // class number
  std::string label;  // its name, or empty when the model carries none
  float probability = 0;
};

struct ModelOptions {
  std::string arch;          // timm's name, for bare files that could be several
  int threads = 0;           // 0: one per core
  int64_t image_height = 0;  // another input size than the model's own: positions are resized; 0 keeps it
  int64_t image_width = 0;
};

class VITRAIL_API Model {
 public:
  // A model folder or weight file: Hugging Face, timm, torchvision or google, found out by itself.
  static Model load(const std::string& path, const ModelOptions& options = {});
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // The most likely classes of a JPEG, PNG or WebP file, preprocessed as the model wants it.
  std::vector<Prediction> classify(const std::string& picture_path, int top_k = 5) const;
  // The pooled features before the head.
  std::vector<float> embed(const std::string& picture_path) const;

  // The same on tensors: `pixels` is one preprocessed picture, planar [channels, height, width].
  std::vector<float> preprocess(const std::string& picture_path) const;
  std::vector<float> logits(std::span<const float> pixels) const;

  int64_t classes() const;
  int64_t channels() const;
  int64_t image_height() const;
  int64_t image_width() const;
  const std::vector<std::string>& labels() const;

 private:
  struct Parts;
  explicit Model(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace vitrail
