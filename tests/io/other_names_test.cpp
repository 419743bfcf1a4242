// Names and configs that libraries gave their models in other versions: read as those that are written today.
#include "io/library_forms.h"
#include "io/names_only.h"
#include "models/zoo.h"

namespace vitrail {
namespace {

using Change = std::function<void(VitConfig&)>;

class OtherNames : public LibraryForms {
 protected:
  // The first piece of each pair becomes the second, wherever it stands.
  static std::string changed(std::string name,
                             const std::vector<std::pair<std::string, std::string>>& pairs) {
    for (const auto& [from, to] : pairs)
      if (const size_t at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
    return name;
  }
  static ModelCard with(const Change& change) {
    ModelCard card = tiny();
    change(card.config);
    card.preprocess.height = card.config.image_height, card.preprocess.width = card.config.image_width;
    card.preprocess.mean.assign(static_cast<size_t>(card.config.channels), 0.5);
    card.preprocess.std = card.preprocess.mean;
    return card;
  }
};

TEST_F(OtherNames, TransformersFiveAndEveryPrefix) {
  const std::vector<std::pair<std::string, std::string>> five = {
      {"encoder.layer.", "layers."},
      {".attention.attention.query.", ".attention.q_proj."},
      {".attention.attention.key.", ".attention.k_proj."},
      {".attention.attention.value.", ".attention.v_proj."},
      {".attention.output.dense.", ".attention.o_proj."},
      {".intermediate.dense.", ".mlp.fc1."},
      {".output.dense.", ".mlp.fc2."}};
  write_folder(tiny(), Dialect::kHf);
  rename_tensors([&](const std::string& name) { return changed(name, five); });
  expect_rule_weights(*open_model(at("m")));
  for (const char* prefix : {"deit.", "ijepa."}) {
    write_folder(tiny(), Dialect::kHf);
    rename_tensors([&](const std::string& name) { return changed(name, {{"vit.", prefix}}); });
    EXPECT_EQ(refusal(at("m")), "") << prefix;
    expect_rule_weights(*open_model(at("m")));
  }
}

TEST_F(OtherNames, OlderNamesOfTorchvisionAndDeit3) {
  expect_rule_weights(*open_model(renamed_file(tiny(), Dialect::kTorchvision, [](const std::string& name) {
    return changed(name, {{".mlp.0.", ".mlp.linear_1."}, {".mlp.3.", ".mlp.linear_2."}});
  })));
  const ModelCard scaled = with([](VitConfig& c) { c.layer_scale = true; });
  expect_rule_weights(*open_model(renamed_file(scaled, Dialect::kTimm, [](const std::string& name) {
    return changed(name, {{".ls1.gamma", ".gamma_1"}, {".ls2.gamma", ".gamma_2"}});
  })));
}

TEST_F(OtherNames, GooglesTreesOfParameters) {
  const Change forms[] = {[](VitConfig&) {},
                          [](VitConfig& c) { c.class_token = false, c.pool = Pool::kMap; }};
  for (const Change& form : forms) {
    write_model(at("g.npz"), with(form), {.dialect = Dialect::kGoogle, .overwrite = true}, by_rule);
    const auto source = std::shared_ptr(open_tensors(at("g.npz")));
    for (const char* prefix : {"", "opt/target/", "params/", "params/img/"}) {
      SCOPED_TRACE(prefix);
      write_npz(at("tree.npz"), renamed(source, [&](const std::string& name) { return prefix + name; }));
      expect_rule_weights(*open_model(at("tree.npz")));
    }
    // Early big_vision: the parts of the head at the top.
    write_npz(at("early.npz"), renamed(source, [&](const std::string& name) {
                return changed(name, {{"MAPHead_0/", ""}});
              }));
    expect_rule_weights(*open_model(at("early.npz")));
  }
}

// What is written for a library says everything in that library's own words.
TEST_F(OtherNames, EveryFormComesBackFromTheLibrarysOwnConfig) {
  const std::tuple<const char*, Dialect, Change> rows[] = {
      {"map", Dialect::kTimm, [](VitConfig& c) { c.class_token = false, c.pool = Pool::kMap; }},
      {"gap", Dialect::kTimm, [](VitConfig& c) { c.class_token = false, c.pool = Pool::kMean; }},
      {"fc_norm", Dialect::kTimm,
       [](VitConfig& c) { c.pool = Pool::kMean, c.norm_place = NormPlace::kAfterPool; }},
      {"layer scale", Dialect::kTimm, [](VitConfig& c) { c.layer_scale = true; }},
      {"qk norm", Dialect::kTimm, [](VitConfig& c) { c.qk_norm = true; }},
      {"no qkv bias", Dialect::kTimm, [](VitConfig& c) { c.qkv_bias = false; }},
      {"registers", Dialect::kTimm, [](VitConfig& c) { c.registers = 2; }},
      {"no class position", Dialect::kTimm, [](VitConfig& c) { c.pos_for_prefix = false; }},
      {"distilled", Dialect::kTimm, [](VitConfig& c) { c.distilled = true; }},
      {"one channel", Dialect::kTimm, [](VitConfig& c) { c.channels = 1; }},
      {"oblong", Dialect::kTimm, [](VitConfig& c) { c.image_width = 48; }},
      {"no head", Dialect::kTimm, [](VitConfig& c) { c.classes = 0; }},
      {"plain", Dialect::kHf, [](VitConfig& c) { c.norm_eps = 1e-12; }},
      {"tanh", Dialect::kHf, [](VitConfig& c) { c.gelu = GeluKind::kTanh; }},
      {"silu", Dialect::kHf, [](VitConfig& c) { c.activation = ActKind::kSilu; }},
      {"no qkv bias", Dialect::kHf, [](VitConfig& c) { c.qkv_bias = false; }},
      {"one channel", Dialect::kHf, [](VitConfig& c) { c.channels = 1; }},
      {"oblong", Dialect::kHf, [](VitConfig& c) { c.image_width = 48; }},
      {"tall patches", Dialect::kHf, [](VitConfig& c) { c.patch_width = 4; }},
      {"distilled", Dialect::kHf, [](VitConfig& c) { c.distilled = true; }},
      {"no head", Dialect::kHf, [](VitConfig& c) { c.classes = 0; }},
      {"pooler", Dialect::kHf,
       [](VitConfig& c) {
         c.classes = 0, c.pre_logits = true, c.pre_logits_act = ActKind::kRelu, c.representation = 7;
       }},
  };
  for (const auto& [name, dialect, change] : rows) {
    SCOPED_TRACE(std::string(name) + " of " + enum_name(dialect));
    ModelCard card = with(change);
    card.config.mlp = 48;
    if (dialect == Dialect::kHf) card.config.pos_resize = PosResize::kHf;
    write_folder(card, dialect);
    const auto model = open_model(at("m"));
    EXPECT_EQ(to_json(model->card().config), to_json(card.config));
    expect_rule_weights(*model);
  }
}

// A card without a name does not contradict the one that the user gives.
TEST_F(OtherNames, ANameMayBeGivenToANamelessCard) {
  ModelCard card;
  card.config = find_architecture("test_vit").config;
  card.preprocess = find_architecture("test_vit").preprocess;
  card.config.arch.clear();
  write_model(at("nameless"), card, {.dialect = Dialect::kTimm}, [](const ParamSpec&, std::span<float>) {});
  EXPECT_EQ(open_model(at("nameless"), {.arch = "test_vit"})->card().config.heads, 2);
}

// timm resizes the positions to its config's size, in patches of any shape.
TEST_F(OtherNames, PositionsOfAnotherSizeInTallPatches) {
  write_folder(with([](VitConfig& c) { c.patch_width = 4, c.image_width = 16; }), Dialect::kTimm);
  edit([](Json& config) {
    config["model_args"]["img_size"] = {64, 32};
    config["pretrained_cfg"]["input_size"] = {3, 64, 32};
  });
  const auto model = open_model(at("m"));
  EXPECT_EQ(model->card().config.image_height, 64);
  EXPECT_EQ(model->card().config.image_width, 32);
  const ParamSpec pos{"pos_embed", {{'N', 1 + 8 * 8}, {'D', 24}}};
  EXPECT_EQ(values(*model, pos).size(), 65u * 24);
}

TEST_F(OtherNames, OnlyStandardNamesTakeTheConfigBesideThem) {
  write_folder(tiny(), Dialect::kHf);
  EXPECT_EQ(refusal(at("m/model.safetensors")), "");
  std::filesystem::copy(at("m/model.safetensors"), at("m/other.safetensors"));
  EXPECT_SAYS(refusal(at("m/other.safetensors")), "says nothing about preprocessing");
  std::filesystem::rename(at("m/model.safetensors"), at("m/pytorch_model.bin"));
  EXPECT_EQ(refusal(at("m/pytorch_model.bin")), "") << "whatever it holds";
  std::filesystem::rename(at("m/pytorch_model.bin"), at("m/shard.safetensors"));
  Json index = {{"weight_map", Json::object()}};
  const auto source = open_tensors(at("m/shard.safetensors"));
  for (const TensorInfo& info : source->tensors()) index["weight_map"][info.name] = "shard.safetensors";
  for (const char* name : {"model.safetensors.index.json", "pytorch_model.bin.index.json"}) {
    write_file(at("m/") + name, index.dump());
    EXPECT_EQ(refusal(at("m/") + name), "") << name;
    EXPECT_EQ(open_model(at("m/") + name)->card().config.heads, 3) << name;
  }
}

}  // namespace
}  // namespace vitrail
