#include "io/torch_file.h"

#include "io/strided.h"
#include "samples.h"

namespace vitrail {
namespace {

using namespace testing;
using namespace std::string_literals;

TEST(TorchFile, ReadsATrainingCheckpoint) {
  for (const char* name : {"training.pth", "training_protocol4.pth"}) {
    SCOPED_TRACE(name);
    const auto source = open_torch(sample(name));
    EXPECT_EQ(source->format(), "torch");
    EXPECT_EQ(source->metadata().at("state_dict"), "model_ema");
    EXPECT_EQ(source->metadata().at("state_dicts_passed_over"), "model");
    EXPECT_EQ(source->tensors().size(), 14u);
    for (const TensorInfo& info : source->tensors()) expect_rule(*source, info.name);
    EXPECT_EQ(source->tensors()[*source->find("transposed")].shape, (std::vector<int64_t>{3, 4}));
    EXPECT_EQ(source->tensors()[*source->find("bf16")].dtype, DType::kBF16);
    EXPECT_FALSE(source->find("steps"));
  }
}

TEST(TorchFile, ReadsAPlainStateDict) {
  for (const char* name : {"state_dict.pth", "state_dict_deflated.pth"}) {
    const auto source = open_torch(sample(name));
    ASSERT_EQ(source->tensors().size(), 2u);
    EXPECT_EQ(source->metadata().at("state_dict"), "");
    expect_rule(*source, "weight");
    expect_rule(*source, "bias");
  }
}

TEST(TorchFile, ReadsTheFormBeforeTorch16) {
  const auto source = open_torch_legacy(std::make_shared<RandomAccessFile>(sample("legacy.pth")));
  ASSERT_EQ(source->tensors().size(), 2u);
  expect_rule(*source, "weight");
  expect_rule(*source, "bias");
  const std::string whole = slurp(sample("legacy.pth"));
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(read_all(*open_torch_legacy(in_memory(whole.substr(0, length)))), Error) << length;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(~changed[at]);
    try {
      read_all(*open_torch_legacy(in_memory(changed)));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
    }
  }
}

TEST(TorchFile, NeverRunsCode) {
  expect_refusal("posix.system", [] { open_torch(sample("runs_command.pth")); });
  expect_refusal("torch.nn.modules.linear.Linear", [] { open_torch(sample("whole_module.pth")); });
}

TEST(TorchFile, NotATorchZip) {
  expect_refusal("not a file of torch.save", [] { open_torch(sample("numpy.npz")); });
}

TEST(TorchFile, TruncationsAndFlips) {
  const std::string whole = slurp(sample("state_dict.pth"));
  const auto open_and_read = [](const std::string& bytes) {
    read_all(*open_torch(std::make_unique<ZipReader>(in_memory(bytes)), "f.pth"));
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

// Pieces of pickles, to describe tensors that torch would never write.
std::string text(const std::string& content) {
  std::string op = "X";
  append_le(op, static_cast<uint32_t>(content.size()));
  return op + content;
}
std::string integer(int64_t value) {
  std::string op = "\x8a\x08";
  append_le(op, value);
  return op;
}
std::string tuple(const std::vector<int64_t>& values) {
  std::string ops = "(";
  for (const int64_t value : values) ops += integer(value);
  return ops + "t";
}
std::string storage(const std::string& type, int64_t elems) {
  return "(" + text("storage") + "ctorch\n" + type + "\n" + text("0") + text("cpu") + integer(elems) + "tQ";
}
std::string tensor(const std::string& storage_ops, int64_t offset, const std::vector<int64_t>& size,
                   const std::vector<int64_t>& stride) {
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage_ops + integer(offset) + tuple(size) +
         tuple(stride) + "\x89}tR";
}
TorchStateDict state_of(const std::string& dict_ops) {
  return read_torch_pickle(as_byte_span("\x80\x02" + dict_ops + "."));
}
std::string dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string ops = "}(";
  for (const auto& [key, value] : items) ops += text(key) + value;
  return ops + "u";
}

TEST(TorchPickle, FindsTheStateDict) {
  const std::string t = tensor(storage("FloatStorage", 6), 0, {2, 3}, {3, 1});
  const std::string weights = dict({{"w", t}});
  EXPECT_EQ(state_of(weights).key, "");
  EXPECT_EQ(state_of(dict({{"stray", t}, {"model", weights}})).key, "model");
  // timm's loader prefers averaged weights to the raw ones; the other state dicts are reported.
  EXPECT_EQ(state_of(dict({{"state_dict", weights}, {"model_ema", dict({{"w", t}})}})).key, "model_ema");
  EXPECT_EQ(state_of(dict({{"state_dict", weights}, {"state_dict_ema", dict({{"w", t}})}})).key,
            "state_dict_ema");
  EXPECT_EQ(state_of(dict({{"state_dict", weights}, {"state_dict_ema", dict({{"w", t}})}})).passed_over,
            "state_dict");
  EXPECT_EQ(state_of(dict({{"ema", weights}, {"model", dict({{"w", t}})}})).key, "model");
  for (const char* key : {"ema", "teacher", "net", "params", "anything"})
    EXPECT_EQ(state_of(dict({{key, weights}, {"epoch", "K\1"}})).key, key);
  EXPECT_EQ(state_of(dict({{"ema", dict({{"state_dict", weights}})}})).key, "ema.state_dict");
  expect_refusal("several dicts of tensors: one, two", [&] {
    state_of(dict({{"one", weights}, {"two", dict({{"w", t}})}}));
  });
  EXPECT_EQ(state_of(dict({{"state_dict_ema", weights}, {"model", "N"}})).key, "state_dict_ema");
  EXPECT_EQ(state_of(dict({{"model_state_dict", weights}, {"epoch", "K\1"}})).key, "model_state_dict");
  const TorchStateDict state = state_of(weights);
  ASSERT_EQ(state.tensors.size(), 1u);
  EXPECT_EQ(state.tensors[0].name, "w");
  EXPECT_EQ(state.tensors[0].dtype, DType::kF32);
  EXPECT_EQ(state.tensors[0].view.strides, (std::vector<int64_t>{3, 1}));
}

TEST(TorchPickle, HostileTensors) {
  const std::string floats = storage("FloatStorage", 6);
  const int64_t huge = int64_t{1} << 62;
  struct Case {
    std::string value, refusal;
  };
  const Case cases[] = {
      {tensor(floats, 1, {2, 3}, {3, 1}), "past the end"},
      {tensor(floats, 0, {2, 3}, {4, 1}), "past the end"},
      {tensor(floats, 7, {0}, {1}) + "0" + tensor(floats, 6, {}, {}), "past the end"},
      {tensor(floats, huge, {2}, {huge}), "past the end"},
      {tensor(floats, 0, {7}, {0}), "more elements than"},
      {tensor(floats, 0, {int64_t{1} << 33, int64_t{1} << 31}, {1, 1}), "does not fit"},
      {tensor(floats, 0, {-1}, {1}), "integer from 0"},
      {tensor(floats, 0, {2}, {-1}), "integer from 0"},
      {tensor(floats, -1, {2}, {1}), "integer from 0"},
      {tensor(floats, 0, {2, 3}, {1}), "2 dimensions but 1 strides"},
      {tensor(floats, 0, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}), "at most 8"},
      {tensor(storage("FloatStorage", -6), 0, {2}, {1}), "integer from 0"},
      {tensor(storage("ComplexFloatStorage", 6), 0, {2}, {1}), "torch.ComplexFloatStorage"},
      {tensor(storage("Size", 6), 0, {2}, {1}), "unknown kind"},
      {tensor("N", 0, {2}, {1}), "not a storage"},
      {tensor("NQ", 0, {2}, {1}), "five values"},
      {"ctorch._utils\n_rebuild_tensor_v2\n)R", "0 arguments"},
      {"ctorch._utils\n_rebuild_parameter\n)R", "without a tensor"},
      {"ctorch._utils\n_rebuild_parameter\n(NtR", "not a tensor"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.refusal);
    expect_refusal(c.refusal, [&] { state_of(dict({{"w", c.value}})); });
  }
  expect_refusal("tensor \"w\": ", [&] { state_of(dict({{"w", tensor(floats, 0, {7}, {0})}})); });
  const std::string good = tensor(floats, 0, {2}, {1});
  expect_refusal("two tensors", [&] { state_of(dict({{"w", good}, {"w", good}})); });
  expect_refusal("tensor name", [&] { state_of(dict({{"", good}})); });
  expect_refusal("not a text", [&] { state_of("}K\1" + good + "s"); });
  expect_refusal("no dict of tensors", [&] { state_of("}"); });
  expect_refusal("expected a dict", [&] { state_of(good); });
  expect_refusal("expected a dict", [&] { state_of("]q\0h\0a"s); });
}

// A file of one storage, "0", of `elems` floats counting up, and a pickle that describes views of it.
std::string file_of_views(const std::string& dict_ops, size_t elems) {
  std::vector<float> values(elems);
  for (size_t i = 0; i < elems; ++i) values[i] = static_cast<float>(i);
  const TempFolder folder;
  AtomicFile file(folder / "f.pth");
  ZipWriter zip(file);
  zip.add("f/data.pkl", {}, as_byte_span("\x80\x02" + dict_ops + "."));
  zip.add("f/data/0", {}, std::as_bytes(std::span(values)));
  zip.finish();
  file.commit();
  return read_file(folder / "f.pth", 1 << 26);
}

// A source that counts what is read.
class CountingBytes : public ByteSource {
 public:
  explicit CountingBytes(const std::string& content) : bytes_("memory", content) { size_ = bytes_.size(); }
  mutable uint64_t count = 0;

 private:
  void read_checked(uint64_t offset, std::span<std::byte> target) const override {
    count += target.size();
    bytes_.read_at(offset, target);
  }
  MemoryBytes bytes_;
};

TEST(TorchFile, AStorageThatManyTensorsShareIsReadOnce) {
  constexpr int64_t kViews = 500, kEach = 1000;
  std::vector<std::pair<std::string, std::string>> items;
  for (int64_t i = 0; i < kViews; ++i)
    items.emplace_back("t" + std::to_string(i),
                       tensor(storage("FloatStorage", kViews * kEach), i * kEach, {10, 100}, {1, 10}));
  const std::string content = file_of_views(dict(items), kViews * kEach);
  const auto bytes = std::make_shared<CountingBytes>(content);
  const auto source = open_torch(std::make_unique<ZipReader>(bytes), "f.pth");
  bytes->count = 0;
  read_all(*source);
  EXPECT_LT(bytes->count, 2 * kViews * kEach * 4 + kViews * 64) << "once for the CRC, once for the values";
  const std::vector<std::byte> last = bytes_of(*source, kViews - 1);
  EXPECT_EQ(element(last, DType::kF32, 1), (kViews - 1) * kEach + 10);  // [0, 1] of a transposed view
}

// Magic number, version, machine, state dict and order of the storages are pickles; then the storage's
// elements come.
TEST(TorchFile, AViewInTheFormBeforeTorch16BeginsAtItsElement) {
  std::string content = "\x80\x02K\x01.\x80\x02M\xe9\x03.\x80\x02}.";
  content += "\x80\x02" + dict({{"w", tensor(storage("FloatStorage", 12), 4, {2, 3}, {3, 1})}}) + ".";
  content += "\x80\x02]" + text("0") + "a.";
  append_le(content, uint64_t{12});
  for (int i = 0; i < 12; ++i) append_le(content, static_cast<float>(i));
  const std::vector<std::byte> found = bytes_of(*open_torch_legacy(in_memory(content)), 0);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(element(found, DType::kF32, i), 4 + static_cast<float>(i));
}

// The CRC is that of the whole storage, so that damage beside a view is seen, too.
TEST(TorchFile, ADamagedStorageIsRefusedThroughAnyViewOfIt) {
  const std::string transposed = tensor(storage("FloatStorage", 12), 0, {2, 3}, {1, 2});
  const std::string content = file_of_views(dict({{"w", transposed}}), 12);
  const auto read_with = [&](size_t element) {
    const float value = static_cast<float>(element);
    std::string changed = content;
    const size_t at = changed.find(std::string(reinterpret_cast<const char*>(&value), sizeof value));
    ASSERT_NE(at, std::string::npos);
    changed[at] ^= 1;
    expect_refusal("the data is damaged",
                   [&] { read_all(*open_torch(std::make_unique<ZipReader>(in_memory(changed)), "f.pth")); });
  };
  read_with(5);   // the view's last
  read_with(11);  // the storage's last
  read_all(*open_torch(std::make_unique<ZipReader>(in_memory(content)), "f.pth"));
}

TEST(TorchFile, ViewsThatTakeForeverToReadAreRefused) {
  constexpr int64_t kElems = 4096;
  std::vector<std::pair<std::string, std::string>> items;
  for (int64_t i = 0; i < 100'000; ++i)
    items.emplace_back(std::to_string(i), tensor(storage("FloatStorage", kElems), 0, {kElems}, {1}));
  const std::string content = file_of_views(dict(items), kElems);
  expect_refusal("more than 64 times",
                 [&] { open_torch(std::make_unique<ZipReader>(in_memory(content)), "f.pth"); });
}

TEST(Strided, GathersAnyLayout) {
  const std::string letters = "abcdefghijkl";
  struct Case {
    StridedView view;
    const char* expected;
  };
  const Case cases[] = {
      {{{3, 4}, {4, 1}, 0}, "abcdefghijkl"},
      {{{4, 3}, {1, 4}, 0}, "aeibfjcgkdhl"},
      {{{2, 2}, {6, 2}, 1}, "bdhj"},
      {{{3}, {0}, 5}, "fff"},
      {{{}, {}, 11}, "l"},
      {{{2, 1, 3}, {3, 99, 1}, 6}, "ghijkl"},
  };
  for (const Case& c : cases) {
    ASSERT_NO_THROW(c.view.require_within(letters.size()));
    std::string target(std::strlen(c.expected), '?');
    gather(c.view, 1, as_byte_span(letters), std::as_writable_bytes(std::span(target)));
    EXPECT_EQ(target, c.expected);
  }
  EXPECT_EQ(column_major_strides(std::vector<int64_t>{2, 3, 4}), (std::vector<int64_t>{1, 2, 6}));
  EXPECT_EQ(row_major_strides(std::vector<int64_t>{2, 3, 4}), (std::vector<int64_t>{12, 4, 1}));
}

}  // namespace
}  // namespace vitrail
