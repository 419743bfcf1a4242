#include "io/npy.h"

#include "samples.h"

namespace vitrail {
namespace {

using namespace testing;

std::string npy(const std::string& dict, const std::string& version = std::string("\1\0", 2)) {
  std::string header = "\x93NUMPY" + version;
  if (version[0] == 1)
    append_le(header, static_cast<uint16_t>(dict.size()));
  else
    append_le(header, static_cast<uint32_t>(dict.size()));
  return header + dict;
}

NpyHeader parse(const std::string& dict) {
  return parse_npy_header(as_byte_span(npy(dict)));
}

TEST(Npy, AcceptsTheLiteralsNumpyWrites) {
  const NpyHeader header = parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }      \n");
  EXPECT_EQ(header.dtype, DType::kF32);
  EXPECT_FALSE(header.column_major);
  EXPECT_EQ(header.shape, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(parse("{\"shape\":(),\"descr\":\"<V2\",\"fortran_order\":True}").dtype, DType::kBF16);
  EXPECT_EQ(parse("{'descr': '|b1', 'fortran_order': True, 'shape': (5L,)}").shape, std::vector<int64_t>{5});
  for (const char* version : {"\2\0", "\3\0"}) {
    const std::string file = npy("{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", {version, 2});
    EXPECT_EQ(parse_npy_header(as_byte_span(file)).dtype, DType::kI64);
  }
}

TEST(Npy, WrittenHeadersAreReadAgain) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, {7}, {2, 3}, {1, 2, 3, 4, 5, 6, 7, 8}, {INT64_MAX}}) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kBool, DType::kI64}) {
      const std::string text = npy_header_text(dtype, shape);
      EXPECT_EQ(text.size() % 64, 0u);
      const NpyHeader header = parse_npy_header(as_byte_span(text));
      EXPECT_EQ(header.dtype, dtype);
      EXPECT_EQ(header.shape, shape);
      EXPECT_EQ(header.data_offset, text.size());
    }
  }
}

TEST(Npy, HostileHeaders) {
  const auto dict = [](const std::string& descr, const std::string& shape) {
    return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  };
  struct Case {
    std::string dict, refusal;
  };
  const Case cases[] = {
      {dict("|O", "(1,)"), "Python objects"},
      {dict(">f4", "(1,)"), "\">f4\""},
      {dict("<U8", "(1,)"), "\"<U8\""},
      {dict("<c8", "(1,)"), "\"<c8\""},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "expected '''"},
      {dict("<f4", "(-1,)"), "extent from 0"},
      {dict("<f4", "(9223372036854775808,)"), "extent from 0"},
      {dict("<f4", "(1.5,)"), "not a tuple"},
      {dict("<f4", "(3)"), "not a tuple"},
      {dict("<f4", "3"), "expected '('"},
      {dict("<f4", "(1,2,3,4,5,6,7,8,9)"), "more than 8"},
      {dict("<f4", "((((((((((1,),"), "extent from 0"},
      {dict("<f4", "__import__('os').system('ls')"), "expected '('"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", "repeated key"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}", "unexpected or repeated key \"x\""},
      {"{'descr': '<f4', 'fortran_order': 1, 'shape': ()}", "True or False"},
      {"{'descr': '<f4', 'shape': ()}", "missing"},
      {"{'fortran_order': False, 'shape': ()}", "missing"},
      {"{'descr': '<f4', 'fortran_order': False}", "missing"},
      {"{'descr': '<f4", "without end"},
      {"{'descr': '\\x3cf4', 'fortran_order': False, 'shape': ()}", "escapes"},
      {dict("<f4", "()") + "x", "after the dict"},
      {"", "expected '{'"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.dict);
    expect_refusal(c.refusal, [&] { parse(c.dict); });
  }
  expect_refusal("magic", [] { parse_npy_header(as_byte_span("\x93NUMPX plus more bytes")); });
  expect_refusal("version 9.0", [] { parse_npy_header(as_byte_span(npy("{}", std::string("\x9\0", 2)))); });
  expect_refusal("at most 65536",
                 [] { parse_npy_header(as_byte_span(std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12))); });
}

TEST(Npz, ReadsWhatNumpyWrites) {
  for (const char* name : {"numpy.npz", "numpy_compressed.npz"}) {
    SCOPED_TRACE(name);
    const auto source = open_npz(sample(name));
    EXPECT_EQ(source->format(), "npz");
    EXPECT_GE(source->tensors().size(), 13u);
    for (const TensorInfo& info : source->tensors())
      if (info.name != "zeros") expect_rule(*source, info.name);
    EXPECT_EQ(source->tensors()[*source->find("bf16")].dtype, DType::kBF16);
    EXPECT_EQ(source->tensors()[*source->find("columns")].shape, (std::vector<int64_t>{2, 3, 4}));
    EXPECT_TRUE(source->find("Transformer/f2"));
  }
}

TEST(Npz, RoundTrip) {
  const TempFolder folder;
  const auto before = open_npz(sample("numpy.npz"));
  std::vector<TensorToWrite> tensors;
  for (size_t i = 0; i < before->tensors().size(); ++i)
    tensors.push_back(
        {before->tensors()[i], [&, i](std::span<std::byte> target) { before->read(i, target); }});
  write_npz(folder / "copy.npz", tensors);
  const auto after = open_npz(folder / "copy.npz");
  ASSERT_EQ(after->tensors().size(), before->tensors().size());
  for (size_t i = 0; i < after->tensors().size(); ++i) {
    EXPECT_EQ(after->tensors()[i].name, before->tensors()[i].name);
    EXPECT_EQ(after->tensors()[i].dtype, before->tensors()[i].dtype);
    EXPECT_EQ(after->tensors()[i].shape, before->tensors()[i].shape);
    EXPECT_EQ(bytes_of(*after, i), bytes_of(*before, i));
  }
  expect_refusal("two tensors", [&] {
    write_npz(folder / "x", {rule_tensor("a", {1}), rule_tensor("a", {1})});
  });
}

// Ascending, descending, and with gaps, in row-major and column-major arrays.
TEST(Npz, PartsAreThePartsOfTheWhole) {
  for (const char* name : {"numpy.npz", "numpy_compressed.npz"}) {
    const auto source = open_npz(sample(name));
    for (size_t i = 0; i < source->tensors().size(); ++i) {
      const std::vector<std::byte> whole = bytes_of(*source, i);
      const auto expect_part = [&](size_t offset, size_t count) {
        std::vector<std::byte> part(std::min(count, whole.size() - offset));
        source->read_part(i, offset, part);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<ptrdiff_t>(offset)))
            << source->tensors()[i].name << " from " << offset;
      };
      // Going back restarts the array, so large arrays are tested with few parts.
      const size_t step = std::max<size_t>(4, whole.size() / 61);
      for (size_t at = 0; at < whole.size(); at += step) expect_part(at, step);
      for (size_t at = whole.size(); at > 0;) expect_part(at -= std::min(at, step), 2);
      for (size_t at = 0; at < whole.size(); at += step + 1) expect_part(at, 1);
      expect_part(whole.size(), 0);
    }
  }
}

TEST(Npz, ObjectArraysAreRefused) {
  expect_refusal("Python objects", [] { open_npz(sample("objects.npz")); });
}

std::string zip_with(const std::string& name, const std::string& content) {
  const TempFolder folder;
  AtomicFile file(folder / "f");
  ZipWriter zip(file);
  zip.add(name, as_byte_span(content), {});
  zip.finish();
  file.commit();
  return slurp(folder / "f");
}

TEST(Npz, EntriesMustBeWholeArrays) {
  const auto open = [](const std::string& name, const std::string& content) {
    open_npz(std::make_unique<ZipReader>(in_memory(zip_with(name, content))), "f.npz");
  };
  const std::string header = npy_header_text(DType::kF32, std::vector<int64_t>{2});
  EXPECT_NO_THROW(open("a.npy", header + "12345678"));
  expect_refusal("the entry holds 9", [&] { open("a.npy", header + "123456789"); });
  expect_refusal("the entry holds 7", [&] { open("a.npy", header + "1234567"); });
  expect_refusal("expected an array", [&] { open("readme.txt", "hello"); });
  expect_refusal("expected an array", [&] { open(".npy", header + "12345678"); });
  expect_refusal("cut short", [&] { open("a.npy", header.substr(0, 20)); });
  const std::string wrap =
      npy_header_text(DType::kF32, std::vector<int64_t>{int64_t{1} << 33, int64_t{1} << 31});
  expect_refusal("does not fit", [&] { open("a.npy", wrap); });
}

// A truncated file is always refused. A file with any byte changed is accepted or refused, nothing else.
TEST(Npz, TruncationsAndFlips) {
  for (const char* name : {"numpy.npz", "numpy_compressed.npz"}) {
    const std::string whole = slurp(sample(name));
    const auto open_and_read = [](const std::string& bytes) {
      read_all(*open_npz(std::make_unique<ZipReader>(in_memory(bytes)), "f.npz"));
    };
    for (size_t length = 0; length < whole.size(); ++length)
      EXPECT_THROW(open_and_read(whole.substr(0, length)), Error) << length;
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string changed = whole;
      changed[at] = static_cast<char>(~changed[at]);
      try {
        open_and_read(changed);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace vitrail
