// What is told of a model: its contents, a conversion, sizes that it is opened with, JSON values that are
// wrong.
#include <limits>
#include <nlohmann/json.hpp>

#include "io/adapters.h"
#include "io/convert.h"
#include "io/find_model.h"
#include "io/inspect.h"
#include "io/library_forms.h"
#include "io/names_only.h"
#include "io/tensor_limits.h"

namespace vitrail {
namespace {

using Lines = std::vector<std::string>;

class ModelReports : public DialectTest {
 protected:
  std::string two_tensors() const {
    const auto fill = [](const std::vector<float>& values) {
      return [values](std::span<std::byte> target) {
        const auto bytes = std::as_bytes(std::span(values));
        std::copy(bytes.begin(), bytes.end(), target.begin());
      };
    };
    write_safetensors(at("two"),
                      {{{.name = "b", .shape = {2, 2}, .bytes = 16}, fill({1, -3, NAN, INFINITY})},
                       {{.name = "scale", .shape = {}, .bytes = 4}, fill({7})}},
                      {{"who", "me"}});
    return at("two");
  }
};

TEST_F(ModelReports, ContentsForScripts) {
  std::vector<std::pair<size_t, size_t>> progress;
  InspectRequest request{.path = two_tensors(), .stats = true};
  request.progress = [&](size_t done, size_t total) { progress.emplace_back(done, total); };
  const ModelContents contents = inspect_model(request);
  EXPECT_EQ(progress, (std::vector<std::pair<size_t, size_t>>{{1, 2}, {2, 2}}));
  const auto json = to_json(contents);
  EXPECT_EQ(json["path"], at("two"));
  EXPECT_EQ(json["format"], "safetensors");
  EXPECT_EQ(json["metadata"]["who"], "me");
  EXPECT_TRUE(json["model"].is_null());
  EXPECT_SAYS(json["not_a_model"].get<std::string>(), "not named as timm");
  EXPECT_EQ(json["total"].dump(), R"({"tensors":2,"elems":5,"bytes":20})");
  const auto& b = json["tensors"][0]["name"] == "b" ? json["tensors"][0] : json["tensors"][1];
  EXPECT_EQ(b.dump(),
            R"({"name":"b","dtype":"f32","shape":[2,2],"bytes":16,"min":-3.0,"max":1.0,"mean":-1.0,)"
            R"("nan":1,"inf":1})");
  EXPECT_EQ(warnings_of(contents, ""), Lines{"of the numbers, 2 are NaN or infinite"});
}

TEST_F(ModelReports, ContentsAsATable) {
  const ModelContents contents = inspect_model({.path = two_tensors(), .stats = true});
  const std::string table = tensor_table(contents, true);
  for (const char* part :
       {"tensor", "nan/inf", "2 x 2", "scalar", "f32", "16 B", "20 B", "2 tensors", "5 numbers"})
    EXPECT_SAYS(table, part);
  const std::string line = table.substr(table.find("\nb ") + 1);
  size_t from = 0;
  for (const char* part : {"b", "f32", "2 x 2", "16 B", "-3", "1", "-1", "2"}) {
    from = line.find(part, from);
    ASSERT_NE(from, std::string::npos) << part << " in " << line;
    ++from;
  }
  EXPECT_EQ(tensor_table(inspect_model({.path = at("two")}), false).find("nan/inf"), std::string::npos);
  const ModelContents filtered = inspect_model({.path = at("two"), .filter = "s*"});
  ASSERT_EQ(filtered.rows.size(), 1u);
  EXPECT_EQ(filtered.rows[0].info.name, "scale");
  EXPECT_FALSE(filtered.rows[0].stats);
  EXPECT_EQ(filtered.elems, 1);
  EXPECT_EQ(filtered.stored, 2u);
  EXPECT_EQ(warnings_of(filtered, "s*"), Lines{});
  EXPECT_EQ(warnings_of(inspect_model({.path = at("two"), .filter = "x"}), "x"),
            Lines{"none of the 2 tensors has a name that matches \"x\""});
  ModelContents one;
  one.not_finite = 1;
  one.card.emplace().warnings = {"first"};
  EXPECT_EQ(warnings_of(one, ""), (Lines{"first", "of the numbers, 1 is NaN or infinite"}));
}

TEST_F(ModelReports, AnArchitectureThatIsNoneIsTheUsersFault) {
  EXPECT_EQ(error_of([&] { inspect_model({.path = two_tensors(), .arch = "nothing"}); }), "")
      << "the tensors are looked at first";
  write_model(at("m"), tiny(), {.dialect = Dialect::kTimm}, by_rule);
  EXPECT_EQ(error_of([&] { inspect_model({.path = at("m"), .arch = "nothing"}); }),
            "usage: unknown architecture 'nothing'");
}

// 16 MiB are read at a time.
TEST_F(ModelReports, StatisticsOfATensorOfSeveralParts) {
  constexpr int64_t kCount = (5 << 20) + 3;  // 20 MiB and a little
  write_safetensors(at("large"),
                    {{{.name = "a", .shape = {kCount}, .bytes = 4 * kCount}, [](std::span<std::byte> target) {
                        for (size_t i = 0; i < target.size() / 4; ++i) {
                          const auto value = static_cast<float>(i % 4);
                          std::memcpy(target.data() + 4 * i, &value, 4);
                        }
                        const float last = -9;
                        std::memcpy(target.data() + target.size() - 4, &last, 4);
                      }}});
  const ModelContents contents = inspect_model({.path = at("large"), .stats = true});
  const TensorStats stats = contents.rows.at(0).stats.value();
  EXPECT_EQ(stats.finite, kCount);
  EXPECT_EQ(stats.min, -9);
  EXPECT_EQ(stats.max, 3);
  // 5 * 2^20 elements of mean 1.5, then 0, 1 and the last
  EXPECT_DOUBLE_EQ(stats.mean, (1.5 * (5 << 20) + 0 + 1 - 9) / static_cast<double>(kCount));
}

TEST_F(ModelReports, AConversionInWordsAndForScripts) {
  ModelCard card = tiny();
  card.labels = {"a", "b", "c", "d", "e"};
  card.preprocess.mode = ResizeMode::kStretch;
  write_model(at("m"), card, {.dialect = Dialect::kHf}, by_rule);
  Conversion conversion({.source = at("m"), .target = at("m.npz"), .dtype = "f16"});
  int written = 0, compared = 0;
  conversion.write([&] { ++written; });
  const ParamComparison c = conversion.compare([&] { ++compared; });
  const auto specs = vit_params(card.config);
  EXPECT_EQ(written, static_cast<int>(specs.size()));
  EXPECT_EQ(compared, written);
  EXPECT_EQ(c.params, std::ssize(specs));
  EXPECT_EQ(c.elems, count_params(card.config));
  EXPECT_EQ(c.beyond, 0);
  EXPECT_GT(c.max_difference, 0);
  EXPECT_EQ(conversion.notes(),
            Lines{"the file tells vit_jax nothing but the weights: preprocessing and labels must be "
                  "given there"});
  const auto json = to_json(conversion, c);
  EXPECT_EQ(json["in"], at("m"));
  EXPECT_EQ(json["out"], at("m.npz"));
  EXPECT_EQ(json["from"], "hf");
  EXPECT_EQ(json["to"], "google");
  EXPECT_EQ(json["dtype"], "f16");
  EXPECT_EQ(json["params"], c.elems);
  EXPECT_EQ(json["tensors"], c.params);
  EXPECT_EQ(json["max_difference"], c.max_difference);
  EXPECT_FALSE(json["kept"].get<bool>()) << "vit_jax's GELU";
  EXPECT_EQ(json["not_kept"].size(), 1u);
  EXPECT_EQ(json["model"]["dialect"], "google");
  const std::string text = to_text(conversion, c);
  for (const std::string& part :
       {at("m") + " (hf)", at("m.npz") + " (google, f16)", std::string("ViT, width 24, 2 blocks"),
        std::string("layernorm epsilon 1e-06"), std::string("stretched to 32 x 32"),
        std::string(" parameters compared: largest difference"), std::string("not kept"),
        std::string("note")})
    EXPECT_SAYS(text, part);
  EXPECT_NE(text.find('5', text.find("labels")), std::string::npos) << text;
  EXPECT_NO_THROW(require_close(conversion, c));
}

TEST_F(ModelReports, Verdicts) {
  EXPECT_EQ(verdict({.params = 3}, DType::kF32), "every number is the same");
  EXPECT_EQ(verdict({.max_difference = 0.0012345, .worst = "head.bias"}, DType::kF16),
            "largest difference 0.00123 (head.bias), as storing in f16 explains");
  EXPECT_EQ(verdict({.beyond = 1234, .max_difference = 2, .worst = "norm.bias"}, DType::kBF16),
            "largest difference 2 (norm.bias); 1,234 differ by more than storing in bf16 explains");
  write_model(at("m"), tiny(), {.dialect = Dialect::kHf}, by_rule);
  for (const char* dtype : {"f16", "f32"}) {
    const Conversion conversion({.source = at("m"), .target = at("x.npz"), .dtype = dtype});
    try {
      require_close(conversion, {.beyond = 1234});
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCheck);
      EXPECT_EQ(error.message(), "1,234 numbers of " + at("x.npz") +
                                     " differ from the source by more than storing in " + dtype +
                                     " explains");
      EXPECT_EQ(error.hint().empty(), std::string(dtype) == "f32");
    }
  }
}

TEST_F(ModelReports, TheUsualStorageIsThatOfMostNumbers) {
  for (const auto& [storage, name] :
       {std::pair{DType::kF16, "f16"}, {DType::kBF16, "bf16"}, {DType::kF32, "f32"}}) {
    write_model(at(name), tiny(), {.dialect = Dialect::kTimm, .storage = storage}, by_rule);
    EXPECT_EQ(Conversion({.source = at(name), .target = at("out")}).how().storage, storage);
  }
  for (const char* same : {"f32", "./f32"})
    EXPECT_SAYS(error_of([&] { Conversion({.source = at("f32"), .target = at(same)}); }),
                "usage: IN and OUT are the same");
  for (const char* other : {".pth", ".pt", ".bin", ".onnx", ".h5", ".msgpack"})
    EXPECT_EQ(error_of([&] { Conversion({.source = at("f32"), .target = at("x") + other}); }),
              "usage: " + at("x") + other + ": " + other + " files are not written");
}

TEST_F(ModelReports, AUsualStorageIsMoreThanAllOthers) {
  write_model(at("plain"), tiny(), {.dialect = Dialect::kTimm}, by_rule);
  const auto source = std::shared_ptr(open_tensors(at("plain")));
  const auto with_narrow = [&](DType narrow, const char* part) {
    auto tensors = renamed(source, [](const std::string& n) { return n; });
    for (TensorToWrite& tensor : tensors)
      if (tensor.info.name.find(part) != std::string::npos)
        tensor.info.dtype = narrow, tensor.info.bytes /= 2, tensor.fill = [](std::span<std::byte>) {};
    write_safetensors(at("mixed"), tensors, source->metadata());
    return Conversion({.source = at("mixed"), .target = at("out")}).how().storage;
  };
  for (const DType narrow : {DType::kF16, DType::kBF16}) {
    EXPECT_EQ(with_narrow(narrow, "head."), DType::kF32);
    EXPECT_EQ(with_narrow(narrow, "blocks."), narrow);
  }
}

// One unit in the last place of 1 is more than rounding to it explains.
TEST_F(ModelReports, ANumberThatChangedByOneUnitIsBeyondStoring) {
  const auto ones = [](const ParamSpec&, std::span<float> values) {
    std::fill(values.begin(), values.end(), 1.0f);
  };
  write_model(at("m"), tiny(), {.dialect = Dialect::kTimm}, ones);
  for (const auto& [dtype, units] : {std::pair{"f16", 0x3C01}, {"bf16", 0x3F81}}) {
    Conversion conversion(
        {.source = at("m"), .target = at("out.safetensors"), .dtype = dtype, .overwrite = true});
    conversion.write({});
    EXPECT_EQ(conversion.compare({}).beyond, 0) << dtype;
    std::string bytes = read_file(at("out.safetensors"), 1 << 20);
    bytes[bytes.size() - 2] = static_cast<char>(units & 0xff),
                         bytes[bytes.size() - 1] = static_cast<char>(units >> 8);
    write_file(at("out.safetensors"), bytes);
    const ParamComparison c = conversion.compare({});
    EXPECT_EQ(c.beyond, 1) << dtype;
    EXPECT_EQ(c.max_difference, std::string(dtype) == "f16" ? 0x1p-10 : 0x1p-7);
    EXPECT_FALSE(c.worst.empty());
  }
}

TEST_F(ModelReports, SizesThatWereAskedForAreNoted) {
  write_model(at("m"), tiny(), {.dialect = Dialect::kTimm}, by_rule);
  const auto last = [&](const OpenOptions& options) {
    return open_model(at("m"), options)->card().notes.back();
  };
  EXPECT_EQ(last({.image_height = 64}),
            "image 64 x 32 instead of the file's 32 x 32: positions resized by timm's rule");
  EXPECT_EQ(last({.patch = 16}),
            "patch 16 instead of the file's 8: its weights resampled by FlexiViT's rule, positions "
            "resized by timm's rule");
  EXPECT_EQ(last({.image_height = 64, .image_width = 64, .patch = 16}),
            "image 64 x 64 instead of the file's 32 x 32, patch 16 instead of the file's 8: its weights "
            "resampled by "
            "FlexiViT's rule");
  ModelCard card = tiny();
  card.config.patch_width = 4;
  write_model(at("tall"), card, {.dialect = Dialect::kTimm}, by_rule);
  EXPECT_EQ(error_of([&] { open_model(at("tall"), {.patch = 16}); }),
            "usage: patches of 8 x 4 pixels cannot be resampled: they are not square");
  card = tiny();
  card.config.pos = PosKind::kNone;
  write_model(at("none"), card, {.dialect = Dialect::kTimm}, by_rule);
  EXPECT_EQ(open_model(at("none"), {.image_width = 64})->card().notes.back(),
            "image 32 x 64 instead of the file's 32 x 32");
}

TEST(JsonValues, OfTheRightTypeOnly) {
  const auto said = [](const auto& read, const Json& value) {
    return error_of([&] { read(value, "f", "k"); });
  };
  EXPECT_EQ(json_int(Json(uint64_t{INT64_MAX}), "f", "k"), INT64_MAX);
  EXPECT_EQ(json_int(Json(INT64_MIN), "f", "k"), INT64_MIN);
  EXPECT_EQ(said(json_int, uint64_t{1} << 63), "config: f: k is 9223372036854775808; expected an integer");
  EXPECT_EQ(said(json_int, 1.0), "config: f: k is 1.0; expected an integer");
  EXPECT_EQ(said(json_number, "1"), "config: f: k is \"1\"; expected a finite number");
  EXPECT_EQ(said(json_bool, 1), "config: f: k is 1; expected true or false");
  EXPECT_EQ(said(json_string, 1), "config: f: k is 1; expected a string");
  EXPECT_EQ(said(json_numbers, 1), "config: f: k is 1; expected a list of numbers");
  EXPECT_EQ(said(json_numbers, Json::array({1, "x"})), "config: f: k is \"x\"; expected a finite number");
  EXPECT_EQ(said(json_string, Json::array({std::string(58, 'x')})),
            "config: f: k is [\"" + std::string(58, 'x') + "...; expected a string");
  EXPECT_EQ(said(json_string, Json::array({std::string(56, 'x')})),
            "config: f: k is [\"" + std::string(56, 'x') + "\"]; expected a string");
  EXPECT_EQ(json_label(3, "f", "k"), "3");
  EXPECT_EQ(json_find(Json{{"k", nullptr}}, "k"), nullptr);
  EXPECT_EQ(json_find(3, "k"), nullptr);
}

TEST(TensorLimits, NamesAndShapesAtTheirLimits) {
  EXPECT_EQ(error_of([] { require_tensor_name(std::string(1024, 'x')); }), "");
  EXPECT_SAYS(error_of([] { require_tensor_name(std::string(1025, 'x')); }),
              "expected 1 to 1024 bytes of UTF-8, found 1025");
  EXPECT_SAYS(error_of([] { require_tensor_name(""); }), "found 0");
  EXPECT_SAYS(error_of([] { require_tensor_name("\xff"); }), "found 1");
  const std::vector<int64_t> eight(8, 2), nine(9, 1);
  EXPECT_EQ(tensor_bytes(eight, DType::kF16), 512u);
  EXPECT_EQ(error_of([&] { tensor_bytes(nine, DType::kF16); }), "data: 9 dimensions, at most 8 are read");
  EXPECT_EQ(tensor_bytes(std::vector<int64_t>{(int64_t{1} << 61) - 1}, DType::kF32), (size_t{1} << 63) - 4);
  EXPECT_SAYS(error_of([] { tensor_bytes(std::vector<int64_t>{int64_t{1} << 61}, DType::kF32); }),
              "does not fit 63 bits");
  EXPECT_SAYS(error_of([] { tensor_bytes(std::vector<int64_t>{-1}, DType::kF32); }), "negative");
  EXPECT_EQ(tensor_bytes(std::vector<int64_t>{}, DType::kF64), 8u);
}

}  // namespace
}  // namespace vitrail
