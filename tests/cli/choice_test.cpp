#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "api/precision.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/model_choice.h"
#include "cli/train_settings.h"
#include "io/config_json.h"
#include "io/model_files.h"
#include "source_root.h"
#include "thrown.h"

namespace vitrail::cli {
namespace {

Options parse_plan(const std::vector<std::string>& arguments) {
  for (const Command& command : commands())
    if (command.spec.name == "plan")
      return parse_options(
          command.spec, arguments, [](const std::string&) -> const char* { return nullptr; },
          [](const std::string&) { return std::vector<Setting>(); });
  throw Error(ErrorKind::kInternal, "no plan");
}

ModelChoice choose(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--weights", "rule"});
  ConsoleSettings settings;
  settings.quiet = true;
  Console console(settings);
  return choose_model(parse_plan(arguments), console);
}

TEST(ModelChoice, AnArchitectureWithVariations) {
  const VitConfig config = choose({"--model", "vit_small_patch16_224", "--image", "96x64", "--classes", "7",
                                   "--set", "model.depth=3", "--set", "model.gelu=tanh", "--set",
                                   "model.norm_eps=0.5", "--set", "model.qkv_bias=false"})
                               .config;
  EXPECT_EQ(config.width, 384);
  EXPECT_EQ(config.image_height, 96);
  EXPECT_EQ(config.image_width, 64);
  EXPECT_EQ(config.classes, 7);
  EXPECT_EQ(config.depth, 3);
  EXPECT_EQ(config.gelu, GeluKind::kTanh);
  EXPECT_DOUBLE_EQ(config.norm_eps, 0.5);
  EXPECT_FALSE(config.qkv_bias);
}

TEST(ModelChoice, AFileIsWhatItsCardSays) {
  const std::string path = std::string(VT_SOURCE_DIR) + "/tests/golden/models/timm_hub";
  ConsoleSettings settings;
  settings.quiet = true;
  Console console(settings);
  for (const char* weights : {"auto", "file"}) {
    const ModelChoice choice = choose_model(parse_plan({"-m", path, "--weights", weights}), console);
    ASSERT_TRUE(choice.opened);
    const VitConfig card = open_model(path)->card().config;
    EXPECT_EQ(to_json(choice.config), to_json(card));
    EXPECT_EQ(choice.config.classes, 5);
    EXPECT_EQ(choice.name, card.arch.empty() ? path : card.arch);
  }
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--classes", "7"}, {"--set", "model.depth=1"}}) {
    std::vector<std::string> arguments = {"-m", path};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(thrown_by([&] { choose_model(parse_plan(arguments), console); }),
              "usage: " + path +
                  " is a file: its classes and dimensions are what they are | --weights rule takes the "
                  "architecture of that name without its weights");
  }
}

TEST(ModelChoice, RefusesBrokenRules) {
  const std::vector<std::vector<std::string>> rows = {{"--model", "vit_smal_patch16_224"},
                                                      {"--set", "model.heads=5"},
                                                      {"--image", "0"},
                                                      {"--image", "224x"},
                                                      {"--image", "100"},
                                                      {"--set", "model.gelu=relu"}};
  for (const auto& row : rows) {
    try {
      choose(row);
      FAIL() << row[1];
    } catch (const Error& error) {
      EXPECT_EQ(exit_code(error.kind()), 64) << error.what();
    }
  }
}

TEST(ModelChoice, EveryFieldButTheNameIsASetting) {
  size_t fields = 0;
  const VitConfig config;
  visit_fields(config, [&](const char*, const auto&, const char*) { ++fields; });
  EXPECT_EQ(model_settings().size(), fields - 1);
  EXPECT_FALSE(has_model_settings(parse_plan({})));
  EXPECT_TRUE(has_model_settings(parse_plan({"--set", "model.depth=1"})));
}

TEST(ModelChoice, ParallelKinds) {
  const EngineOptions some = read_engine_options(parse_plan({"--parallel", "rows,softmax"}));
  EXPECT_FALSE(some.parallel_heads);
  EXPECT_TRUE(some.parallel_rows);
  EXPECT_TRUE(some.parallel_softmax);
  EXPECT_FALSE(read_engine_options(parse_plan({"--parallel", "none"})).parallel_rows);
  EXPECT_THROW(read_engine_options(parse_plan({"--parallel", "row"})), Error);
  EXPECT_TRUE(read_engine_options(parse_plan({"--check", "ref"})).check_reference);
  EXPECT_FALSE(read_engine_options(parse_plan({"--no-fuse"})).fuse);
}

// `plan` alone offers the types of models and takes devices that are not here.
bool infers_here(const CommandSpec& command) {
  const auto& options = command.options;
  const auto dtype = std::find_if(options.begin(), options.end(), [](auto& o) { return o.name == "dtype"; });
  return dtype != options.end() && dtype->choices == model_types() && command.name != "plan";
}

// Rules that every command's table keeps; a new command is picked up by itself.
TEST(Commands, TablesAreSound) {
  for (const Command& command : commands()) {
    SCOPED_TRACE(command.spec.name);
    EXPECT_FALSE(command.spec.summary.empty());
    ASSERT_FALSE(command.spec.examples.empty());
    EXPECT_TRUE(command.spec.examples[0].command.starts_with(command.spec.name));
    EXPECT_EQ(command.spec.infers, infers_here(command.spec));
    std::set<std::string> names;
    std::set<char> letters;
    for (const OptionSpec& spec : all_options(command.spec)) {
      EXPECT_TRUE(names.insert(spec.name).second) << spec.name << " twice";
      EXPECT_TRUE(spec.letter == 0 || letters.insert(spec.letter).second) << spec.letter << " twice";
      EXPECT_FALSE(spec.help.empty()) << spec.name;
      EXPECT_EQ(spec.kind == ValueKind::kFlag, spec.metavar.empty()) << spec.name;
    }
  }
}

}  // namespace
}  // namespace vitrail::cli
