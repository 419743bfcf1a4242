#include "cli/options.h"

#include <gtest/gtest.h>

#include <map>

#include "base/config_file.h"
#include "base/error.h"
#include "cli/field_settings.h"
#include "thrown.h"

namespace vitrail::cli {
namespace {

CommandSpec sample_command() {
  return {.name = "bench infer",
          .summary = "a sample",
          .examples = {},
          .options = {{.name = "top-k",
                       .help = "classes",
                       .kind = ValueKind::kInteger,
                       .metavar = "K",
                       .letter = 'k',
                       .fallback = "5",
                       .least = 1,
                       .most = 100},
                      {.name = "embed", .help = "features", .kind = ValueKind::kFlag, .letter = 'e'},
                      {.name = "ratio", .help = "a ratio", .kind = ValueKind::kNumber, .metavar = "X"},
                      {.name = "label", .help = "labels", .metavar = "L", .repeated = true},
                      {.name = "model.depth", .help = "blocks", .kind = ValueKind::kInteger, .metavar = "N"},
                      {.name = "to",
                       .help = "dialect",
                       .metavar = "D",
                       .choices = {"hf", "timm", "google"},
                       .former_name = "dialect",
                       .former_choices = {{"jax", "google"}}}},
          .positionals = {{"IN", "input", 1, 1}, {"MORE...", "others", 0, 2}}};
}

struct Surroundings {
  std::map<std::string, std::string> environment;
  std::string config;
};

Options parse(std::vector<std::string> arguments, const Surroundings& around = {}) {
  return parse_options(
      sample_command(), arguments,
      [&](const std::string& name) {
        const auto found = around.environment.find(name);
        return found == around.environment.end() ? nullptr : found->second.c_str();
      },
      [&](const std::string& path) { return parse_config(around.config, path); });
}

// The message and hint of the error that parsing gives.
std::string refusal(std::vector<std::string> arguments, const Surroundings& around = {}) {
  try {
    parse(std::move(arguments), around);
  } catch (const Error& error) {
    EXPECT_EQ(exit_code(error.kind()), 64);
    return error.what();
  }
  return "accepted";
}

TEST(Options, ReadsEveryWayOfWritingAValue) {
  const std::vector<std::vector<std::string>> ways = {
      {"in", "--top-k", "7"},  {"--top-k=7", "in"},
      {"-k", "7", "in"},       {"-k7", "in"},
      {"in", "--top_k", "7"},  {"in", "--set", "top-k=7"},
      {"in", "--set=top_k=7"}, {"in", "--set", "bench.infer.top-k=7"}};
  for (const auto& way : ways) EXPECT_EQ(parse(way).integer("top-k"), 7) << way[0];
}

TEST(Options, FlagsRunTogetherAndCanBeTakenBack) {
  const Options options = parse({"-qek3", "in"});
  EXPECT_TRUE(options.flag("quiet"));
  EXPECT_TRUE(options.flag("embed"));
  EXPECT_EQ(options.integer("top-k"), 3);
  EXPECT_FALSE(parse({"in", "--embed=false"}, {{{"VITRAIL_EMBED", "1"}}, ""}).flag("embed"));
}

TEST(Options, PositionalsAndWhatFollowsTwoDashes) {
  EXPECT_EQ(parse({"a", "-e", "-", "--", "--json"}).positionals(),
            (std::vector<std::string>{"a", "-", "--json"}));
  const Options two = parse({"a", "b"});
  EXPECT_EQ(two.positional(0) + two.positional(1), "ab");
  EXPECT_NE(thrown_by([&] { two.positional(2); }).find("positional argument 2 of 2"), std::string::npos);
  EXPECT_NE(refusal({}).find("needs IN"), std::string::npos);
  EXPECT_NE(refusal({"a", "b", "c", "d"}).find("'d'"), std::string::npos);
}

TEST(Options, FormerNamesAreAcceptedAndNamedOnce) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(parse({"in", "--to", "google"}).former_names(), Lines());
  const Options flag = parse({"in", "--dialect", "jax"});
  EXPECT_EQ(flag.text("to"), "google");
  EXPECT_EQ(flag.former_names(), (Lines{"--dialect is now --to", "to=jax is now to=google"}));
  const Options set = parse({"in", "--set", "to=jax", "--set", "to=jax"});
  EXPECT_EQ(set.text("to"), "google");
  EXPECT_EQ(set.former_names(), Lines{"to=jax is now to=google"});
  EXPECT_EQ(parse({"in"}, {.environment = {{"VITRAIL_TO", "jax"}}, .config = {}}).text("to"), "google");
  EXPECT_NE(refusal({"in", "--to", "flax"}).find("hf, timm, google"), std::string::npos);
  EXPECT_EQ(parse({"in", "--set", "dialect=timm"}).former_names(), Lines{"dialect is now to"});
  const Options variable = parse({"in"}, {.environment = {{"VITRAIL_DIALECT", "timm"}}, .config = {}});
  EXPECT_EQ(variable.text("to"), "timm");
  EXPECT_EQ(variable.former_names(), Lines{"VITRAIL_DIALECT is now VITRAIL_TO"});
  EXPECT_NE(refusal({"in", "--dialcet", "hf"}).find("did you mean --to?"), std::string::npos);
  EXPECT_NE(refusal({"in", "--set", "dialects=hf"}).find("did you mean to?"), std::string::npos);
}

TEST(Options, TheStrongestOriginWins) {
  const std::string config = R"({"top-k": 11, /* a comment */ "bench": {"infer": {"ratio": 0.5}}})";
  const std::map<std::string, std::string> environment = {{"VITRAIL_TOP_K", "12"}};
  const std::vector<std::string> file = {"in", "--config", "c.json"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), file.begin(), file.end());
    return more;
  };
  struct Row {
    std::vector<std::string> arguments;
    std::map<std::string, std::string> environment;
    int64_t value;
    Origin origin;
  };
  const Row rows[] = {{{"in"}, {}, 5, Origin::kDefault},
                      {file, {}, 11, Origin::kConfig},
                      {file, environment, 12, Origin::kEnvironment},
                      {with({"--set", "top-k=13"}), environment, 13, Origin::kSet},
                      {with({"-k", "14", "--set", "top-k=13"}), environment, 14, Origin::kFlag}};
  for (const Row& row : rows) {
    const Options options = parse(row.arguments, {row.environment, config});
    EXPECT_EQ(options.integer("top-k"), row.value);
    EXPECT_STREQ(to_string(options.origin("top-k")), to_string(row.origin));
  }
  EXPECT_DOUBLE_EQ(parse(file, {{}, config}).number("ratio"), 0.5);
}

TEST(Options, RepeatedValuesAddUpWithinAnOriginOnly) {
  const Surroundings config = {{}, R"({"label": ["x", "y"]})"};
  EXPECT_EQ(parse({"in", "--label", "a", "--label=b"}).list("label"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(parse({"in", "--config", "c"}, config).list("label"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(parse({"in", "--config", "c", "--label", "a"}, config).list("label"),
            std::vector<std::string>{"a"});
  EXPECT_EQ(parse({"in", "--set", "to=hf", "--set", "to=timm"}).text("to"), "timm") << "the last one counts";
}

TEST(Options, SettingsWithDotsComeFromNestedConfigs) {
  EXPECT_EQ(parse({"in", "--set", "model.depth=24"}).integer("model.depth"), 24);
  EXPECT_EQ(parse({"in", "--config", "c"}, {{}, R"({"model": {"depth": 6}})"}).integer("model.depth"), 6);
  EXPECT_FALSE(parse({"in"}).given("model.depth"));
}

struct Wrong {
  std::vector<std::string> arguments;
  std::string says;
};

TEST(Options, RefusesWithTheNearestName) {
  const Wrong rows[] = {{{"in", "--tpo-k", "5"}, "did you mean --top-k?"},
                        {{"in", "--jsn"}, "did you mean --json?"},
                        {{"in", "--to", "tim"}, "did you mean timm?"},
                        {{"in", "--set", "model.dpeth=3"}, "did you mean model.depth?"},
                        {{"in", "--completely-unknown"}, "bench infer --help"},
                        {{"in", "-x"}, "no option -x"}};
  for (const Wrong& row : rows) {
    const std::string text = refusal(row.arguments);
    EXPECT_NE(text.find(row.says), std::string::npos) << text;
  }
}

TEST(Options, RefusesValuesOutOfBounds) {
  const Wrong rows[] = {{{"in", "-k", "0"}, "from 1 to 100"},
                        {{"in", "-k", "101"}, "from 1 to 100"},
                        {{"in", "-k", "5.5"}, "whole number"},
                        {{"in", "-k", ""}, "whole number"},
                        {{"in", "-k", "99999999999999999999"}, "whole number"},
                        {{"in", "--ratio", "nan"}, "a number"},
                        {{"in", "--ratio", "1x"}, "a number"},
                        {{"in", "--embed=maybe"}, "true or false"},
                        {{"in", "--top-k"}, "needs a value"},
                        {{"in", "--set", "top-k"}, "KEY=VALUE"},
                        {{"in", "--set", "config=x"}, "no key 'config'"}};
  for (const Wrong& row : rows) {
    const std::string text = refusal(row.arguments);
    EXPECT_NE(text.find(row.says), std::string::npos) << text;
  }
}

TEST(Options, SaysWhereAWrongValueWasWritten) {
  EXPECT_NE(refusal({"in"}, {{{"VITRAIL_TOP_K", "zero"}}, ""}).find("VITRAIL_TOP_K (environment)"),
            std::string::npos);
  const std::string text = refusal({"in", "--config", "my.json"}, {{}, R"({"top-k": 1000})"});
  EXPECT_NE(text.find("my.json: top-k"), std::string::npos) << text;
}

TEST(Options, HelpWinsOverMistakes) {
  EXPECT_TRUE(parse({"--tpo-k", "--help"}).flag("help"));
  EXPECT_TRUE(parse({"-h"}).flag("help"));
  EXPECT_NE(refusal({"a", "b", "c", "--", "--help"}), "accepted");
}

TEST(Options, ACommandMayReplaceACommonOption) {
  CommandSpec command = sample_command();
  command.options.push_back({.name = "dtype", .help = "storage", .fallback = "same", .choices = {"same"}});
  size_t found = 0;
  for (const OptionSpec& spec : all_options(command)) found += spec.name == "dtype";
  EXPECT_EQ(found, 1u);
}

TEST(Options, EnvironmentNames) {
  EXPECT_EQ(environment_name("top-k"), "VITRAIL_TOP_K");
  EXPECT_EQ(environment_name("model.image_height"), "VITRAIL_MODEL_IMAGE_HEIGHT");
}

TEST(ConfigFile, FlattensAndKeepsTypesAsText) {
  const auto settings =
      parse_config("// top\n{\"a\": {\"b\": {\"c\": 1}}, \"d\": [1, \"x\", true], \"e\": 1e-3}", "f");
  std::map<std::string, std::vector<std::string>> found;
  for (const Setting& setting : settings) found[setting.key] = setting.values;
  EXPECT_EQ(found["a.b.c"], std::vector<std::string>{"1"});
  EXPECT_EQ(found["d"], (std::vector<std::string>{"1", "x", "true"}));
  EXPECT_EQ(std::stod(found["e"].at(0)), 1e-3);
}

TEST(ConfigFile, RefusesWhatItCannotMean) {
  const std::string deep = std::string(100000, '[');
  for (const std::string& text :
       {std::string("[1]"), std::string("3"), std::string("{\"a\": null}"), std::string("{\"a\": [[1]]}"),
        std::string("{\"a\": [{}]}"), std::string("{\"a\": 1, \"a\": 2}"), std::string("{\"a\": }"),
        std::string(), deep}) {
    try {
      parse_config(text, "c.json");
      FAIL() << text.substr(0, 40);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig);
      EXPECT_NE(std::string(error.what()).find("c.json"), std::string::npos);
    }
  }
}

TEST(ConfigFile, AMissingFileIsAConfigError) {
  try {
    read_config_file("/no/such/config.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(error.message().find("/no/such/config.json"), std::string::npos);
  }
}

enum class Shade { kLight, kDark };

}  // namespace
}  // namespace vitrail::cli

template <>
struct vitrail::EnumNames<vitrail::cli::Shade> {
  static constexpr const char* names[] = {"light", "dark"};
};

namespace vitrail::cli {
namespace {

// An option may be declared with choices that the field it is assigned to does not have.
TEST(FieldSettings, AValueThatIsNoneOfTheFieldsIsRefused) {
  const auto options = [](std::vector<std::string> more) {
    more.push_back("in");
    return parse(more);
  };
  Shade shade = Shade::kDark;
  try {
    assign_field(options({"--to", "hf"}), "to", shade);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(error.message().find("to cannot be \"hf\""), std::string::npos) << error.message();
    EXPECT_NE(error.hint().find("light, dark"), std::string::npos) << error.hint();
  }
  EXPECT_EQ(shade, Shade::kDark);
  std::vector<double> numbers;
  EXPECT_THROW(assign_field(options({"--label", "1", "--label", "x"}), "label", numbers), Error);
  assign_field(options({"--label", "1", "--label", "2.5"}), "label", numbers);
  EXPECT_EQ(numbers, (std::vector<double>{1, 2.5}));
}

}  // namespace
}  // namespace vitrail::cli
