// Files the real libraries wrote, run end to end, and the same after every conversion between dialects.
#include <gtest/gtest.h>
#include <unistd.h>

#include "api/engine.h"
#include "golden_cases.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;

class PublishedFiles : public testing::TestWithParam<fs::path> {
 protected:
  void SetUp() override {
    home_ = fs::temp_directory_path() / ("vitrail_published_" + std::to_string(::getpid()));
    fs::remove_all(home_);  // of a process that was killed and had the same number
    fs::create_directories(home_);
    golden_ = golden::read(GetParam());
  }
  void TearDown() override { fs::remove_all(home_); }

  // Bare tensors cannot say everything about a tiny synthetic model; a sidecar does.
  std::unique_ptr<OpenedModel> open() const {
    const fs::path file = golden::folder() / "models" / golden_["model"].get<std::string>();
    OpenOptions options;
    if (golden_["config"]["pos"] == "sincos2d") options.image_height = options.image_width = 16;
    if (golden_["dialect"] == "google" || fs::is_directory(file)) return open_model(file.string(), options);
    const fs::path copy = home_ / file.filename();
    fs::copy_file(file, copy);
    PreprocessConfig images{.height = golden_["config"]["image_height"],
                            .width = golden_["config"]["image_width"]};
    const Json card = {{"vitrail", {{"model", golden_["config"]}, {"preprocess", to_json(images)}}}};
    AtomicFile sidecar(copy.string() + ".json");
    const std::string text = card.dump();
    sidecar.write(std::as_bytes(std::span(text)));
    sidecar.commit();
    return open_model(copy.string());
  }

  double difference(const OpenedModel& model) const {
    Engine engine(model, {});
    engine.run(golden::images(model.card().config, 1), 1);
    const std::vector<double> found =
        engine.output_f64(model.card().config.classes > 0 ? "logits" : "features");
    return golden::largest_difference(found, golden_["logits"].get<std::vector<double>>());
  }

  // What every dialect can hold: a model any of them must accept.
  static bool plain(const VitConfig& c) {
    return c.pool == Pool::kCls && c.class_token && !c.distilled && c.registers == 0 && c.pos_for_prefix &&
           c.pos == PosKind::kLearned && c.qkv_bias && !c.qk_norm && !c.layer_scale && !c.pre_logits &&
           c.classes > 0;
  }

  fs::path home_;
  Json golden_;
};

TEST_P(PublishedFiles, GiveTheLibrarysLogitsAsPublishedAndConverted) {
  const auto model = open();
  EXPECT_LT(difference(*model), 1e-4) << "as published";
  for (Dialect dialect : {Dialect::kTimm, Dialect::kHf, Dialect::kTorchvision, Dialect::kGoogle}) {
    const std::string path = (home_ / (std::string("as_") + enum_name(dialect))).string();
    try {
      write_model(path, model->card(), {.dialect = dialect},
                  [&](const ParamSpec& spec, std::span<float> target) { model->read_param(spec, target); });
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage)
          << error.what();  // a dialect that cannot hold this model says so
      continue;
    }
    EXPECT_LT(difference(*open_model(path)), 1e-4) << "converted to " << enum_name(dialect);
  }
}

std::vector<fs::path> published() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(golden::folder() / "models"))
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

INSTANTIATE_TEST_SUITE_P(Files, PublishedFiles, testing::ValuesIn(published()),
                         [](const auto& test) { return test.param.stem().string(); });

}  // namespace
}  // namespace vitrail
