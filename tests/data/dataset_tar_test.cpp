// The tar format: WebDataset shards, the tar rules, and the patterns that stand for many shards.
#include "data/dataset.h"
#include "data/datasets/find_files.h"
#include "data/datasets/tar_reader.h"
#include "data/datasets/tar_samples.h"
#include "dataset_files.h"
#include "source_root.h"

namespace vitrail {
namespace {

using namespace test;
using namespace std::string_literals;
using Names = std::vector<std::string>;

std::vector<TarMember> walk(const std::string& bytes) {
  const MemoryBytes file("memory.tar", bytes);
  TarReader reader(file);
  std::vector<TarMember> members;
  while (auto member = reader.next()) members.push_back(*member);
  return members;
}

TEST(Tar, ShardsAreReadAtRandom) {
  const DataFolder folder;
  folder.file("a-000.tar",
              tar_file({{"x/0.jpg", png(10)}, {"x/0.cls", "2\n"}, {"x/1.cls", "0"}, {"x/1.png", png(11)}}));
  folder.file("a-001.tar", tar_file({{"x/2.seg.png", "?"},
                                     {"x/2.PNG", png(12)},
                                     {"x/2.json", "{\"label\": 1}"},
                                     {"only.txt", "no image here"}}));
  for (const char* pattern : {"a-{000..001}.tar", "a-*.tar", "{a-000,a-001}.tar"}) {
    const auto data = open_dataset("tar:" + folder.path(pattern), Part::kTrain);
    ASSERT_EQ(data->size(), 3) << pattern;
    EXPECT_EQ(data->classes(), (Names{"0", "1", "2"}));
    EXPECT_EQ(data->sample_name(2), "a-001.tar:x/2.PNG");
    for (const int64_t i : {2, 0, 1}) EXPECT_EQ(data->load(i, 0).pixels[0], 10 + i);
    EXPECT_EQ(data->labels(0)[0], 2);
    EXPECT_EQ(data->labels(2)[0], 1);
    EXPECT_FALSE(data->multi_label());
  }
  EXPECT_EQ(open_part_if_any("tar:" + folder.path("*.tar"), Part::kVal), nullptr);
  folder.file("classes.txt", "cat\ndog\nowl\nelk\n");
  EXPECT_EQ(open_dataset("tar:" + folder.path("a-000.tar"), Part::kAll)->classes(),
            (Names{"cat", "dog", "owl", "elk"}));
  folder.file("classes.txt", "cat\n");
  expect_refused("labels go up to 2", [&] { open_dataset("tar:" + folder.path("a-000.tar"), Part::kAll); });
}

TEST(Tar, NamesAndSeveralLabels) {
  const DataFolder folder;
  folder.file(
      "named.tar",
      tar_file({{"0.png", png(1)}, {"0.cls", "zebra"}, {"1.png", png(1)}, {"1.json", R"({"cls":"ape"})"}}));
  EXPECT_EQ(open_dataset("tar:" + folder.path("named.tar"), Part::kTrain)->classes(),
            (Names{"ape", "zebra"}));
  folder.file("several.tar", tar_file({{"0.png", png(1)},
                                       {"0.json", R"({"labels":[3,1,3]})"},
                                       {"1.png", png(1)},
                                       {"1.json", R"({"labels":[]})"}}));
  const auto data = open_dataset("tar:" + folder.path("several.tar"), Part::kTrain);
  EXPECT_TRUE(data->multi_label());
  EXPECT_EQ(std::vector<int32_t>(data->labels(0).begin(), data->labels(0).end()),
            (std::vector<int32_t>{1, 3}));
  EXPECT_TRUE(data->labels(1).empty());
  folder.file("one.tar", tar_file({{"0.png", png(1)}, {"0.json", R"({"labels":[2]})"}}));
  EXPECT_TRUE(open_dataset("tar:" + folder.path("one.tar"), Part::kTrain)->multi_label()) << "a list of one";
}

TEST(Tar, LongNamesAndSizes) {
  const std::string deep = std::string(120, 'd') + "/image.png";
  const std::string record = strf("%zu path=%s\n", deep.size() + 10, deep.c_str());
  ASSERT_EQ(record.size(), deep.size() + 10);
  const auto gnu = walk(tar_file({{"././@LongLink", deep + '\0', 'L'}, {deep.substr(0, 100), "abc"}}));
  ASSERT_EQ(gnu.size(), 1u);
  EXPECT_EQ(gnu[0].name, deep);
  const auto posix =
      walk(tar_file({{"PaxHeader", record + "10 size=2\n", 'x'}, {"short", "ab"}, {"next", "x"}}));
  ASSERT_EQ(posix.size(), 2u);
  EXPECT_EQ(posix[0].name, deep);
  EXPECT_EQ(posix[0].size, 2u);
  EXPECT_EQ(posix[1].name, "next");
  EXPECT_EQ(posix[1].size, 1u) << "a record counts for one member";
  const auto base256 = walk(tar_file({{"a", "xyz", '0', "\x80\0\0\0\0\0\0\0\0\0\0\3"s}}));
  EXPECT_EQ(base256[0].size, 3u);
  EXPECT_EQ(walk(tar_file({{"folder/", "", '5'}, {"folder/a", "x"}})).size(), 1u);
  EXPECT_EQ(walk(tar_file({{"a", "x", '0', {}, "ustar  \0"s}})).size(), 1u);
  EXPECT_EQ(walk(tar_member({"no-end-blocks", "x"})).size(), 1u);
  EXPECT_EQ(walk("").size(), 0u);
}

// Written by Python's tarfile in its three formats.
TEST(Tar, FilesOfAnotherProgram) {
  const std::pair<const char*, size_t> cases[] = {{"ustar.tar", 2}, {"gnu_long.tar", 1}, {"pax_path.tar", 1}};
  for (const auto& [name, count] : cases) {
    const auto samples = index_tar(RandomAccessFile(VT_SOURCE_DIR "/fuzz/corpus/fuzz_tar/"s + name));
    ASSERT_EQ(samples.size(), count) << name;
    if (count == 1) {
      EXPECT_TRUE(samples[0].name.starts_with(std::string(120, 'd') + "/nnnn")) << samples[0].name;
    }
  }
}

TEST(Tar, Rules) {
  std::string flipped = tar_member({"a", "x"});
  flipped[10] ^= 1;
  const std::pair<std::string, std::string> cases[] = {
      {flipped, "wrong checksum"},
      {std::string(512, 'x'), "no tar header"},
      {std::string(100, 'x'), "cut short"},
      {tar_member({"a", "x", '0', {}, std::string(8, '\0')}), "no tar header"},
      {tar_member({"a", "", '2'}), "a link or a special file"},
      {tar_member({"a", "", '3'}), "a link or a special file"},
      {tar_member({"a", "x", '0', "00000002000"}), "cut short"},
      {tar_member({"a", "x", '0', "0000000000x"}), "no octal number"},
      {tar_member({"a", "x", '0', "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"}), "beyond 63 bits"},
      {tar_member({"a", "x", '0', "\x80\0\0\1\0\0\0\0\0\0\0\0"s}), "beyond 63 bits"},
      {tar_member({"p", "99 path=x\n", 'x'}), "malformed pax"},
      {tar_member({"p", "8 pathx\n", 'x'}), "without a value"},
      {tar_member({"p", "9 size=x\n", 'x'}), "no number"},
      {tar_member({"p", "23 size=99999999999999\n", 'x'}) + tar_member({"a", "x"}), "cut short"},
      {tar_member({"p", "22 GNU.sparse.major=1\n", 'x'}), "a sparse file"},
      {tar_member({"L", "", 'L', "00010000000"}), "an extension header of"},
      {tar_member({"", "x"}), "a name of 0 bytes"},
      {tar_member({"a", "x"}) + std::string(512, '\0') + tar_member({"b", "x"}), "more follows it"},
      {tar_member({"a", "x"}) + std::string(70'000, '\0') + "x", "more follows it"},
  };
  for (const auto& [bytes, refusal] : cases) {
    SCOPED_TRACE(refusal);
    expect_refused(refusal, [&b = bytes] { walk(b); });
  }
}

// A plain file is '0', or zero as tar wrote it before there were types.
TEST(Tar, PlainFilesOfOldArchivesAreRead) {
  const std::vector<TarMember> members = walk(tar_member({"old", "xyz", '\0'}) + tar_member({"new", "x"}));
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].name, "old");
  EXPECT_EQ(members[0].size, 3u);
  EXPECT_EQ(members[1].name, "new");
}

TEST(Tar, SampleRules) {
  const std::pair<std::vector<TarEntry>, std::string> cases[] = {
      {{{"a.png", "x"}}, "\"a.png\" has no label"},
      {{{"a.png", "x"}, {"b.cls", "1"}}, "\"a.png\" has no label"},
      {{{"a.png", "x"}, {"a.json", R"({"label":1})"}, {"b.png", "x"}}, "\"b.png\" has no label"},
      {{{"a.png", "x"}, {"a.jpg", "y"}, {"a.cls", "1"}}, "images of one sample"},
      {{{"a.png", "x"}, {"a.cls", " \n"}}, "empty or no text"},
      {{{"a.png", "x"}, {"a.json", "[1]"}}, "expected an object"},
      {{{"a.png", "x"}, {"a.json", "{}"}}, "has no \"label\""},
      {{{"a.png", "x"}, {"a.json", R"({"label":1.5})"}}, "neither a number nor a name"},
      {{{"a.png", "x"}, {"a.json", "{"}}, "a.json"},
  };
  for (const auto& [entries, refusal] : cases) {
    SCOPED_TRACE(refusal);
    expect_refused(refusal, [&list = entries] { index_tar(MemoryBytes("memory", tar_file(list))); });
  }
  const DataFolder folder;
  folder.file("mixed.tar", tar_file({{"0.png", "x"}, {"0.cls", "1"}, {"1.png", "x"}, {"1.cls", "dog"}}));
  expect_refused("others names", [&] { open_dataset("tar:" + folder.path("mixed.tar"), Part::kTrain); });
  folder.file("low.tar", tar_file({{"0.png", "x"}, {"0.cls", "-1"}}));
  expect_refused("the label -1", [&] { open_dataset("tar:" + folder.path("low.tar"), Part::kTrain); });
}

TEST(Tar, AShardThatChangedIsNoticed) {
  const DataFolder folder;
  folder.file("a.tar", tar_file({{"0.png", png(1)}, {"0.cls", "0"}}));
  const auto data = open_dataset("tar:" + folder.path("a.tar"), Part::kTrain);
  folder.file("a.tar", tar_file({{"0.png", png(1)}}));
  expect_refused("when it was indexed", [&] { data->load(0, 0); });
}

TEST(Shards, Braces) {
  EXPECT_EQ(expand_braces("a"), (Names{"a"}));
  EXPECT_EQ(expand_braces("{x,y}-{08..10}.tar"),
            (Names{"x-08.tar", "x-09.tar", "x-10.tar", "y-08.tar", "y-09.tar", "y-10.tar"}));
  EXPECT_EQ(expand_braces("a{}b"), (Names{"ab"}));
  expect_refused("{ without }", [] { expand_braces("a{b"); });
  expect_refused("rising numbers", [] { expand_braces("{9..1}"); });
  expect_refused("rising numbers", [] { expand_braces("{a..b}"); });
  expect_refused("rising numbers", [] { expand_braces("{0..999999999999}"); });
  expect_refused("more than", [] { expand_braces("{0..9999}{0..9999}"); });
}

}  // namespace
}  // namespace vitrail
