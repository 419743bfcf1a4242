// A folder with adapters beside its weights opens as the merged model, and nothing else beside it passes.
#include "io/adapters.h"

#include "io/dialect_files.h"

namespace vitrail {
namespace {

constexpr LoraConfig kBoth{.rank = 3, .alpha = 6.5, .attention = true, .mlp = true};

class AdaptersTest : public DialectTest {
 protected:
  // Adapters by the rule, so that none of them is zero.
  void write(const std::string& folder, Dialect dialect, const LoraConfig& lora) {
    write_model(folder, tiny(), {.dialect = dialect, .folder = true}, by_rule);
    write_adapters(folder, tiny().config, lora, by_rule);
  }

  static std::vector<float> ruled(const ParamSpec& spec) {
    std::vector<float> target(static_cast<size_t>(spec.shape.elems()));
    fill_by_rule(spec, target);
    return target;
  }

  // W + alpha / rank * B A with the dims of outputs and inputs flattened.
  static std::vector<float> merged(const ParamSpec& weight, const ParamSpec& a, const ParamSpec& b,
                                   const LoraConfig& lora) {
    std::vector<float> values = ruled(weight);
    const std::vector<float> left = ruled(b), right = ruled(a);
    const auto rank = static_cast<size_t>(lora.rank);
    const size_t inputs = right.size() / rank;
    for (size_t i = 0; i < values.size(); ++i) {
      double sum = 0;
      for (size_t r = 0; r < rank; ++r)
        sum += static_cast<double>(left[i / inputs * rank + r]) * right[r * inputs + i % inputs];
      values[i] += static_cast<float>(lora.alpha / static_cast<double>(lora.rank) * sum);
    }
    return values;
  }

  static void expect_merged(const OpenedModel& model, const LoraConfig& lora) {
    const std::vector<ParamSpec> adapters = lora_params(model.card().config, lora);
    size_t changed = 0;
    for (const ParamSpec& spec : vit_params(model.card().config)) {
      std::vector<float> expected = ruled(spec);
      for (size_t i = 0; i < adapters.size(); i += 2)
        if (adapters[i].name == spec.name.substr(0, spec.name.rfind('.')) + ".lora_a.weight" &&
            spec.name.ends_with(".weight"))
          expected = merged(spec, adapters[i], adapters[i + 1], lora), ++changed;
      const std::vector<float> found = values(model, spec);
      for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-6) << spec.name;
    }
    EXPECT_EQ(changed, adapters.size() / 2);
  }

  // Changes the adapters of at("m"); returns what opening the folder then reports.
  std::string refused(const Rename& rename, const std::map<std::string, std::string>& metadata) {
    write_safetensors(at("changed"), renamed(open_tensors(at("good")), rename), metadata);
    std::filesystem::rename(at("changed"), at("m/") + kAdaptersFile);
    try {
      open_model(at("m"));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
      return error.what();
    }
    return "opened";
  }
};

TEST_F(AdaptersTest, AreMergedIntoTheWeightsHandedOut) {
  const LoraConfig attention{.rank = 2}, mlp{.rank = 5, .alpha = 10.0 / 7, .attention = false, .mlp = true};
  int count = 0;
  for (const LoraConfig& lora : {attention, mlp, kBoth})
    for (const Dialect dialect : {Dialect::kHf, Dialect::kTimm}) {
      SCOPED_TRACE(strf("rank %d as %s", static_cast<int>(lora.rank), enum_name(dialect)));
      const std::string folder = at("m" + std::to_string(count++));
      write(folder, dialect, lora);
      const auto model = open_model(folder);
      expect_merged(*model, lora);
      const std::string note = strf("adapters of rank %d merged", static_cast<int>(lora.rank));
      const std::vector<std::string>& notes = model->card().notes;
      EXPECT_NE(std::find(notes.begin(), notes.end(), note), notes.end());
      expect_merged(*open_model(folder + "/model.safetensors"), lora);
    }
}

TEST_F(AdaptersTest, AnotherModelInTheFolderIsRidOfThem) {
  write(at("m"), Dialect::kHf, kBoth);
  const auto opened = open_model(at("m"));
  write_model(at("m"), opened->card(), {.dialect = Dialect::kHf, .overwrite = true},
              [&](const ParamSpec& spec, std::span<float> target) { opened->read_param(spec, target); });
  EXPECT_FALSE(std::filesystem::exists(at("m/") + kAdaptersFile)) << "they would be merged twice";
  expect_merged(*open_model(at("m")), kBoth);
}

TEST_F(AdaptersTest, WhatDoesNotFitTheModelIsRefused) {
  write(at("m"), Dialect::kHf, kBoth);
  std::filesystem::copy_file(at("m/") + kAdaptersFile, at("good"));
  const std::map<std::string, std::string> good = {{"lora_rank", "3"}, {"lora_alpha", "6.5"}};
  const Rename same = [](const std::string& name) { return name; };
  EXPECT_EQ(refused(same, good), "opened");

  struct Metadata {
    const char *key, *value, *said;
  };
  for (const Metadata& row : {Metadata{"lora_rank", "", "expected a number"},
                              {"lora_rank", "3x", "expected a number"},
                              {"lora_rank", "0", "rank 0"},
                              {"lora_rank", "-3", "rank -3"},
                              {"lora_rank", "999999999999", "between 1 and 4096"},
                              {"lora_rank", "99999999999999999999", "expected a number"},
                              {"lora_rank", "4", "another shape"},
                              {"lora_rank", "4096", "another shape"},
                              {"lora_rank", "4097", "between 1 and 4096"},
                              {"lora_alpha", "nan", "finite"},
                              {"lora_alpha", "1e999", "expected a number"},
                              {"lora_alpha", "much", "\"much\""}}) {
    auto metadata = good;
    metadata[row.key] = row.value;
    EXPECT_SAYS(refused(same, metadata), row.said);
  }
  EXPECT_SAYS(refused(same, {{"lora_alpha", "1"}}), "no lora_rank");
  EXPECT_SAYS(refused(same, {{"lora_rank", "3"}}), "no lora_alpha");

  const std::string a = "blocks.1.attn.qkv.lora_a.weight", b = "blocks.1.attn.proj.lora_b.weight";
  const auto named = [&](const std::string& old, const std::string& now) {
    return [=](const std::string& name) { return name == old ? now : name; };
  };
  EXPECT_SAYS(refused(named(a, ""), good), "no tensor " + a);
  EXPECT_SAYS(refused(named(b, "head.lora_b.weight"), good), "no tensor " + b);
  EXPECT_SAYS(refused([&](const std::string& name) { return name == a   ? b
                                                            : name == b ? a
                                                                        : name; }, good),
              "another shape");
  EXPECT_SAYS(refused([](const std::string&) { return ""; }, good), "no adapters");
  EXPECT_SAYS(
      refused([](const std::string& name) { return name.find("0.mlp.fc1.lora_a") + 1 ? "x" : ""; }, good),
      "\"x\" is no adapter");

  write_file(at("m/") + kAdaptersFile, "not a tensor file");
  EXPECT_SAYS(refusal(at("m")), kAdaptersFile);
}

}  // namespace
}  // namespace vitrail
