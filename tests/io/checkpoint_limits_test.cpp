// Limits of manifests, parts and names, and what several ranks are told of each other's errors.
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "base/process_mark.h"
#include "base/write_error.h"
#include "faults/small_run.h"
#include "faults/turn_partners.h"
#include "io/checkpoint/durable.h"
#include "io/checkpoint/unfinished.h"
#include "io/samples.h"

namespace vitrail::testing {
namespace {

TEST(CheckpointLimits, NamesThatAManifestMayList) {
  for (const std::string& good :
       {std::string("a"), std::string(255, 'x'), std::string("a.b-c_d~!"), std::string("x.")})
    EXPECT_TRUE(is_plain_file_name(good)) << good;
  for (const std::string& bad :
       {std::string(), std::string(256, 'x'), std::string(".hidden"), std::string("a b"), std::string("a\\b"),
        std::string("a/b"), std::string("a\x7f"), std::string("a\xc3\xa9"), std::string("manifest.json")})
    EXPECT_FALSE(is_plain_file_name(bad)) << bad;
}

TEST(CheckpointLimits, FilesAndPiecesOfAManifest) {
  const auto said = [](size_t files, int64_t pieces) -> std::string {
    Manifest manifest;
    for (size_t i = 0; i < files; ++i) manifest.files.push_back({.name = "f" + std::to_string(i)});
    manifest.pieces = pieces;
    try {
      parse_manifest(manifest_text(manifest), "m");
      return "";
    } catch (const Error& error) {
      return error.message();
    }
  };
  EXPECT_EQ(said(10'000, 0), "");
  EXPECT_EQ(said(10'001, 0), "10001 files, at most 10000 are read");
  EXPECT_EQ(said(1, 10'000), "");
  EXPECT_EQ(said(1, 10'001), "10001 pieces");
}

TEST(CheckpointLimits, AReaderLooksAtItsShareOfTheBlocks) {
  std::string content(static_cast<size_t>(3 * kChecksumBlock), 'x');
  const FileRecord record = record_of(*in_memory(content), "f");
  content[static_cast<size_t>(kChecksumBlock)] = 'y';  // in block 1
  for (uint64_t of = 2; of <= 3; ++of)
    for (uint64_t remainder = 0; remainder < of; ++remainder) {
      if (remainder == 1)
        expect_refusal("memory is damaged: block 1 (bytes 1048576 to 2097151) does not match its checksum",
                       [&] { require_share_intact(*in_memory(content), record, remainder, of); });
      else
        EXPECT_NO_THROW(require_share_intact(*in_memory(content), record, remainder, of));
    }
  expect_refusal("memory has 3 bytes, 3145728 were written",
                 [&] { require_intact(*in_memory("abc"), record); });
}

TEST(CheckpointLimits, PartsAtTheirLimits) {
  const auto said = [](const char* json) -> std::string {
    try {
      part_from(parse_json(json, "test"));
      return "";
    } catch (const Error& error) {
      return error.message();
    }
  };
  const std::pair<const char*, const char*> rows[] = {
      {R"({"shape": [9007199254740992], "offset": [0], "local": [1], "range": [0, 1]})", ""},
      {R"({"shape": [9007199254740993], "offset": [0], "local": [1], "range": [0, 1]})",
       "a part of a tensor with too many elements"},
      {R"({"shape": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1], "offset": [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],
           "local": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1], "range": [0, 1]})",
       ""},
      {R"({"shape": [2, 3], "offset": [0, 0], "local": [2, 4], "range": [0, 2]})",
       "a part reaches beyond dim 1 of its tensor"},
      {R"({"shape": [2, 3], "offset": [0, 1], "local": [2, 2], "range": [4, 0]})", ""},
      {R"({"shape": [2, 3], "offset": [0, 1], "local": [2, 2], "range": [0, 5]})",
       "a part has elements 0 to 5 of 4"},
      {R"({"shape": [2], "offset": [0], "local": [2, 1], "range": [0, 2]})",
       "a part of 1 dims has 1 offsets and 2 extents"},
      {R"({"shape": [2], "offset": [0], "local": [2], "range": [0, 2, 3]})",
       "\"range\" of a part has 3 numbers, not first and count"},
      {R"({"shape": [1.5], "offset": [0], "local": [2], "range": [0, 2]})",
       "\"shape\" of a part holds 1.5, which is no count"},
  };
  for (const auto& [json, reason] : rows) EXPECT_EQ(said(json), reason) << json;
}

TEST(CheckpointLimits, NamesOfUnfinishedWork) {
  const std::string mark = ProcessMark::current().text();
  for (const std::string& good : {".tmp-step-0-" + mark, ".tmp-a-b-12-" + mark, std::string(".tmp-gone-0-x"),
                                  std::string(".tmp-gone-15-x"), unfinished_name("probe")})
    EXPECT_TRUE(is_unfinished(good)) << good;
  for (const std::string& bad :
       {".tmp-0-" + mark, ".tmp-step-x-" + mark, "tmp-step-0-" + mark, std::string(".tmp-step-0"),
        std::string(".tmp-gone-16-x"), std::string(".tmp-gone-015-x"), std::string(".tmp-gone-1-"),
        std::string(".tmp-gone--x"), std::string(".tmp-gone-1x-x"), std::string(".tmp-"),
        std::string("step-00000001")})
    EXPECT_FALSE(is_unfinished(bad)) << bad;
  EXPECT_NE(unfinished_name("a"), unfinished_name("a"));
  EXPECT_TRUE(unfinished_name("a").starts_with(".tmp-a-"));
}

TEST(CheckpointLimits, NamesOfHalfWrittenFiles) {
  for (const auto& [name, file] :
       std::initializer_list<std::pair<const char*, const char*>>{{".a.json.tmp-12-3", "a.json"},
                                                                  {".a.tmp-1-2.tmp-12-3", "a.tmp-1-2"},
                                                                  {".a.json.tmp-12", ""},
                                                                  {".a.json.tmp-12-", ""},
                                                                  {".a.json.tmp--3", ""},
                                                                  {".a.json.tmp-12-3-4", ""},
                                                                  {".a.json.tmp-x-3", ""},
                                                                  {"a.json.tmp-12-3", ""},
                                                                  {"..tmp-12-3", ""},
                                                                  {".tmp-12-3", ""},
                                                                  {".a.json", ""},
                                                                  {"", ""}})
    EXPECT_EQ(half_written_file(name), file) << name;
}

TEST(CheckpointLimits, GoingBackRemovesWhatCameAfterAndNothingElse) {
  const TempFolder run;
  CheckpointStore store(run.path().string(), {.keep_last = 9});
  for (const int64_t step : {1, 2, 3, 100'000'000}) store.save(small_content(step));
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{1, 2, 3, 100'000'000})) << "more digits than eight";
  store.remove_after(2);
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{1, 2}));
  const auto is_first = [](const Json& facts) { return facts.contains("first"); };
  EXPECT_FALSE(store.newest_good(nullptr, nullptr, is_first));
  CheckpointContent content = small_content(0);
  content.facts["first"] = true;
  store.save(content);
  EXPECT_EQ(store.newest_good(nullptr, nullptr, is_first)->step, 0);
}

// What cannot be read back was not written.
TEST(CheckpointLimits, AnErrorOfDataWhileSavingIsOneOfWriting) {
  const TempFolder run;
  CheckpointStore store(run.path().string());
  CheckpointContent content = small_content(1);
  content.write_model = [](const std::string&) { throw Error(ErrorKind::kData, "not what was written"); };
  try {
    store.save(content);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kWrite);
    EXPECT_NE(error.message().find("not what was written"), std::string::npos);
  }
}

// A fifth more than the bytes themselves is asked for: of state and model alike.
TEST(CheckpointLimits, RoomIsAskedForStateAndModel) {
  const TempFolder run;
  CheckpointStore store(run.path().string());
  CheckpointContent content = small_content(1);
  content.state[0].info.bytes = uint64_t{1} << 60;
  content.model_bytes = 5000;
  try {
    store.save(content);
    ADD_FAILURE();
  } catch (const Error& error) {
    // (2^60 + 2,500 of the second tensor + 5,000) * 6 / 5, rounded down
    EXPECT_NE(error.message().find(": 1383505805528225371 bytes needed, "), std::string::npos)
        << error.message();
    EXPECT_EQ(error.hint(), "free some space, keep fewer checkpoints, or choose another place with --out");
  }
}

TEST(CheckpointLimits, EveryRankLearnsTheKindAndTheRemedy) {
  const struct {
    std::function<void()> fail;
    ErrorKind kind;
    const char *text, *hint;
  } rows[] = {
      {[] { throw Error(Error(ErrorKind::kData, "bad", "mend it").at("inner").at("outer")); },
       ErrorKind::kData, "outer: inner: bad", "mend it"},
      {[] { throw NoRoom(ErrorKind::kWrite, "full", "free some"); }, ErrorKind::kWrite, "full", "free some"},
      {[] { throw std::bad_alloc(); }, ErrorKind::kMemory, "out of memory", ""},
      {[] { throw std::runtime_error("odd"); }, ErrorKind::kInternal, "odd", ""},
  };
  for (const auto& row : rows) {
    int failed_ranks[3] = {-1, -1, -1};
    const auto errors = on_ranks(3, [&](Partners& partners) {
      agreed(
          partners, [&] { return partners.rank() == 1 ? row.fail(), std::string() : std::string("fine"); },
          &failed_ranks[partners.rank()]);
    });
    for (const auto& error : errors) {
      ASSERT_TRUE(error);
      try {
        std::rethrow_exception(error);
      } catch (const Error& told) {
        EXPECT_EQ(told.kind(), row.kind);
        EXPECT_EQ(told.message(), row.text);
        EXPECT_EQ(told.hint(), row.hint);
        EXPECT_EQ(dynamic_cast<const NoRoom*>(&told) != nullptr, std::string(row.text) == "full");
      }
    }
    for (const int rank : failed_ranks) EXPECT_EQ(rank, 1);
  }
  std::vector<std::string> given;
  on_ranks(2, [&](Partners& partners) {
    const auto all = agreed(partners, [&] { return "of " + std::to_string(partners.rank()); });
    if (partners.rank() == 1) given = all;
  });
  EXPECT_EQ(given, (std::vector<std::string>{"of 0", "of 1"}));
}

// Nobody is told of an exchange that failed: the others would not hear it.
TEST(CheckpointLimits, AnErrorOfExchangesPassesAtOnce) {
  class Silent : public Partners {
   public:
    int rank() const override { return 0; }
    int size() const override { return 2; }
    std::vector<std::string> from_all(const std::string&) override {
      ADD_FAILURE() << "asked";
      return {};
    }
  } partners;
  EXPECT_THROW(agreed(partners, []() -> std::string { throw Error(ErrorKind::kComm, "gone"); }), Error);
}

TEST(CheckpointLimits, FoldersOfPaths) {
  EXPECT_EQ(parent_of("a/b"), "a");
  EXPECT_EQ(parent_of("b"), ".");
  EXPECT_EQ(parent_of("/b"), "/");
  const TempFolder folder;
  EXPECT_TRUE(names_in(folder / "missing").empty());
  const std::string file = put(folder, "file", "x");
  expect_refusal("cannot list " + file, [&] { names_in(file); });
  EXPECT_NO_THROW(require_no_file(folder.path().string()));
  EXPECT_NO_THROW(require_no_file(folder / "missing"));
  try {
    require_no_file(file);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), file + " is a file, and a folder is to be there");
  }
  EXPECT_TRUE(has_space(folder.path().string(), 0));
  EXPECT_FALSE(has_space(folder.path().string(), UINT64_MAX - 1));
}

// One that does not count pushes nothing out, and goes when the next is there.
TEST(Checkpoint, OneThatDoesNotCountMakesWayForTheNext) {
  const TempFolder run;
  CheckpointStore store(run.path().string(), {.keep_last = 2});
  const auto save = [&](int64_t step, bool counts, int64_t replaces) {
    CheckpointContent content = small_content(step);
    content.counts = counts, content.replaces = replaces;
    store.save(content);
    return store.steps();
  };
  using Steps = std::vector<int64_t>;
  save(1, true, -1);
  EXPECT_EQ(save(2, true, -1), (Steps{1, 2}));
  EXPECT_EQ(save(3, false, -1), (Steps{1, 2, 3}));
  EXPECT_EQ(save(3, false, 3), (Steps{1, 2, 3})) << "it replaces itself";
  EXPECT_EQ(save(4, false, 3), (Steps{1, 2, 4}));
  EXPECT_EQ(save(5, true, 4), (Steps{2, 5}));
  EXPECT_EQ(save(6, true, 3), (Steps{5, 6})) << "it is gone already";
}

}  // namespace
}  // namespace vitrail::testing
