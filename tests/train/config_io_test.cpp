// Training configs from JSON: every field is read back as it was written, and what is wrong is refused with
// the key, what was expected, what was found and what to try.
#include "train/config_io.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "source_root.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;

// Another value of every kind of field than the one that is there.
struct ChangeField {
  template <typename T>
  void operator()(const char*, T& field, const char*) const {
    if constexpr (std::is_same_v<T, bool>)
      field = !field;
    else if constexpr (std::is_enum_v<T>)
      field = static_cast<T>((static_cast<size_t>(field) + 1) % std::size(EnumNames<T>::names));
    else if constexpr (std::is_arithmetic_v<T>)
      field = static_cast<T>(field + 3);
    else if constexpr (std::is_same_v<T, std::string>)
      field += "x, \"y\"";
    else if constexpr (std::is_same_v<T, std::vector<double>>)
      field = {0.1, 1e-300, 12345678.9};
    else
      field = {"a, b", "", "1"};
  }
};

TrainConfig changed_everywhere() {
  TrainConfig config;
  config.model.init = "some/model", config.model.style = InitStyle::kJax;
  visit_fields(config.model.fields, [&](const char* name, auto& field, const char* help) {
    ChangeField()(name, field, help);
    config.model.given.insert(name);
  });
  config.model.arch = config.model.fields.arch;
  visit_preprocess_fields(config.model.preprocess, [&](const char* name, auto& field, const char* help) {
    ChangeField()(name, field, help);
    config.model.preprocess_given.insert(name);
  });
  TrainConfig::sections(config, [](const char*, auto& section) {
    std::decay_t<decltype(section)>::fields(section, ChangeField());
  });
  return config;
}

TEST(ConfigIo, EveryFieldIsReadBackAsItWasWritten) {
  for (const TrainConfig& config : {TrainConfig(), changed_everywhere()}) {
    const TrainConfig read = train_config_from_json(to_json(config), "run.json");
    EXPECT_EQ(to_json(read), to_json(config));
    EXPECT_EQ(read.model.preprocess_given, config.model.preprocess_given);
  }
  EXPECT_NE(to_json(changed_everywhere()), to_json(TrainConfig()));
}

TEST(ConfigIo, ListsEveryFieldThatItReads) {
  std::set<std::string> listed;
  for (const FieldSpec& spec : train_fields()) EXPECT_TRUE(listed.insert(spec.key).second) << spec.key;
  const Json changed = to_json(changed_everywhere());
  for (const auto& [section, fields] : changed.items())
    for (const auto& [name, value] : fields.items())
      EXPECT_TRUE(listed.contains(section + "." + name)) << section << "." << name;
}

// A default is a promise to every config that leaves it out: one that changes must be changed in this list,
// too.
TEST(ConfigIo, DefaultsAreThoseThatWereStored) {
  Json defaults = Json::object();
  for (const FieldSpec& spec : train_fields()) defaults[spec.key] = spec.usual;
  const Json stored =
      parse_json(read_file(VT_SOURCE_DIR "/tests/golden/defaults.json", 1 << 20), "defaults.json");
  for (const auto& [key, value] : stored.items())
    EXPECT_EQ(defaults.value(key, "no such setting"), value.get<std::string>()) << key;
  for (const auto& [key, value] : defaults.items())
    EXPECT_TRUE(stored.contains(key)) << '"' << key << "\": " << value << " is not in the list";
}

TEST(ConfigIo, ReadsEveryConfigOfTheTree) {
  int read = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(VT_SOURCE_DIR) / "configs")) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().string());
    const TrainConfig config = read_train_config(entry.path().string());
    EXPECT_FALSE(config.data.train.empty());
    EXPECT_NO_THROW(resolved(config));
    ++read;
  }
  EXPECT_GE(read, 10);
}

TEST(ConfigIo, FormerNamesOfChoicesAreReadAndNoted) {
  const Json json = {{"loader", {{"on_device", "pictures"}}}, {"train", {{"batch", 8}}}};
  EXPECT_EQ(train_config_from_json(json, "old run").loader.on_device, OnDevice::kImages);
  std::vector<std::string> notes;
  train_config_from_json(json, "old run", {}, &notes);
  EXPECT_EQ(notes, std::vector<std::string>{"loader.on_device=pictures is now loader.on_device=images"});
  notes.clear();
  train_config_from_json({{"loader", {{"on_device", "images"}}}}, "new run", {}, &notes);
  EXPECT_TRUE(notes.empty());
}

TEST(ConfigIo, OneSizeStandsForBothSides) {
  const TrainConfig config = train_config_from_json({{"model", {{"image", 48}}}}, "run.json");
  EXPECT_EQ(config.model.fields.image_height, 48);
  EXPECT_EQ(config.model.given, (std::set<std::string>{"image_height", "image_width"}));
  EXPECT_NO_THROW(train_config_from_json({{"model", {{"image", 48}, {"image_width", 48}}}}, "run.json"));
}

TEST(ConfigIo, ModelsAreLookedForWhereTheCallerSays) {
  const Json json = {{"model", {{"init", "deit"}}}, {"distill", {{"teacher", "big"}}}};
  const auto find = [](const std::string& name) { return "/models/" + name; };
  const TrainConfig config = train_config_from_json(json, "run.json", find);
  EXPECT_EQ(config.model.init, "/models/deit");
  EXPECT_EQ(config.distill.teacher, "/models/big");
  EXPECT_EQ(train_config_from_json(json, "run.json").model.init, "deit");
  EXPECT_EQ(train_config_from_json(Json::object(), "run.json", find).model.init, "");
}

struct Wrong {
  const char* json;
  const char* says;
  const char* tries;
};

TEST(ConfigIo, RefusesWithKeyExpectedFoundAndAdvice) {
  const Wrong rows[] = {
      {R"({"optim": {"lrr": 1}})", "no key 'optim.lrr'", "did you mean optim.lr?"},
      {R"({"zzz": {"qqq": 1}})", "no key 'zzz.qqq'", "train --help"},
      {R"({"optim": 3})", "no key 'optim'", ""},
      {R"({"trian": {}})", "no key 'trian'", "did you mean train?"},
      {R"({"zzz": {}})", "no key 'zzz'", "train --help"},
      {R"({"optim": {"lr": {"a": 1}}})", "optim.lr takes one value, not object", "its default"},
      {R"({"optim": {"lr": "fast"}})", "optim.lr expects a number, not 'fast'", "its default"},
      {R"({"optim": {"lr": [1, 2]}})", "optim.lr takes one value, not array", "its default"},
      {R"({"optim": {"lr": null}})", "optim.lr is null", "leave the key out"},
      {R"({"train": {"epochs": 1.5}})", "train.epochs expects a whole number, not '1.5'", "train.epochs=10"},
      {R"({"train": {"epochs": 9223372036854775808}})", "train.epochs expects a whole number", ""},
      {R"({"train": {"epochs": "3"}})", "train.epochs expects a whole number, not '3'", ""},
      {R"({"train": {"tensorboard": 1}})", "expects one of true, false, not '1'", "one of true, false"},
      {R"({"train": {"dtype": "bf61"}})", "one of f32, bf16, f16, fp8, tf32, not 'bf61'",
       "did you mean bf16?"},
      {R"({"data": {"train": 5}})", "data.train expects a text, not '5'", "FORMAT:PLACE"},
      {R"({"data": {"classes": ["cat", true]}})", "data.classes expects a text, not 'true'", ""},
      {R"({"preprocess": {"mean": [0.5, "x"]}})", "preprocess.mean expects a number, not 'x'", ""},
      {R"({"model": {"image": 32, "image_width": 48}})", "model.image is 32 and model.image_width is 48", ""},
      {"[1]", "holds array; expected a training config", ""}};
  for (const Wrong& row : rows) {
    SCOPED_TRACE(row.json);
    try {
      train_config_from_json(Json::parse(row.json), "run.json");
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig);
      EXPECT_NE(error.message().find(row.says), std::string::npos) << error.message();
      EXPECT_NE(error.hint().find(row.tries), std::string::npos) << error.hint();
    }
  }
}

TEST(ConfigIo, SectionsMayBeEmpty) {
  const Json json = {{"train", Json::object()}, {"model", Json::object()}, {"preprocess", Json::object()}};
  EXPECT_EQ(to_json(train_config_from_json(json, "run.json")), to_json(TrainConfig()));
}

TEST(ConfigIo, FilesMayHoldCommentsAndMustBeThere) {
  const TempFolder folder;
  const std::string file = folder.file("run.json", "// a run\n{\"train\": {\"batch\": 8}}");
  EXPECT_EQ(read_train_config(file).train.batch, 8);
  for (const std::string& bad : {(folder.path() / "none.json").string(), folder.file("bad.json", "{"),
                                 folder.file("twice.json", R"({"train": {"batch": 8, "batch": 9}})"),
                                 folder.file("large.json", std::string((1 << 20) + 1, ' '))}) {
    try {
      read_train_config(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig) << error.message();
      EXPECT_NE(std::string(error.what()).find(bad), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace vitrail
