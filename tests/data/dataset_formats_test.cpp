// The formats with images as pixels: cifar10, cifar100, idx, synthetic; and the words FORMAT:PLACE.
#include <zlib.h>

#include "base/file.h"
#include "data/dataset.h"
#include "data/datasets/file_formats.h"
#include "dataset_files.h"
#include "source_root.h"

namespace vitrail {
namespace {

using namespace test;
using namespace std::string_literals;

TEST(DatasetSpec, Refusals) {
  const DataFolder folder;
  const struct {
    std::string spec, refusal;
  } cases[] = {
      {"fodler:x", "did you mean folder:?"},
      {"images", "folder:images"},
      {"folder:", "names no place"},
      {"folder:" + folder.path("none"), "No such file"},
      {"cifar10:" + folder.path(), "data_batch_1.bin"},
      {"idx:" + folder.path(), "train-images-idx3-ubyte"},
      {"tar:" + folder.path("*.tar"), "no file matches"},
      {"packed:" + folder.path("none"), "cannot read"},
      {"synthetic:3x32", "expected synthetic:"},
      {"synthetic:2x8x8x10x10", "1 or 3 channels"},
      {"synthetic:3x8x8x10x0", "expected synthetic:"},
      {"synthetic:3x8x8x10x10x", "expected synthetic:"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.spec);
    expect_refused(c.refusal, [&] { open_dataset(c.spec, Part::kTrain); });
  }
}

TEST(Synthetic, IsDeterministicAndDiffersByClass) {
  const auto train = open_dataset("synthetic:3x16x16x4x100", Part::kTrain);
  const auto val = open_dataset("synthetic:3x16x16x4x100", Part::kVal);
  EXPECT_EQ(train->size(), 100);
  EXPECT_EQ(val->size(), 20);
  EXPECT_EQ(train->classes().size(), 4u);
  EXPECT_EQ(open_dataset("synthetic:3x16x16x4x100", Part::kAll)->size(), 120);
  const auto distance = [&](int64_t a, int64_t b) {
    const Image x = train->load(a, 0), y = train->load(b, 0);
    double sum = 0;
    for (size_t i = 0; i < x.pixels.size(); ++i) sum += std::abs(x.pixels[i] - y.pixels[i]);
    return sum / static_cast<double>(x.pixels.size());
  };
  EXPECT_EQ(train->load(5, 0).pixels,
            open_dataset("synthetic:3x16x16x4x100", Part::kTrain)->load(5, 0).pixels);
  EXPECT_NE(train->load(0, 0).pixels, val->load(0, 0).pixels);
  double same = 0, other = 0;
  for (int64_t i = 0; i < 20; ++i) same += distance(i, i + 4), other += distance(i, i + 1);
  EXPECT_LT(same, 0.9 * other);
}

TEST(Cifar, BinaryFiles) {
  const DataFolder folder;
  for (int i = 1; i <= 5; ++i)
    folder.file(strf("cifar-10-batches-bin/data_batch_%d.bin", i),
                cifar_record("\3", i) + cifar_record("\7", 50 + i));
  folder.file("cifar-10-batches-bin/test_batch.bin", cifar_record("\2", 9));
  const auto train = open_dataset("cifar10:" + folder.path(), Part::kTrain);
  ASSERT_EQ(train->size(), 10);
  EXPECT_EQ(train->classes()[3], "cat");
  EXPECT_EQ(train->sample_name(3), "data_batch_2.bin#1");
  EXPECT_EQ(train->labels(3)[0], 7);
  const Image image = train->load(3, 0);
  ASSERT_EQ(image.pixels.size(), 3072u);
  EXPECT_EQ(image.pixels[0], 52);
  EXPECT_EQ(image.row(1)[3 * 2 + 1], static_cast<uint8_t>(52 + 1024 + 34));
  EXPECT_EQ(open_dataset("cifar10:" + folder.path(), Part::kVal)->labels(0)[0], 2);
  EXPECT_EQ(open_dataset("cifar10:" + folder.path("cifar-10-batches-bin"), Part::kAll)->size(), 11);
}

TEST(Cifar, BinaryRules) {
  const DataFolder folder;
  folder.file("train.bin", cifar_record("\1\x63", 1));
  folder.file("test.bin", cifar_record("\1\x64", 1));
  const auto train = open_dataset("cifar100:" + folder.path(), Part::kTrain);
  EXPECT_EQ(train->labels(0)[0], 99);
  expect_refused("sample 0 has the label 100",
                 [&] { open_dataset("cifar100:" + folder.path(), Part::kVal); });
  folder.file("test.bin", cifar_record("\1\1", 1) + "x");
  expect_refused("multiple of 3074", [&] { open_dataset("cifar100:" + folder.path(), Part::kVal); });
  folder.file("test.bin", "");
  expect_refused("multiple of 3074", [&] { open_dataset("cifar100:" + folder.path(), Part::kVal); });
}

// What Python 2's cPickle wrote for the published files, with one sample.
std::string cifar_pickle(const std::string& module = "numpy.core.multiarray\n_reconstruct",
                         const std::string& type = "u1", const std::string& label = "K\6",
                         const std::string& shape = "K\1M\0\x0c"s, int bytes = 3072) {
  std::string data;
  for (int i = 0; i < bytes; ++i) data += static_cast<char>(i * 7);
  return "\x80\2}q\1(U\6labelsq\2]q\3("s + label + "eU\4dataq\4c" + module +
         "\nq\5cnumpy\nndarray\nq\6K\0\x85U\1b\x87Rq\7(K\1"s + shape + "\x86" + "cnumpy\ndtype\nq\10U\2" +
         type + "K\0K\1\x87Rq\t(K\3U\1|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89T"s +
         std::string{static_cast<char>(bytes & 255), static_cast<char>(bytes >> 8), 0, 0} + data + "tbu.";
}

TEST(Cifar, Pickles) {
  const DataFolder folder;
  for (int i = 1; i <= 5; ++i) folder.file(strf("data_batch_%d", i), cifar_pickle());
  folder.file("batches.meta", "\x80\2}U\x0blabel_names]("s + "U\1aU\1bU\1cU\1dU\1eU\1fU\1gU\1hU\1iU\1jes.");
  const auto train = open_dataset("cifar10:" + folder.path(), Part::kTrain);
  ASSERT_EQ(train->size(), 5);
  EXPECT_EQ(train->classes()[6], "g");
  EXPECT_EQ(train->sample_name(4), "data_batch_5#0");
  EXPECT_EQ(train->labels(4)[0], 6);
  EXPECT_EQ(train->load(4, 0).pixels[1], static_cast<uint8_t>(1024 * 7));
}

// Written by Python 3 and numpy in their protocols; one of zeros each.
TEST(Cifar, PicklesOfEveryProtocol) {
  for (const char* name : {"protocol2.pkl", "protocol3.pkl", "protocol4.pkl"}) {
    const std::string pickle = read_file(VT_SOURCE_DIR "/fuzz/corpus/fuzz_cifar_pickle/"s + name, 1 << 20);
    const CifarBatch batch = read_cifar_pickle(as_byte_span(pickle), "fine_labels", 100);
    EXPECT_EQ(batch.labels, (std::vector<int32_t>{7})) << name;
    EXPECT_EQ(batch.pixels, std::string(3072, '\0')) << name;
  }
}

TEST(Cifar, HostilePickles) {
  const struct {
    std::string pickle, refusal;
  } cases[] = {
      {cifar_pickle("os\nsystem"), "\"os.system\""},
      {cifar_pickle("numpy.core.multiarray\n_reconstruct", "f4"), "not of type uint8"},
      {cifar_pickle("numpy.core.multiarray\n_reconstruct", "u1", "K\n"), "the label 10"},
      {cifar_pickle("numpy.core.multiarray\n_reconstruct", "u1", "K\1K\2"), "2 labels for 1 images"},
      {cifar_pickle("numpy.core.multiarray\n_reconstruct", "u1", "K\1", "K\2M\0\x0c"s),
       "3072 bytes for 2 rows"},
      {cifar_pickle("numpy.core.multiarray\n_reconstruct", "u1", "K\1", "K\1M\1\x0c"s), "expected [N, 3072]"},
      {cifar_pickle("numpy.core.multiarray\n_reconstruct", "u1", "K\1", "J\xff\xff\xff\xffM\0\x0c"s),
       "shape [-1"},
      {cifar_pickle("numpy.core.multiarray\n_reconstruct", "u1", "K\1", "K\1M\0\x0c"s, 3071), "3071 bytes"},
      {"\x80\2]."s, "expected a pickled dict"},
      {"\x80\2}."s, "has no \"data\""},
      {"\x80\2}(U\4dataK\1U\6labels]u."s, "not a numpy array"},
      {cifar_pickle().substr(0, 500), "cut short"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.refusal);
    expect_refused(c.refusal, [&] { read_cifar_pickle(as_byte_span(c.pickle), "labels", 10); });
  }
}

// Python 3 writes bytes as a text and a call that encodes it.
TEST(Cifar, TextsBeyondLatin1AreNoPixels) {
  std::string pickle = read_file(VT_SOURCE_DIR "/fuzz/corpus/fuzz_cifar_pickle/protocol2.pkl", 1 << 20);
  const size_t at = pickle.find(std::string(100, '\0'));
  ASSERT_NE(at, std::string::npos);
  pickle.replace(at + 50, 2, "\xc3\xbf");  // one character for two zeros
  expect_refused("3071 bytes for 1 rows",
                 [&] { read_cifar_pickle(as_byte_span(pickle), "fine_labels", 100); });
  pickle.replace(at + 50, 2, "\xc4\x80");
  expect_refused("a character beyond latin1",
                 [&] { read_cifar_pickle(as_byte_span(pickle), "fine_labels", 100); });
}

std::string as_gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(Idx, PlainAndGzippedAreAlike) {
  const std::string images = idx_file({3, 2, 2}, "abcdefghijkl"), labels = idx_file({3}, "\2\0\1"s);
  const DataFolder plain, zipped;
  plain.file("train-images.idx3-ubyte", images);
  plain.file("train-labels.idx1-ubyte", labels);
  zipped.file("train-images-idx3-ubyte.gz", as_gzip(images));
  zipped.file("train-labels-idx1-ubyte.gz", as_gzip(labels));
  zipped.file("labels.txt", "shirt\nshoe\nbag\n");
  for (const DataFolder* folder : {&plain, &zipped}) {
    const auto data = open_dataset("idx:" + folder->path(), Part::kTrain);
    ASSERT_EQ(data->size(), 3);
    EXPECT_EQ(data->classes().size(), 3u);
    EXPECT_EQ(data->labels(0)[0], 2);
    EXPECT_EQ(data->sample_name(2), "train#2");
    const Image image = data->load(1, 0);
    EXPECT_EQ(image.channels, 1);
    EXPECT_EQ(std::string(image.pixels.begin(), image.pixels.end()), "efgh");
    EXPECT_EQ(open_part_if_any("idx:" + folder->path(), Part::kVal), nullptr);
  }
  EXPECT_EQ(open_dataset("idx:" + zipped.path(), Part::kAll)->classes()[1], "shoe");
}

// Both parts one after the other, each counted from its own beginning.
TEST(Idx, AllOfItIsBothPartsInTheirOrder) {
  const DataFolder folder;
  folder.file("train-images-idx3-ubyte", idx_file({2, 1, 2}, "abcd"));
  folder.file("train-labels-idx1-ubyte", idx_file({2}, "\0\1"s));
  folder.file("t10k-images-idx3-ubyte", idx_file({3, 1, 2}, "efghij"));
  folder.file("t10k-labels-idx1-ubyte", idx_file({3}, "\1\1\0"s));
  const auto all = open_dataset("idx:" + folder.path(), Part::kAll);
  ASSERT_EQ(all->size(), 5);
  const char* const names[] = {"train#0", "train#1", "t10k#0", "t10k#1", "t10k#2"};
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(all->sample_name(i), names[i]);
    EXPECT_EQ(all->load(i, 0).pixels[0], 'a' + 2 * i);
    EXPECT_EQ(all->labels(i)[0], i == 0 || i == 4 ? 0 : 1);
  }
  EXPECT_EQ(all->pixel_shape(), (PixelShape{1, 2, 1}));
  folder.file("t10k-images-idx3-ubyte", idx_file({3, 2, 1}, "efghij"));
  EXPECT_FALSE(open_dataset("idx:" + folder.path(), Part::kAll)->pixel_shape()) << "the parts differ";
}

TEST(Idx, EveryLabelNeedsAName) {
  const DataFolder folder;
  folder.file("train-images-idx3-ubyte", idx_file({3, 1, 1}, "abc"));
  folder.file("train-labels-idx1-ubyte", idx_file({3}, "\2\0\1"s));
  folder.file("labels.txt", "shirt\nshoe\nbag\n");
  EXPECT_EQ(open_dataset("idx:" + folder.path(), Part::kTrain)->classes().size(), 3u);
  folder.file("labels.txt", "shirt\nshoe\n");
  expect_refused("has 2 names, but labels go up to 2",
                 [&] { open_dataset("idx:" + folder.path(), Part::kTrain); });
}

TEST(Idx, TwoFilesOfOneEndingAreRefusedButForAGzippedTwin) {
  const DataFolder folder;
  const std::string images = idx_file({1, 1, 1}, "a");
  folder.file("train-images-idx3-ubyte", images);
  folder.file("train-labels-idx1-ubyte", idx_file({1}, "\0"s));
  folder.file("train-images-idx3-ubyte.gz", "never opened");
  EXPECT_EQ(open_dataset("idx:" + folder.path(), Part::kTrain)->size(), 1);
  std::filesystem::remove(folder.path("train-images-idx3-ubyte.gz"));
  folder.file("emnist-train-images-idx3-ubyte", images);
  expect_refused("several files", [&] { open_dataset("idx:" + folder.path(), Part::kTrain); });
}

TEST(Idx, Rules) {
  const struct {
    std::string images, labels, refusal;
  } cases[] = {
      {idx_file({2, 2, 2}, "abcdefg"), idx_file({2}, "\0\1"s), "speaks of 8 bytes, 7 follow"},
      {idx_file({2, 2, 2}, "abcdefgh"), idx_file({3}, "\0\1\2"s), "2 images and 3 labels"},
      {idx_file({4}, "abcd"), idx_file({4}, "\0\1\2\3"s), "expected 0x00000803"},
      {idx_file({2, 0, 2}, ""), idx_file({2}, "\0\1"s), "without pixels"},
      {idx_file({0xffffffff, 0xffffffff, 0xffffffff}, ""), idx_file({1}, "\1"), "more than 8 GiB"},
      {"x", idx_file({1}, "\1"), "cut short"},
  };
  for (const auto& c : cases)
    for (const bool zip : {false, true}) {
      SCOPED_TRACE(c.refusal);
      const DataFolder folder;
      folder.file(zip ? "train-images-idx3-ubyte.gz" : "train-images-idx3-ubyte",
                  zip ? as_gzip(c.images) : c.images);
      folder.file("train-labels-idx1-ubyte", c.labels);
      expect_refused(c.refusal, [&] { open_dataset("idx:" + folder.path(), Part::kTrain); });
    }
  const DataFolder folder;
  const std::string whole = as_gzip(idx_file({100, 10, 10}, std::string(10000, 'x')));
  folder.file("train-images-idx3-ubyte.gz", whole.substr(0, whole.size() / 2));
  folder.file("train-labels-idx1-ubyte", idx_file({100}, std::string(100, '\0')));
  expect_refused("", [&] { open_dataset("idx:" + folder.path(), Part::kTrain); });
  folder.file("train-images-idx3-ubyte.gz", as_gzip(idx_file({1, 2, 2}, std::string(1 << 22, '\0'))));
  expect_refused("at least 5 follow", [&] { open_dataset("idx:" + folder.path(), Part::kTrain); });
}

}  // namespace
}  // namespace vitrail
