// Whether a model's classes exclude one another: written in every form of a model, and read back.
#include "io/dialect_files.h"

namespace vitrail {
namespace {

class CardScores : public DialectTest {
 protected:
  static ModelCard several() {
    ModelCard card = tiny();
    card.scores = ScoreKind::kSigmoid;
    return card;
  }
  Json config() const { return parse_json(read_file(at("m/config.json"), 1 << 20), "config.json"); }
  void set_config(const Json& json) const { write_file(at("m/config.json"), json.dump()); }
};

TEST_F(CardScores, ComeBackFromEveryForm) {
  struct Row {
    const char* name;
    Dialect dialect;
    bool folder;
  };
  for (const Row& row : {Row{"hf", Dialect::kHf, true},
                         {"timm_folder", Dialect::kTimm, true},
                         {"timm_file", Dialect::kTimm, false},
                         {"torchvision", Dialect::kTorchvision, false},
                         {"google", Dialect::kGoogle, false}})
    for (const ModelCard& card : {tiny(), several()}) {
      SCOPED_TRACE(row.name);
      const std::string path = at(std::string(row.name) + enum_name(card.scores));
      write_model(path, card, {.dialect = row.dialect, .folder = row.folder}, by_rule);
      EXPECT_EQ(open_model(path)->card().scores, card.scores);
    }
}

TEST_F(CardScores, HuggingFaceReadsAndWritesTheProblemType) {
  write_model(at("m"), several(), {.dialect = Dialect::kHf}, by_rule);
  Json json = config();
  EXPECT_EQ(json["problem_type"], "multi_label_classification");
  EXPECT_EQ(json["vitrail"]["scores"], "sigmoid");
  json.erase("vitrail");
  const std::pair<Json, ScoreKind> rows[] = {{"multi_label_classification", ScoreKind::kSigmoid},
                                             {"single_label_classification", ScoreKind::kSoftmax},
                                             {"regression", ScoreKind::kSoftmax},
                                             {nullptr, ScoreKind::kSoftmax}};
  for (const auto& [type, scores] : rows) {
    json["problem_type"] = type;
    set_config(json);
    EXPECT_EQ(open_model(at("m"))->card().scores, scores) << type;
  }
  json["problem_type"] = 3;
  set_config(json);
  EXPECT_SAYS(refusal(at("m")), "problem_type");
}

TEST_F(CardScores, UnknownOnesAreRefusedAndModelsWithoutClassesHaveNone) {
  write_model(at("m"), several(), {.dialect = Dialect::kTimm, .folder = true}, by_rule);
  Json json = config();
  json["vitrail"]["scores"] = "sparsemax";
  set_config(json);
  EXPECT_SAYS(refusal(at("m")), "softmax, sigmoid");
  ModelCard features = several();
  features.config.classes = 0;
  write_model(at("f"), features, {.dialect = Dialect::kHf}, by_rule);
  EXPECT_EQ(open_model(at("f"))->card().scores, ScoreKind::kSoftmax);
}

}  // namespace
}  // namespace vitrail
