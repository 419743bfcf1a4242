// Tensors without bytes: what is told from names and shapes alone.
#pragma once

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/tensor_source.h"

namespace vitrail {

class NamesOnly : public TensorSource {
 public:
  NamesOnly() = default;
  ~NamesOnly() override = default;
  NamesOnly(const NamesOnly& other) { tensors_ = other.tensors_; }
  NamesOnly& operator=(const NamesOnly& other) {
    tensors_ = other.tensors_;
    return *this;
  }
  void add(const std::string& name, std::vector<int64_t> shape = {1}, DType dtype = DType::kF32) {
    tensors_.push_back({.name = name, .dtype = dtype, .shape = std::move(shape), .bytes = 0});
  }
  void read(size_t, std::span<std::byte>) const override {}
};

// timm's names of a model with `depth` blocks: width 8, MLP 16, patches of 4, 5 classes.
inline NamesOnly timm_names(int64_t depth = 1, int64_t positions = 5) {
  NamesOnly source;
  source.add("patch_embed.proj.weight", {8, 3, 4, 4});
  source.add("patch_embed.proj.bias", {8});
  source.add("cls_token", {1, 1, 8});
  source.add("pos_embed", {1, positions, 8});
  for (int64_t i = 0; i < depth; ++i) {
    const std::string block = "blocks." + std::to_string(i) + ".";
    for (const char* norm : {"norm1", "norm2"})
      for (const char* part : {".weight", ".bias"}) source.add(block + norm + part, {8});
    source.add(block + "attn.qkv.weight", {24, 8});
    source.add(block + "attn.qkv.bias", {24});
    source.add(block + "attn.proj.weight", {8, 8});
    source.add(block + "attn.proj.bias", {8});
    source.add(block + "mlp.fc1.weight", {16, 8});
    source.add(block + "mlp.fc1.bias", {16});
    source.add(block + "mlp.fc2.weight", {8, 16});
    source.add(block + "mlp.fc2.bias", {8});
  }
  source.add("norm.weight", {8});
  source.add("norm.bias", {8});
  source.add("head.weight", {5, 8});
  source.add("head.bias", {5});
  return source;
}

// The names that lack `part`, each after `wrapper`.
inline NamesOnly without(const NamesOnly& source, const std::string& part, const std::string& wrapper = "") {
  NamesOnly out;
  for (const TensorInfo& t : source.tensors())
    if (part.empty() || t.name.find(part) == std::string::npos) out.add(wrapper + t.name, t.shape, t.dtype);
  return out;
}

// The same names, one of them of another shape.
inline NamesOnly reshaped(const NamesOnly& source, const std::string& name, const std::vector<int64_t>& shape,
                          DType dtype = DType::kF32) {
  NamesOnly out;
  for (const TensorInfo& t : source.tensors())
    out.add(t.name, t.name == name ? shape : t.shape, t.name == name ? dtype : t.dtype);
  return out;
}

// "kind: message" of the Error that `body` throws, or "" when it throws none.
template <typename Body>
std::string error_of(Body&& body) {
  try {
    body();
    return "";
  } catch (const Error& error) {
    return std::string(to_string(error.kind())) + ": " + error.message();
  }
}

}  // namespace vitrail
