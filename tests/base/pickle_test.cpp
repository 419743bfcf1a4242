#include "base/pickle.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/error.h"

namespace vitrail {
namespace {

using namespace std::string_literals;

template <typename Body>
void expect_refusal(const std::string& part, Body&& body) {
  try {
    body();
    ADD_FAILURE() << "accepted; expected a refusal with: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << "expected: " << part << "\nfound: " << error.what();
  }
}

const std::string kStart = "\x80\x02";

PickleGraph read(const std::string& ops, const PickleLimits& limits = {}) {
  return read_pickle(
      as_byte_span(ops), [](std::string_view name) { return name == "collections.OrderedDict"; }, limits);
}

TEST(Pickle, ReadsPlainValues) {
  const PickleGraph graph =
      read(kStart +
           "(NK\x07M\x01\x02J\xff\xff\xff\xff\x8a\x01\x80\x8a\x00G\x3f\xf8\0\0\0\0\0\0X\x02\0\0\0hi\x88t."s);
  const PickleNode& root = graph[graph.root];
  ASSERT_EQ(root.kind, PickleKind::kTuple);
  ASSERT_EQ(root.items.size(), 9u);
  const auto item = [&](size_t i) -> const PickleNode& { return graph[root.items[i]]; };
  EXPECT_EQ(item(0).kind, PickleKind::kNone);
  EXPECT_EQ(item(1).integer, 7);
  EXPECT_EQ(item(2).integer, 513);
  EXPECT_EQ(item(3).integer, -1);
  EXPECT_EQ(item(4).integer, -128);
  EXPECT_EQ(item(5).integer, 0);
  EXPECT_EQ(item(6).real, 1.5);
  EXPECT_EQ(item(7).text, "hi");
  EXPECT_EQ(item(8).kind, PickleKind::kBool);
}

TEST(Pickle, MemoSharesAndContainersGrow) {
  // x = []; {"a": x, "b": x}, with x appended to afterwards through the memo
  const PickleGraph graph = read(kStart +
                                 "}]q\1"
                                 "0(X\1\0\0\0ah\1X\1\0\0\0bh\1uh\1K\5"
                                 "a0."s);
  const PickleNode& root = graph[graph.root];
  ASSERT_EQ(root.kind, PickleKind::kDict);
  ASSERT_EQ(root.items.size(), 4u);
  EXPECT_EQ(root.items[1], root.items[3]);
  EXPECT_EQ(graph[root.items[1]].items.size(), 1u);
}

TEST(Pickle, AListMayHoldItself) {
  const PickleGraph graph = read(kStart + "]q\0h\0a."s);
  EXPECT_EQ(graph[graph.root].items[0], graph.root);
}

TEST(Pickle, CallsAreOnlyNoted) {
  const PickleGraph graph = read(kStart + "ccollections\nOrderedDict\n)RK\1K\2s}b.");
  const PickleNode& root = graph[graph.root];
  EXPECT_EQ(root.kind, PickleKind::kCall);
  EXPECT_EQ(graph[root.callee].text, "collections.OrderedDict");
  EXPECT_EQ(root.items.size(), 2u);
  ASSERT_NE(root.state, kNoPickleId);
  EXPECT_EQ(graph[root.state].kind, PickleKind::kDict);
}

// Every opcode of plain data, alone: what it leaves on the stack.
TEST(Pickle, EveryOpcodeMakesItsValue) {
  const auto root = [](const std::string& ops) {
    const PickleGraph graph = read(kStart + ops + ".");
    return graph[graph.root];
  };
  const std::pair<std::string, int64_t> integers[] = {{"\x88", 1},
                                                      {"\x89", 0},
                                                      {"J\xfe\xff\xff\xff", -2},
                                                      {"K\xff", 255},
                                                      {"M\xff\xff", 65535},
                                                      {"\x8a\x02\x00\x80"s, -32768},
                                                      {"\x8b\x01\0\0\0\x7f"s, 127}};
  for (const auto& [ops, value] : integers) EXPECT_EQ(root(ops).integer, value) << ops;
  EXPECT_EQ(root("\x8a\x09" + std::string(9, '\1')).kind, PickleKind::kBigInt);
  EXPECT_EQ(root("\x8a\x08" + std::string(8, '\1')).integer, 0x0101010101010101);
  const std::string eight("\2\0\0\0\0\0\0\0", 8), four("\2\0\0\0", 4);
  for (const std::string& ops : {"U\2hi"s, "T" + four + "hi", "C\2hi"s, "B" + four + "hi",
                                 "\x8e" + eight + "hi", "\x96" + eight + "hi"}) {
    EXPECT_EQ(root(ops).kind, PickleKind::kBytes) << ops;
    EXPECT_EQ(root(ops).text, "hi") << ops;
  }
  for (const std::string& ops : {"\x8c\2hi"s, "X" + four + "hi", "\x8d" + eight + "hi"}) {
    EXPECT_EQ(root(ops).kind, PickleKind::kString) << ops;
    EXPECT_EQ(root(ops).text, "hi") << ops;
  }
  const std::tuple<std::string, PickleKind, size_t> containers[] = {
      {")", PickleKind::kTuple, 0},       {"(NNt", PickleKind::kTuple, 2},
      {"N\x85", PickleKind::kTuple, 1},   {"NN\x86", PickleKind::kTuple, 2},
      {"NNN\x87", PickleKind::kTuple, 3}, {"]", PickleKind::kList, 0},
      {"]Na", PickleKind::kList, 1},      {"](NNe", PickleKind::kList, 2},
      {"\x8f", PickleKind::kSet, 0},      {"\x8f(NN\x90", PickleKind::kSet, 2},
      {"}", PickleKind::kDict, 0},        {"(NNNNd", PickleKind::kDict, 4},
      {"}NNs", PickleKind::kDict, 2},     {"}(NNNNu", PickleKind::kDict, 4}};
  for (const auto& [ops, kind, items] : containers) {
    EXPECT_EQ(root(ops).kind, kind) << ops;
    EXPECT_EQ(root(ops).items.size(), items) << ops;
  }
  EXPECT_EQ(root("K\1K\2\x86").items, (std::vector<PickleId>{0, 1})) << "in their order";
  EXPECT_EQ(root("K\1K\0020"s).integer, 1) << "POP";
  EXPECT_EQ(root("K\1(K\2K\0031"s).integer, 1) << "POP_MARK";
  EXPECT_EQ(root("K\0072\x86"s).items, (std::vector<PickleId>{0, 0})) << "DUP";
  EXPECT_EQ(root("K\5q\0070h\7"s).integer, 5);
  EXPECT_EQ(root("K\5r" + four + "0j" + four).integer, 5);
  EXPECT_EQ(root("K\5\x94K\6\x94\x30\x30h\1"s).integer, 6) << "MEMOIZE counts";
  EXPECT_EQ(root("\x95" + eight + "K\5").integer, 5) << "FRAME is passed over";
  EXPECT_EQ(root("K\5Q").kind, PickleKind::kPersistent);
}

TEST(Pickle, NamesOutsideTheListAreRefused) {
  const std::string command = "X\x02\0\0\0ls\x85R."s;
  expect_refusal("\"os.system\"", [&] { read(kStart + "cos\nsystem\n" + command); });
  expect_refusal("would need to run code", [&] { read(kStart + "cposix\nsystem\n" + command); });
  expect_refusal("\"builtins.eval\"", [&] { read("\x80\x04\x8c\x08"s + "builtins\x8c\x04" + "eval\x93."); });
  expect_refusal("\"collections.OrderedDict.x\"", [&] { read(kStart + "ccollections\nOrderedDict.x\n."); });
}

TEST(Pickle, HostileStreams) {
  struct Case {
    std::string ops, refusal;
  };
  const Case cases[] = {
      {"", "cut short"},
      {"X", "cut short"},
      {"(lp0\n.", "does not begin with a protocol"},
      {"\x80\x06N.", "protocol 6"},
      {"\x80\x01N.", "protocol 1"},
      {kStart + ".", "the stack has none"},
      {kStart + "(.", "the stack has none"},
      {kStart + "N(00.", "the stack has none"},
      {kStart + "t.", "no mark"},
      {kStart + "a.", "the stack has none"},
      {kStart + "NNa.", "not a list or set"},
      {kStart + "}(K\1u.", "a key without a value"},
      {kStart + "](NNu.", "not a dict"},
      {kStart + "h\1.", "never filled"},
      {kStart + "Nr\xff\xff\xff\xff.", "too large"},
      {kStart + "X\xff\xff\xff\x7fhi.", "cut short"},
      {kStart + "\x8d\xff\xff\xff\xff\xff\xff\xff\xffhi.", "cut short"},
      {kStart + "\x8b\xff\xff\xff\xff.", "cut short"},
      {kStart + "X\1\0\0\0\xff."s, "not UTF-8"},
      {kStart + "NNR.", "not of a name"},
      {kStart + "NNb.", "not an object"},
      {kStart + "K\1K\2\x93.", "not a text"},
      {kStart + "I1\n.", "opcode 0x49"},
      {kStart + "ios\nsystem\n.", "opcode 0x69"},
      {kStart + "\x82\1.", "opcode 0x82"},
      {kStart + "c" + std::string(2000, 'a'), "more than 1024 bytes"},
      {kStart + "N", "cut short"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.refusal);
    expect_refusal(c.refusal, [&] { read(c.ops); });
  }
}

TEST(Pickle, LimitsHold) {
  const std::string many(10000, 'N'), marks(10000, '('), half(60, 'N'), nested(100000, ']');
  expect_refusal("more than 100 values", [&] { read(kStart + many + ".", {.max_nodes = 100}); });
  expect_refusal("more than 100 marks", [&] { read(kStart + marks + ".", {.max_nodes = 100}); });
  expect_refusal("more than 100 operations", [&] { read(kStart + many + ".", {.max_ops = 100}); });
  expect_refusal("values on the stack",
                 [&] { read(kStart + "N" + std::string(1000, '2'), {.max_items = 100}); });
  expect_refusal("more than 100 elements",
                 [&] { read(kStart + "](" + half + "e(" + half + "e.", {.max_items = 100}); });
  expect_refusal("at most 10 are read", [&] { read(kStart + many, {.max_bytes = 10}); });
  // 100,000 lists inside each other: built and dropped without recursion.
  EXPECT_NO_THROW(read(kStart + nested + std::string(99999, 'a') + "."));
}

}  // namespace
}  // namespace vitrail
