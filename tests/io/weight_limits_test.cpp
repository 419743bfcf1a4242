// Weight files at their limits: names, counts and ratios, every type and key that is known, refusals by name.
#include "io/model_files.h"
#include "io/names_only.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "io/samples.h"
#include "io/strided.h"
#include "io/torch_file.h"
#include "io/zip.h"

namespace vitrail {
namespace {

using namespace testing;
using namespace std::string_literals;

std::string pickled_text(const std::string& content) {
  std::string op = "X";
  append_le(op, static_cast<uint32_t>(content.size()));
  return op + content;
}
std::string pickled_tensor(const std::string& type) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + pickled_text("storage") + "ctorch\n" + type + "\n" +
         pickled_text("0") + pickled_text("cpu") + "K\2tQK\0K\2\x85K\1\x85\x89}tR"s;
}
std::string pickled_dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string ops = "}(";
  for (const auto& [key, value] : items) ops += pickled_text(key) + value;
  return ops + "u";
}
TorchStateDict unpickled(const std::string& ops) {
  return read_torch_pickle(as_byte_span("\x80\x02" + ops + "."));
}

TEST(TorchNames, EveryStorageHasItsType) {
  const std::pair<const char*, DType> rows[] = {
      {"DoubleStorage", DType::kF64},    {"FloatStorage", DType::kF32}, {"HalfStorage", DType::kF16},
      {"BFloat16Storage", DType::kBF16}, {"LongStorage", DType::kI64},  {"IntStorage", DType::kI32},
      {"ShortStorage", DType::kI16},     {"CharStorage", DType::kI8},   {"ByteStorage", DType::kU8},
      {"BoolStorage", DType::kBool}};
  for (const auto& [type, dtype] : rows) {
    const TorchStateDict state = unpickled(pickled_dict({{"w", pickled_tensor(type)}}));
    EXPECT_EQ(state.tensors.at(0).dtype, dtype) << type;
    EXPECT_EQ(state.tensors[0].storage_elems, 2u);
    EXPECT_EQ(state.storages.at("0").dtype, dtype) << type;
  }
}

TEST(TorchNames, OfSeveralKeysTheBetterOneIsTaken) {
  const char* keys[] = {
      "state_dict_ema",   "model_ema", "state_dict",     "model",     "model_state_dict",
      "model_state",      "net",       "network",        "module",    "weights",
      "params",           "ema",       "ema_state_dict", "ema_model", "ema_model_state_dict",
      "state_dict_model", "teacher",   "target_encoder", "student",   "encoder",
      "backbone",         "base_model"};
  const auto weights = [] { return pickled_dict({{"w", pickled_tensor("FloatStorage")}}); };
  for (size_t i = 0; i + 1 < std::size(keys); ++i) {
    const TorchStateDict state = unpickled(pickled_dict({{keys[i + 1], weights()}, {keys[i], weights()}}));
    EXPECT_EQ(state.key, keys[i]);
    EXPECT_EQ(state.passed_over, keys[i + 1]);
  }
  EXPECT_EQ(unpickled(pickled_dict({{"a", pickled_dict({{"b", weights()}})}})).key, "a.b");
  expect_refusal("no dict of tensors", [&] {
    unpickled(pickled_dict({{"a", pickled_dict({{"b", pickled_dict({{"c", weights()}})}})}}));
  });
}

TEST(TorchNames, ObjectsBesideTheWeightsAreSkipped) {
  std::istringstream names(
      "argparse.Namespace collections.defaultdict collections.Counter pathlib.PosixPath functools.partial "
      "pathlib.PurePosixPath pathlib._local.PosixPath datetime.datetime __builtin__.set builtins.list "
      "torch.Size torch.device torch.float32 torch.float64 torch.float16 torch.bfloat16 numpy.ndarray "
      "torch.serialization._get_layout numpy.dtype numpy._core.multiarray._reconstruct _codecs.encode");
  for (std::string name; names >> name;) {
    const std::string lines = "c" + std::string(name).replace(name.rfind('.'), 1, "\n") + "\n";
    const std::string ops = pickled_dict({{"w", pickled_tensor("FloatStorage")}, {"x", lines}});
    EXPECT_EQ(unpickled(ops).tensors.size(), 1u) << name;
  }
  const std::string wrapped =
      "ctorch._utils\n_rebuild_parameter\n(" + pickled_tensor("FloatStorage") + "\x89}tR";
  EXPECT_EQ(unpickled(pickled_dict({{"w", wrapped}})).tensors.size(), 1u);
}

std::string torch_zip(const std::vector<std::pair<std::string, std::string>>& more) {
  const TempFolder folder;
  AtomicFile file(folder / "f");
  ZipWriter zip(file);
  const std::string pickle = "\x80\x02" + pickled_dict({{"w", pickled_tensor("FloatStorage")}}) + ".";
  zip.add("f/data.pkl", {}, as_byte_span(pickle));
  zip.add("f/data/0", {}, as_byte_span("12345678"));
  for (const auto& [name, content] : more) zip.add(name, {}, as_byte_span(content));
  zip.finish();
  file.commit();
  return slurp(folder / "f");
}

TEST(TorchNames, ProgramsAndOtherByteOrders) {
  const auto said = [](const std::vector<std::pair<std::string, std::string>>& more) {
    return error_of([&] { open_torch(std::make_unique<ZipReader>(in_memory(torch_zip(more))), "f.pth"); });
  };
  EXPECT_EQ(said({}), "");
  EXPECT_EQ(said({{"f/byteorder", "little"}}), "");
  EXPECT_EQ(said({{"f/byteorder", "big"}}), "data: byte order \"big\", only little-endian files are read");
  EXPECT_EQ(said({{"f/byteorder", std::string(65, 'x')}}),
            "data: \"f/byteorder\" has 65 bytes, at most 64 are read");
  EXPECT_EQ(said({{"f/constants.pkl", ""}}), "data: a TorchScript program, not a file of tensors");
  EXPECT_NO_THROW(require_bounded_views(64 * 10 + 63, 10));
  EXPECT_EQ(
      error_of([] { require_bounded_views(64 * 11, 10); }),
      "data: its tensors are views that together read more than 64 times the 10 bytes of their storages");
}

TEST(TorchNames, TheFormBeforeTorch16OfAnotherVersionOrMachine) {
  const auto said = [](const std::string& version, const std::string& machine, uint64_t count = 2,
                       const std::string& bytes = "12345678") {
    std::string content = "\x80\x02K\x01.\x80\x02" + version + ".\x80\x02" + machine + ".";
    content += "\x80\x02" + pickled_dict({{"w", pickled_tensor("FloatStorage")}}) + ".\x80\x02]" +
               pickled_text("0") + "a.";
    append_le(content, count);
    content += bytes;
    return error_of([&] { open_torch_legacy(in_memory(content)); });
  };
  const std::string v1001 = "M\xe9\x03";
  EXPECT_EQ(said(v1001, "}"), "");
  EXPECT_EQ(said("M\xea\x03", "}"), "data: version 1002 of torch's old form, 1001 is read");
  EXPECT_EQ(said(v1001, "}" + pickled_text("little_endian") + "\x88s"), "");
  EXPECT_EQ(said(v1001, "}" + pickled_text("little_endian") + "\x89s"),
            "data: only little-endian files are read");
  EXPECT_EQ(said("cos\nsystem\n)R", "}"),
            "data: names \"os.system\", which would need to run code; pickles are read as data only");
  EXPECT_EQ(said(v1001, "}", 1), "data: storage \"0\" has 1 elements, expected 2");
  EXPECT_EQ(said(v1001, "}", 2, "1234567"), "data: the file ends within storage \"0\"");
  EXPECT_EQ(said(v1001, "}", 3), "data: storage \"0\" has 3 elements, expected 2");
}

TEST(StridedLimits, ViewsReachTheLastElementAndNoFurther) {
  const auto within = [](const StridedView& view, uint64_t elements) {
    return error_of([&] { view.require_within(elements); });
  };
  EXPECT_EQ(within({{2, 3}, {3, 1}, 0}, 6), "");
  EXPECT_NE(within({{2, 3}, {3, 1}, 0}, 5), "");
  EXPECT_EQ(within({{}, {}, 5}, 6), "");
  EXPECT_EQ(within({{}, {}, 6}, 6), "data: the offset lies past the end of the storage");
  EXPECT_EQ(within({{2}, {1}, 5}, 6), "data: offset and strides reach past the end of the storage");
  EXPECT_EQ(within({{7}, {0}, 0}, 6), "data: the shape asks for more elements than the 6 of its storage");
  EXPECT_EQ(within({{0}, {1}, 99}, 6), "") << "no element, no matter where";
  EXPECT_EQ((StridedView{{2, 3}, {10, 2}, 7}.reach()), 15u);  // 1 * 10 + 2 * 2, and the first
  EXPECT_EQ((StridedView{{2, 0}, {10, 2}, 7}.reach()), 0u);
  EXPECT_EQ((StridedView{{}, {}, 0}.reach()), 1u);
  EXPECT_EQ((StridedView{{1, 3}, {77, 2}, 0}.reach()), 5u);
  EXPECT_TRUE((StridedView{{1, 3}, {77, 1}, 0}.is_row_major())) << "a stride of one row is never taken";
  EXPECT_FALSE((StridedView{{2, 3}, {77, 1}, 0}.is_row_major()));
}

TEST(NpyText, IsNumpysOwn) {
  const std::string text = npy_header_text(DType::kF16, std::vector<int64_t>{3, 40});
  EXPECT_EQ(text.substr(0, 10), "\x93NUMPY\1\0\x76\0"s);
  EXPECT_EQ(text.substr(10, 63), "{'descr': '<f2', 'fortran_order': False, 'shape': (3, 40), }   ");
  EXPECT_EQ(text.size(), 128u);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_NE(npy_header_text(DType::kI8, std::vector<int64_t>{7})
                .find("'|i1', 'fortran_order': False, 'shape': (7,), }"),
            std::string::npos);
  EXPECT_NE(npy_header_text(DType::kBF16, std::vector<int64_t>{})
                .find("'|V2', 'fortran_order': False, 'shape': (), }"),
            std::string::npos);
  const std::pair<const char*, DType> types[] = {
      {"<f4", DType::kF32}, {"<f2", DType::kF16}, {"<f8", DType::kF64}, {"|V2", DType::kBF16},
      {"<i4", DType::kI32}, {"<i8", DType::kI64}, {"<i2", DType::kI16}, {"|i1", DType::kI8},
      {"|u1", DType::kU8},  {"|b1", DType::kBool}};
  for (const auto& [descr, dtype] : types)
    EXPECT_NE(npy_header_text(dtype, std::vector<int64_t>{1}).find("'"s + descr + "'"), std::string::npos)
        << descr;
  const auto said = [](char major, char minor, size_t dict) {
    std::string header = "\x93NUMPY"s + major + minor;
    append_le(header, static_cast<uint32_t>(dict));
    std::string content = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
    content.resize(dict, ' ');
    return error_of([&] { parse_npy_header(as_byte_span(header + content)); });
  };
  EXPECT_EQ(said(2, 0, 65536 - 12), "");
  EXPECT_EQ(said(2, 0, 65536 - 11), "data: an npy header of 65525 bytes, at most 65536 are read");
  EXPECT_EQ(said(3, 1, 100), "data: npy version 3.1, 1.0 to 3.0 are read");
  EXPECT_EQ(said(0, 0, 100), "data: npy version 0.0, 1.0 to 3.0 are read");
}

TEST(SafetensorsText, IsWhatTheLibraryWrites) {
  const TempFolder folder;
  write_safetensors(folder / "f", {rule_tensor("b", {2, 3}), rule_tensor("a", {})}, {{"k", "v"}});
  const std::string expected =
      R"({"__metadata__":{"k":"v"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[24,28]}})";
  const std::string file = slurp(folder / "f");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  EXPECT_EQ(length, (expected.size() + 7) / 8 * 8);
  EXPECT_EQ(file.substr(8, expected.size()), expected);
  EXPECT_EQ(file.size(), 8 + length + 28);
}

TEST(ZipLimits, NamesAndEntriesAtTheirLimits) {
  const auto said = [](size_t name, size_t count) {
    const TempFolder folder;
    AtomicFile file(folder / "f");
    ZipWriter zip(file);
    for (size_t i = 0; i < count; ++i)
      zip.add(std::string(name - 1, 'n') + std::string(1, static_cast<char>('a' + i)), {}, {});
    zip.finish();
    file.commit();
    return error_of([&] { ZipReader(std::make_shared<RandomAccessFile>(folder / "f"), {.max_entries = 3}); });
  };
  EXPECT_EQ(said(1024, 1), "");
  EXPECT_NE(said(1025, 1).find("the name must be 1 to 1024 bytes of UTF-8"), std::string::npos);
  EXPECT_EQ(said(2, 3), "");
  EXPECT_EQ(said(2, 4), "data: 4 zip entries, at most 3 are read");
}

TEST(TorchNames, TheFolderIsOneLevelDeep) {
  const auto with = [](const std::string& name) {
    const TempFolder folder;
    AtomicFile file(folder / "f");
    ZipWriter zip(file);
    zip.add(name, {}, {});
    zip.finish();
    file.commit();
    return looks_like_torch(ZipReader(in_memory(slurp(folder / "f"))));
  };
  EXPECT_TRUE(with("a/data.pkl"));
  for (const char* name : {"/data.pkl", "data.pkl", "a/b/data.pkl", "a/data.pklx"})
    EXPECT_FALSE(with(name)) << name;
}

TEST(Shards, AtTheirLimits) {
  const TempFolder folder;
  const auto said = [&](int shards, size_t length) {
    std::string map;
    for (int i = 0; i < shards; ++i)
      map += strf("%s\"t%d\": \"%s%04d\"", i ? ", " : "", i, std::string(length - 4, 's').c_str(), i);
    return error_of([&] { open_tensors(put(folder, "index.json", "{\"weight_map\": {" + map + "}}")); });
  };
  EXPECT_EQ(said(1001, 8), "data: " + (folder / "index.json") + ": 1001 shards, at most 1000 are read");
  EXPECT_NE(said(1000, 8).find("cannot read"), std::string::npos) << "they are not there";
  EXPECT_NE(said(1, 256).find("must be a plain file name"), std::string::npos);
  EXPECT_NE(said(1, 255).find("cannot read"), std::string::npos);
  const auto source = open_tensors(sample("sharded"));
  ASSERT_GE(source->files().size(), 2u);
  EXPECT_TRUE(source->files()[0].ends_with("index.json"));
  EXPECT_TRUE(source->files()[1].ends_with(".safetensors"));
}

// What is read goes into memory of its own size.
TEST(TensorReads, TargetsOfAnotherSizeAreRefused) {
  for (const char* name : {"numpy.npz", "state_dict.pth", "legacy.pth", "all_types.safetensors"}) {
    const auto source = open_tensors(sample(name));
    std::vector<std::byte> longer(source->tensors()[0].bytes + 1);
    EXPECT_NE(error_of([&] { source->read(0, longer); }).find("internal: "), std::string::npos) << name;
    EXPECT_NE(error_of([&] { source->read_part(0, 1, std::span(longer).first(longer.size() - 1)); }), "")
        << name;
  }
}

// As any program reads them: version 4.5, names in UTF-8, stored, the first day of the format.
TEST(ZipBytes, HeadersAreThoseOfTheFormat) {
  const TempFolder folder;
  AtomicFile file(folder / "f");
  ZipWriter zip(file);
  zip.add("n", as_byte_span("12"), as_byte_span("345"));
  zip.finish();
  file.commit();
  const std::string shared = "\x2d\0\0\x08\0\0\0\0\x21\0"s + "\x1c\x3a\xf5\xcb" + "\5\0\0\0\5\0\0\0\1\0\0\0"s;
  EXPECT_EQ(slurp(folder / "f"), "PK\3\4" + shared + "n12345" + "PK\1\2\x2d\0"s + shared +
                                     std::string(14, '\0') + "n" + "PK\5\6\0\0\0\0\1\0\1\0"s +
                                     "\x2f\0\0\0\x24\0\0\0\0\0"s);
}

TEST(OpenTensorsRefusals, ForeignFormatsAndWhatToDo) {
  const TempFolder folder;
  const std::tuple<std::string, const char*, const char*> rows[] = {
      {"version https://git-lfs.github.com", "a Git LFS pointer, not the weights themselves",
       "run git lfs pull in its folder"},
      {"\x93NUMPY\1", "a single numpy array, expected an .npz of named arrays", "np.savez it under its name"},
      {"\x89HDF\r\n", "an HDF5 file, which is not read", "convert it to safetensors"},
      {"GGUF\3", "a GGUF file, which is not read", "take the safetensors form of the model"},
      {"\x1f\x8b\x08", "compressed by gzip", "gunzip it first"},
      {"<!DOCTYPE html>", "a web page, probably a failed download", "fetch it again"},
      {"<html>", "a web page, probably a failed download", "fetch it again"}};
  for (const auto& [content, what, hint] : rows) {
    const std::string path = put(folder, "f", content);
    try {
      open_tensors(path);
      ADD_FAILURE() << what;
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), path + " is " + what);
      EXPECT_EQ(error.hint(), hint);
    }
  }
}

}  // namespace
}  // namespace vitrail
