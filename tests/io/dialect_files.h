// Helpers of the dialect tests: tiny models with rule weights, a folder to write in, and edits of files.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "io/config_json.h"
#include "io/model_files.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "models/vit_init.h"

namespace vitrail {

class DialectTest : public ::testing::Test {
 protected:
  void SetUp() override {
    static std::atomic<int> count{0};
    home_ = std::filesystem::temp_directory_path() /
            ("vitrail_dialects_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::filesystem::remove_all(home_);  // of a process that was killed and had the same number
    std::filesystem::create_directories(home_);
  }
  void TearDown() override { std::filesystem::remove_all(home_); }
  std::string at(const std::string& name) const { return (home_ / name).string(); }

  static ModelCard tiny() {
    ModelCard card;
    VitConfig& c = card.config;
    c.image_height = c.image_width = 32;
    c.patch = 8;
    c.width = 24;
    c.depth = 2;
    c.heads = 3;
    c.mlp = 40;
    c.classes = 5;
    card.preprocess.height = card.preprocess.width = 32;
    card.preprocess.resize = 36;
    return card;
  }

  static void by_rule(const ParamSpec& spec, std::span<float> target) { fill_by_rule(spec, target); }

  static std::vector<float> values(const OpenedModel& model, const ParamSpec& spec) {
    std::vector<float> found(static_cast<size_t>(spec.shape.elems()));
    model.read_param(spec, found);
    return found;
  }

  // Requires that every parameter equals the rule's, up to `tolerance` relative (0: bit for bit).
  static void expect_rule_weights(const OpenedModel& model, float tolerance = 0) {
    for (const ParamSpec& spec : vit_params(model.card().config)) {
      std::vector<float> expected(static_cast<size_t>(spec.shape.elems()));
      fill_by_rule(spec, expected);
      const std::vector<float> found = values(model, spec);
      for (size_t i = 0; i < found.size(); ++i)
        ASSERT_LE(std::abs(found[i] - expected[i]), tolerance * std::abs(expected[i]))
            << spec.name << "[" << i << "]";
    }
  }

  // Copies a weight file, giving each tensor a new name; an empty one leaves it out.
  using Rename = std::function<std::string(const std::string&)>;
  static std::vector<TensorToWrite> renamed(const std::shared_ptr<TensorSource>& source,
                                            const Rename& rename) {
    std::vector<TensorToWrite> out;
    for (size_t i = 0; i < source->tensors().size(); ++i) {
      TensorInfo info = source->tensors()[i];
      info.name = rename(info.name);
      if (!info.name.empty())
        out.push_back({info, [source, i](std::span<std::byte> target) { source->read(i, target); }});
    }
    return out;
  }

  // Returns the message of the Error that opening throws, or "" when it opens.
  static std::string refusal(const std::string& path, const OpenOptions& options = {}) {
    try {
      open_model(path, options);
      return "";
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::kInternal) << error.what();
      return error.what();
    }
  }

  std::filesystem::path home_;
};

#define EXPECT_SAYS(text, part) \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << "said: " << (text) << "\nexpected: " << (part)

}  // namespace vitrail
