#include "io/model_files.h"
#include "io/safetensors.h"
#include "samples.h"

namespace vitrail {
namespace {

using namespace testing;

TEST(OpenTensors, ChoosesByContent) {
  const TempFolder folder;
  struct Case {
    const char *file, *format;
  };
  for (const Case& c :
       {Case{"all_types.safetensors", "safetensors"}, Case{"numpy.npz", "npz"}, Case{"training.pth", "torch"},
        Case{"sharded/model.safetensors.index.json", "safetensors"}})
    EXPECT_EQ(open_tensors(sample(c.file))->format(), c.format) << c.file;
  EXPECT_EQ(open_tensors(put(folder, "wrong.npz", slurp(sample("state_dict.pth"))))->format(), "torch");
  EXPECT_EQ(open_tensors(put(folder, "no_extension", slurp(sample("numpy.npz"))))->format(), "npz");
}

// A header may have any length, and the first byte of 123 is an opening brace.
TEST(OpenTensors, AHeaderWhoseLengthLooksLikeJsonIsOfSafetensors) {
  const TempFolder folder;
  std::string header = R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})", content;
  header.resize('{', ' ');
  append_le(content, uint64_t{header.size()});
  content += header;
  append_le(content, 1.5f);
  const auto source = open_tensors(put(folder, "model.safetensors", content));
  EXPECT_EQ(source->format(), "safetensors");
  EXPECT_EQ(element(bytes_of(*source, 0), DType::kF32, 0), 1.5f);
}

TEST(OpenTensors, FolderPrefersSafetensors) {
  const TempFolder folder;
  expect_refusal("no model.safetensors or pytorch_model.bin", [&] { open_tensors(folder.path()); });
  put(folder, "pytorch_model.bin", slurp(sample("state_dict.pth")));
  EXPECT_EQ(open_tensors(folder.path())->format(), "torch");
  write_safetensors(folder / "model.safetensors", {rule_tensor("a", {2})});
  EXPECT_EQ(open_tensors(folder.path())->format(), "safetensors");
  EXPECT_EQ(open_tensors(sample("sharded"))->tensors().size(), 3u);
}

// transformers 4 wrote shards of pickles too.
TEST(OpenTensors, AFolderMayHoldShardsOfTorchFiles) {
  const TempFolder folder;
  put(folder, "pytorch_model-00001-of-00001.bin", slurp(sample("state_dict.pth")));
  const auto whole = open_tensors(sample("state_dict.pth"));
  std::string map;
  for (const TensorInfo& info : whole->tensors())
    map += (map.empty() ? "\"" : ", \"") + info.name + "\": \"pytorch_model-00001-of-00001.bin\"";
  put(folder, "pytorch_model.bin.index.json", "{\"metadata\": {}, \"weight_map\": {" + map + "}}");
  const auto source = open_tensors(folder.path());
  EXPECT_EQ(source->format(), "torch");
  ASSERT_EQ(source->tensors().size(), whole->tensors().size());
  for (size_t i = 0; i < whole->tensors().size(); ++i) {
    const TensorInfo& info = whole->tensors()[i];
    std::vector<std::byte> wanted(info.bytes), found(info.bytes);
    whole->read(i, wanted);
    source->read(source->find(info.name).value(), found);
    EXPECT_EQ(found, wanted) << info.name;
  }
  put(folder, "pytorch_model-00001-of-00001.bin", "{\"weight_map\": {}}");
  expect_refusal("neither safetensors", [&] { open_tensors(folder.path()); });
}

TEST(OpenTensors, RefusesByName) {
  const TempFolder folder;
  expect_refusal("Git LFS pointer", [] { open_tensors(sample("lfs_pointer.safetensors")); });
  expect_refusal("F8_E4M3", [] { open_tensors(sample("float8.safetensors")); });
  expect_refusal("cannot read", [&] { open_tensors(folder / "missing"); });
  struct Case {
    const char *content, *refusal;
  };
  for (const Case& c :
       {Case{"", "neither safetensors"}, Case{"hello world, not weights", "neither safetensors"},
        Case{"GGUF\3\1", "GGUF"}, Case{"\x93NUMPY\1", "single numpy array"},
        Case{"<!DOCTYPE html>", "web page"}, Case{"\x1f\x8b\x08", "gzip"}, Case{"PK\3\4 cut", "zip"},
        Case{"{\"a\": 1}", "weight_map"}})
    expect_refusal(c.refusal, [&] { open_tensors(put(folder, "f", c.content)); });
}

}  // namespace
}  // namespace vitrail
