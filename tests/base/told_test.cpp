// What settings, errors and signals say of themselves, word by word.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/config_file.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/plugin_library.h"
#include "base/stop.h"
#include "base/text.h"
#include "base/write_error.h"

namespace vitrail {
namespace {

using Texts = std::vector<std::string>;

struct Said {
  std::string kind, message, hint;
  bool operator==(const Said&) const = default;
};
template <typename Body>
Said said_when(Body&& body) {
  try {
    body();
    return {};
  } catch (const Error& error) {
    return {to_string(error.kind()), error.message(), error.hint()};
  }
}

TEST(FieldAdvice, TheChoicesOrTheDefaultAndWhatItIsFor) {
  EXPECT_EQ(field_advice({.key = "a.b", .help = "why", .choices = {"x", "y"}}), "one of x, y (why)");
  EXPECT_EQ(field_advice({.key = "a.b", .usual = "3"}), "a.b=3, its default");
  EXPECT_EQ(field_advice({.key = "batch", .usual = "3"}), "--batch 3, its default");
  EXPECT_EQ(field_advice({.key = "a.b"}), "leave a.b out: what the model or the machine says holds then");
  EXPECT_EQ(field_advice({.key = "a.b", .kind = FieldKind::kNumbers, .usual = "3"}),
            "leave a.b out: 3 holds then");
  EXPECT_EQ(field_advice({.key = "a.b", .usual = "3, 4"}), "leave a.b out: 3, 4 holds then");
}

TEST(FieldValues, OfEveryKind) {
  const auto said = [](FieldKind kind, const Json& value) {
    FieldSpec spec{.key = "k", .kind = kind, .usual = "1"};
    if (kind == FieldKind::kChoice) spec.choices = {"red", "blue"}, spec.former = {{"rouge", "red"}};
    return said_when([&] { check_json(spec, value, "f: k"); });
  };
  const std::tuple<FieldKind, Json, const char*> good[] = {{FieldKind::kBool, true, ""},
                                                           {FieldKind::kChoice, "blue", ""},
                                                           {FieldKind::kChoice, "rouge", ""},
                                                           {FieldKind::kInteger, -3, ""},
                                                           {FieldKind::kInteger, INT64_MAX, ""},
                                                           {FieldKind::kNumber, 1.5, ""},
                                                           {FieldKind::kNumber, 2, ""},
                                                           {FieldKind::kText, "x", ""},
                                                           {FieldKind::kNumbers, Json{1, 2.5}, ""},
                                                           {FieldKind::kNumbers, 3, ""},
                                                           {FieldKind::kTexts, Json{"a", 3}, ""},
                                                           {FieldKind::kTexts, "a", ""}};
  for (const auto& [kind, value, nothing] : good) EXPECT_EQ(said(kind, value).message, nothing) << value;
  const std::tuple<FieldKind, Json, const char*> bad[] = {
      {FieldKind::kBool, 1, "f: k expects one of true, false, not '1'"},
      {FieldKind::kChoice, "green", "f: k expects one of red, blue, not 'green'"},
      {FieldKind::kChoice, 3, "f: k expects one of red, blue, not '3'"},
      {FieldKind::kInteger, 1.5, "f: k expects a whole number, not '1.5'"},
      {FieldKind::kInteger, uint64_t{1} << 63, "f: k expects a whole number, not '9223372036854775808'"},
      {FieldKind::kNumber, "1", "f: k expects a number, not '1'"},
      {FieldKind::kNumbers, Json{1, "x"}, "f: k expects a number, not 'x'"},
      {FieldKind::kText, 3, "f: k expects a text, not '3'"},
      {FieldKind::kTexts, Json{true}, "f: k expects a text, not 'true'"},
      {FieldKind::kText, nullptr, "f: k is null; expected a value"},
      {FieldKind::kText, Json{"a", "b"}, "f: k takes one value, not array"},
      {FieldKind::kTexts, Json::object(), "f: k takes one value, not object"}};
  for (const auto& [kind, value, message] : bad) {
    EXPECT_EQ(said(kind, value).message, message);
    EXPECT_EQ(said(kind, value).kind, "config") << value;
  }
  EXPECT_EQ(said(FieldKind::kChoice, "blu").hint, "did you mean blue?");
  EXPECT_EQ(said(FieldKind::kChoice, "zzzzzz").hint, "one of red, blue");
  EXPECT_EQ(texts_of(Json{"a", 3, true}), (Texts{"a", "3", "true"}));
  EXPECT_EQ(texts_of("a"), Texts{"a"});
}

TEST(FieldValues, AsTextAndBack) {
  EXPECT_EQ(field_text(true), "true");
  EXPECT_EQ(field_text(int64_t{123456789012}), "123456789012");
  EXPECT_EQ(field_text(0.1), "0.1");
  EXPECT_EQ(field_text(std::vector<double>{0.25, 3}), "0.25, 3");
  EXPECT_EQ(field_text(Texts{"a", "b"}), "a, b");
  EXPECT_EQ(field_spec<bool>("k", "h").choices, (Texts{"true", "false"}));
  EXPECT_EQ(field_spec<int64_t>("k", "h").kind, FieldKind::kInteger);
  EXPECT_EQ(field_spec<double>("k", "h").kind, FieldKind::kNumber);
  EXPECT_EQ(field_spec<std::vector<double>>("k", "h").kind, FieldKind::kNumbers);
  EXPECT_EQ(field_spec<Texts>("k", "h").kind, FieldKind::kTexts);
  EXPECT_EQ(field_spec<std::string>("k", "h").kind, FieldKind::kText);
  std::vector<double> numbers;
  set_field(Json(3), field_spec<std::vector<double>>("k", ""), "p", numbers);
  EXPECT_EQ(numbers, std::vector<double>{3});
}

TEST(ConfigFile, NestedObjectsBecomeDottedKeys) {
  std::map<std::string, Texts> found;
  for (const Setting& s : parse_config(R"({"a": {"b": {"c": 1.5}}, "d": ["x", 2, true], // note
      "e": "text"})",
                                       "run.json")) {
    found[s.key] = s.values;
    EXPECT_EQ(s.place, "run.json");
  }
  EXPECT_EQ(found,
            (std::map<std::string, Texts>{{"a.b.c", {"1.5"}}, {"d", {"x", "2", "true"}}, {"e", {"text"}}}));
  const std::pair<const char*, Said> rows[] = {
      {"[1]", {"config", "f holds array; expected a config file, which is one object", "{ \"key\": value }"}},
      {R"({"a": {"b": null}})",
       {"config", "the key \"a.b\" is null; expected a value", "leave the key out for its default"}},
      {R"({"a": [[1]]})", {"config", "the array \"a\" holds array; expected plain values", "\"a\": [1, 2]"}},
      {R"({"a": {"b": 1}, "a.b": 2})",
       {"config", "f: the key \"a.b\" stands twice", "leave one of them out"}}};
  for (const auto& [text, expected] : rows)
    EXPECT_EQ(said_when([&, t = text] { parse_config(t, "f"); }), expected) << text;
  const Said missing = said_when([] { read_config_file("/nowhere/at/all"); });
  EXPECT_EQ(missing.kind, "config");
  EXPECT_EQ(missing.hint, "check what is given to --config");
}

TEST(WriteErrors, SayWhatToTry) {
  const std::pair<int, const char*> rows[] = {
      {ENOENT, "create the folder first"},
      {ENOTDIR, "name a path that leads through folders only"},
      {EEXIST, "name a path that leads through folders only"},
      {EISDIR, "name a file, not a folder"},
      {EACCES, "choose a place that can be written"},
      {EPERM, "choose a place that can be written"},
      {EROFS, "choose a place that can be written"},
      {ENAMETOOLONG, "choose a shorter name"},
      {EIO, "look at the disk and its system's log, or choose another place"},
      {ENOSPC, "free some space or choose another place"},
      {EDQUOT, "free some space or choose another place"}};
  for (const auto& [code, hint] : rows) {
    const Said said = said_when([&, c = code] { cannot_write("create", "there", c); });
    EXPECT_EQ(said.kind, "write");
    EXPECT_EQ(said.hint, hint) << code;
    EXPECT_EQ(said.message.find("cannot create there: "), 0u);
  }
  EXPECT_THROW(cannot_write("x", "y", ENOSPC), NoRoom);
  EXPECT_THROW(cannot_write("x", "y", EDQUOT), NoRoom);
  EXPECT_EQ(said_when([] {
              require_different_paths({{"--a", "x/./y"}, {"--b", ""}, {"--c", "z"}, {"--d", "x/y"}});
            }),
            (Said{"usage", "--a and --d both write to x/y", "a path of its own for each"}));
  EXPECT_EQ(said_when([] { require_different_paths({{"--a", ""}, {"--b", ""}}); }), Said{});
}

TEST(ErrorNames, AreThoseOfTheirKinds) {
  const char* names[] = {"internal", "check", "usage",    "config", "data",  "numerics",
                         "device",   "comm",  "deadline", "memory", "write", "stopped"};
  for (size_t i = 0; i < std::size(names); ++i) EXPECT_STREQ(to_string(static_cast<ErrorKind>(i)), names[i]);
  EXPECT_EQ(said_when([] { VT_CHECK(1 > 2); }).hint,
            "this is a fault in Vitrail; please report it with the command used");
  EXPECT_TRUE(said_when([] { VT_CHECK(1 > 2); }).message.ends_with(": 1 > 2 does not hold"));
}

TEST(StopRequests, EndAListBeforeItsEndOnly) {
  EXPECT_EQ(said_when([] { SignalGuard::check(true, 3, 5); }),
            (Said{"stopped", "stopped on request after 3 of 5 images",
                  "what was written is whole; run again with the rest of the list"}));
  EXPECT_EQ(said_when([] { SignalGuard::check(true, 5, 5); }), Said{});
  EXPECT_EQ(said_when([] { SignalGuard::check(false, 3, 5); }), Said{});
}

TEST(Plugins, SayWhatIsNotThere) {
  const Plugin<void> none = open_plugin(
      {.file = "libnothing_at_all.so", .symbol = "s", .brings = "wings", .absent = "; fly", .broken = "b"});
  EXPECT_EQ(none.problem, "libnothing_at_all.so is not beside the program: this build has no wings; fly");
  EXPECT_EQ(none.api, nullptr);
  EXPECT_EQ(none.path, "");
}

TEST(TextFacts, LimitsOfQuotesAndNames) {
  EXPECT_EQ(quoted(std::string(79, 'x')), "\"" + std::string(79, 'x') + "\"");
  EXPECT_EQ(quoted(std::string(80, 'x')), "\"" + std::string(79, 'x') + "...\"");
  EXPECT_EQ(printable("\ufff9\ufffa\ufffb\ufffc"), "\\ufff9\\ufffa\\ufffb\ufffc");
  EXPECT_EQ(printable("\u200d\u2027\u202f\u2065\u206a"), "\u200d\u2027\u202f\u2065\u206a")
      << "beside the ranges";
  EXPECT_EQ(printable("\x7e\u00a0"), "\x7e\u00a0");
  // A third of the letters, but two at least, may be wrong.
  EXPECT_EQ(nearest_name("abc", Texts{"axy"}), "axy");
  EXPECT_EQ(nearest_name("abc", Texts{"xyz"}), "");
  EXPECT_EQ(nearest_name("abcdefghi", Texts{"abcdefxyz"}), "abcdefxyz");
  EXPECT_EQ(nearest_name("abcdefghi", Texts{"abcdewxyz"}), "");
  const std::string longest(256, 'x');
  EXPECT_EQ(nearest_name(longest, Texts{longest}), longest);
  EXPECT_EQ(nearest_name(longest + "x", Texts{longest}), "");
  EXPECT_EQ(nearest_name(longest, Texts{longest + "x"}), "");
}

}  // namespace
}  // namespace vitrail
