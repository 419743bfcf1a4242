#include "io/safetensors.h"

#include "io/model_files.h"
#include "samples.h"

namespace vitrail {
namespace {

using namespace testing;

// A file with this header and that many bytes of data.
std::string file_with(const std::string& header, size_t data_bytes) {
  std::string file;
  append_le<uint64_t>(file, header.size());
  return file + header + std::string(data_bytes, '\0');
}

std::unique_ptr<TensorSource> open_text(const std::string& header, size_t data_bytes) {
  return open_safetensors(in_memory(file_with(header, data_bytes)));
}

TEST(Safetensors, ReadsEveryTypeThePythonLibraryWrites) {
  const auto source = open_safetensors(sample("all_types.safetensors"));
  EXPECT_EQ(source->tensors().size(), 12u);
  EXPECT_EQ(source->format(), "safetensors");
  EXPECT_EQ(source->metadata().at("note"), "é");
  for (const TensorInfo& info : source->tensors()) expect_rule(*source, info.name);
  EXPECT_EQ(source->tensors()[*source->find("BF16")].dtype, DType::kBF16);
  EXPECT_EQ(source->tensors()[*source->find("scalar")].shape, std::vector<int64_t>{});
  EXPECT_EQ(source->tensors()[*source->find("empty")].shape, (std::vector<int64_t>{0, 4}));
}

TEST(Safetensors, RoundTripKeepsEverythingAndAligns) {
  const TempFolder folder;
  const auto before = open_safetensors(sample("all_types.safetensors"));
  std::vector<TensorToWrite> tensors;
  for (size_t i = before->tensors().size(); i-- > 0;)
    tensors.push_back(
        {before->tensors()[i], [&, i](std::span<std::byte> target) { before->read(i, target); }});
  write_safetensors(folder / "copy.safetensors", tensors, {{"quote\"", "line\nbreak"}});
  const auto after = open_safetensors(folder / "copy.safetensors");
  ASSERT_EQ(after->tensors().size(), before->tensors().size());
  EXPECT_EQ(after->metadata(), (std::map<std::string, std::string>{{"quote\"", "line\nbreak"}}));
  for (const TensorInfo& info : before->tensors()) expect_rule(*after, info.name);
  for (size_t i = 1; i < after->tensors().size(); ++i)
    EXPECT_LE(size_of(after->tensors()[i].dtype), size_of(after->tensors()[i - 1].dtype));
  const std::string bytes = slurp(folder / "copy.safetensors");
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  EXPECT_EQ(header % 8, 0u);
}

TEST(Safetensors, PartsAreThePartsOfTheWhole) {
  const auto source = open_safetensors(sample("all_types.safetensors"));
  size_t parts = 0;
  for (size_t i = 0; i < source->tensors().size(); ++i) {
    std::vector<std::byte> whole(source->tensors()[i].bytes);
    source->read(i, whole);
    for (size_t offset = 0; offset < whole.size(); offset += 3, ++parts) {
      std::vector<std::byte> part(std::min<size_t>(5, whole.size() - offset));
      source->read_part(i, offset, part);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<ptrdiff_t>(offset)))
          << source->tensors()[i].name << " from " << offset;
    }
  }
  EXPECT_GT(parts, 20u);
}

// One without elements begins where the next does; the header may name either first.
TEST(Safetensors, WhatHasNoElementsTakesNoPlace) {
  const std::string full = R"("full":{"dtype":"U8","shape":[8],"data_offsets":[0,8]})",
                    none = R"("none":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})",
                    last = R"("last":{"dtype":"U8","shape":[0,3],"data_offsets":[8,8]})";
  for (const std::string& header :
       {full + "," + none + "," + last, last + "," + none + "," + full, none + "," + full + "," + last})
    EXPECT_EQ(open_text("{" + header + "}", 8)->tensors().size(), 3u) << header;
}

TEST(Safetensors, NothingToWriteIsAFileToo) {
  const TempFolder folder;
  write_safetensors(folder / "none", {});
  EXPECT_TRUE(open_safetensors(folder / "none")->tensors().empty());
}

TEST(Safetensors, WriterRefusesWhatItCouldNotRead) {
  const TempFolder folder;
  const auto write = [&](const std::vector<TensorToWrite>& tensors) {
    write_safetensors(folder / "f", tensors);
  };
  expect_refusal("two tensors", [&] { write({rule_tensor("a", {1}), rule_tensor("a", {1})}); });
  expect_refusal("__metadata__", [&] { write({rule_tensor("__metadata__", {1})}); });
  expect_refusal("UTF-8", [&] { write({rule_tensor("\xff", {1})}); });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Safetensors, HostileHeaders) {
  const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  struct Case {
    std::string header, refusal;
    size_t data_bytes = 8;
  };
  const Case cases[] = {
      {"{" + a + "," + a + "}", "appears twice"},
      {R"({"__metadata__":{"k":"1","k":"2"}})", "appears twice", 0},
      {R"({"__metadata__":{},"__metadata__":{}})", "appears twice", 0},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "appears twice"},
      {R"({"__metadata__":{"k":1}})", "wrong kind", 0},
      {R"({"__metadata__":{"k":["1"]}})", "a list where none belongs", 0},
      {R"({"__metadata__":"x"})", "\"__metadata__\": a value of the wrong kind (string)", 0},
      {R"({"a":{"dtype":"F32","shape":[8589934592,2147483648],"data_offsets":[0,0]}})", "does not fit", 0},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", "does not fit", 0},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "make 12 bytes, data_offsets span 8"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "integers from 0"},
      {R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", "integers from 0"},
      {R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8]}})", "integers from 0"},
      {R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8]}})",
       "does not fit 64 bits"},
      {R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}})", "too many numbers"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "begin <= end"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", "too many numbers"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", "begin <= end"},
      {R"({"a":{"dtype":"F32","shape":[2]}})", "one is missing"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", "found \"x\""},
      {R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})",
       "\"shape\": a value of the wrong kind (number)"},
      {R"({"a":{"dtype":["F32"],"shape":[2],"data_offsets":[0,8]}})", "a list where none belongs"},
      {R"({"a":{"dtype":{},"shape":[2],"data_offsets":[0,8]}})", "an object where none belongs"},
      {R"({"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", "deeper than 3"},
      {R"({"a":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}})", "dtype \"C64\""},
      {R"({"a":{"dtype":"F8_E5M2","shape":[[[[]]]],"data_offsets":[9]}})", "dtype \"F8_E5M2\""},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "hole"},
      {"{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "overlap"},
      {"{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", "hole", 16},
      {"{" + a + "}", "unexplained bytes at the end", 9},
      {"{" + a + "}", "cut short", 7},
      {"{}", "unexplained bytes at the end", 1},
      {"{" + a + "}\n", "padded with spaces only"},
      {" {" + a + "}", "one JSON object"},
      {"[]", "one JSON object", 0},
      {"", "one JSON object", 0},
      {"{" + a + "} {}", "header:1:"},
      {std::string("{\"\xff\":{}}"), "header:1:", 0},
      {std::string("{\"a\":{}\0}", 9), "zero byte", 0},
      {R"({"":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "tensor name"},
      {"{\"" + std::string(1025, 'n') + R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
       "tensor name"},
      {"{\"a\":" + std::string(100000, '[') + "}", "a list where none belongs", 0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.header.substr(0, 120));
    expect_refusal(c.refusal, [&] { open_text(c.header, c.data_bytes); });
  }
}

TEST(Safetensors, HeaderLengthNeverWraps) {
  for (const uint64_t length : {~uint64_t{0}, ~uint64_t{0} - 7, uint64_t{1} << 63, uint64_t{100'000'001}}) {
    std::string file;
    append_le(file, length);
    expect_refusal("announces", [&] { open_safetensors(in_memory(file + "{}")); });
  }
  expect_refusal("the file has 2 after",
                 [] { open_safetensors(in_memory(std::string("\3\0\0\0\0\0\0\0{}", 10))); });
  expect_refusal("at least 8", [] { open_safetensors(in_memory("1234567")); });
}

TEST(Safetensors, TooManyTensorsAreRefused) {
  std::string header = "{";
  for (int i = 0; i <= 100'000; ++i)
    header += strf("%s\"%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", i ? "," : "", i);
  expect_refusal("more than 100000 tensors", [&] { open_text(header + "}", 0); });
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string whole = slurp(sample("all_types.safetensors"));
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(open_safetensors(in_memory(whole.substr(0, length))), Error) << length;
}

TEST(Safetensors, ShrinkingFileIsAnErrorNotACrash) {
  const TempFolder folder;
  write_safetensors(folder / "f", {rule_tensor("a", {1000})});
  const auto source = open_safetensors(folder / "f");
  std::filesystem::resize_file(folder / "f", 100);
  std::vector<std::byte> target(4000);
  expect_refusal("became shorter", [&] { source->read(0, target); });
}

TEST(ShardedTensors, PresentsShardsAsOne) {
  const auto source = open_tensors(sample("sharded/model.safetensors.index.json"));
  ASSERT_EQ(source->tensors().size(), 3u);
  for (const TensorInfo& info : source->tensors()) expect_rule(*source, info.name);
  EXPECT_EQ(source->metadata().at("format"), "pt");
}

TEST(ShardedTensors, HostileIndexes) {
  const TempFolder folder;
  write_safetensors(folder / "s1", {rule_tensor("a", {2}), rule_tensor("b", {2})});
  write_safetensors(folder / "s2", {rule_tensor("a", {2})});
  std::filesystem::create_directory(folder.path() / "inner");
  struct Case {
    const char *index, *refusal;
  };
  const Case cases[] = {
      {R"({"weight_map":{"a":"../s1"}})", "plain file name"},
      {R"({"weight_map":{"a":"/etc/passwd"}})", "plain file name"},
      {R"({"weight_map":{"a":".."}})", "plain file name"},
      {R"({"weight_map":{"a":""}})", "plain file name"},
      {R"({"weight_map":{"a":"s1\u0000"}})", "plain file name"},
      {R"({"weight_map":{"a":"inner"}})", "a folder"},
      {R"({"weight_map":{"a":"missing"}})", "cannot read"},
      {R"({"weight_map":{"a":1}})", "not a string"},
      {R"({"weight_map":[]})", "weight_map"},
      {R"([])", "neither safetensors"},
      {R"({"weight_map":{"a":"s1"}})", "does not place there"},
      {R"({"weight_map":{"a":"s2","b":"s1"}})", "does not place there"},
      {R"({"weight_map":{"a":"s1","b":"s1","c":"s1"}})", "holds 2 tensors, the index places 3"},
      {R"({"weight_map":{"a":"s1","a":"s1"}})", "appears twice"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.index);
    expect_refusal(c.refusal, [&] { open_tensors(put(folder, "index.json", c.index)); });
  }
}

}  // namespace
}  // namespace vitrail
