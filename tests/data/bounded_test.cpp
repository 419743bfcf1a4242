// What a small hostile file may cost: memory is bounded by what is free, time by the file's size.
#include <sys/resource.h>
#include <sys/wait.h>
#include <zlib.h>

#include <ctime>
#include <fstream>
#include <memory>

#include "base/file.h"
#include "base/free_memory.h"
#include "data/dataset.h"
#include "data/datasets/file_formats.h"
#include "data/datasets/view.h"
#include "data/decoding_memory.h"
#include "data/loader.h"
#include "dataset_files.h"
#include "fake_dataset.h"
#include "source_root.h"

namespace vitrail {
namespace {

using namespace test;

constexpr size_t kMiB = size_t{1} << 20;

std::string gzipped(const std::string& text) {
  std::string packed(text.size() / 100 + 1000, '\0');
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// Returns what `body` reports in a process that may take `room` more bytes of address space.
template <typename Body>
std::string said_within(size_t room, const std::string& file, Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit limit{pages * 4096 + room, pages * 4096 + room};
    ::setrlimit(RLIMIT_AS, &limit);
    std::string said;
    try {
      said = body();
    } catch (const std::exception& error) {
      said = error.what();
    }
    write_file(file, said);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  return read_file(file, kMiB);
}

bool sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

TEST(Bounded, AnUnpackedIdxFileIsHeldOnceAndOnlyIfItFits) {
  if (sanitized()) GTEST_SKIP() << "sanitizers reserve the address space that is limited here";
  const DataFolder folder;
  constexpr size_t kContent = 64 * kMiB;
  folder.file("train-images-idx3-ubyte.gz", gzipped(idx_file({4, 4096, 4096}, std::string(kContent, '\0'))));
  folder.file("train-labels-idx1-ubyte", idx_file({4}, std::string(4, '\0')));
  const auto open = [&] {
    return strf("%lld samples",
                static_cast<long long>(open_dataset("idx:" + folder.path(), Part::kTrain)->size()));
  };
  EXPECT_EQ(said_within(kContent + 32 * kMiB, folder.path("said"), open), "4 samples");
  const std::string refusal = said_within(kContent / 2, folder.path("said"), open);
  EXPECT_NE(refusal.find("needs 64.0 MiB"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("ulimit -v"), std::string::npos) << refusal;
}

TEST(Bounded, AHeaderThatSpeaksOfMoreThanDeflateCanHoldIsRefusedUnopened) {
  const std::string small = gzipped(idx_file({2000, 1000, 1000}, std::string(1000, '\0')));
  expect_refused("cannot hold as many",
                 [&] { open_idx_bytes(std::make_unique<MemoryBytes>("small", small), true, 3); });
}

TEST(Bounded, ManyClassesAreMatchedByNameInOnePass) {
  constexpr int kClasses = 200'000;
  const auto base = std::make_shared<FakeDataset>(2, kClasses);
  const std::vector<std::string> backward(base->classes().rbegin(), base->classes().rend());
  const std::clock_t start = std::clock();
  const auto data = align_classes(base, backward);
  EXPECT_LT(std::clock() - start, 10 * CLOCKS_PER_SEC);  // of the processor: a busy host changes nothing
  EXPECT_EQ(data->classes(), backward);
}

TEST(DecodingMemory, IsKnownFromTheHeader) {
  const auto of_file = [](const char* name) {
    const std::string file = read_file(strf("%s/tests/golden/images/%s", VT_SOURCE_DIR, name), kMiB);
    return decoding_bytes({reinterpret_cast<const uint8_t*>(file.data()), file.size()}) - file.size();
  };
  const Image whole = flat(40, 1);
  const std::string file = png(whole);
  EXPECT_EQ(decoding_bytes({reinterpret_cast<const uint8_t*>(file.data()), file.size()}),
            file.size() + whole.pixels.size());
  constexpr size_t kPixels = 27 * 19, kBlocks = 4 * 3;
  EXPECT_EQ(of_file("lossy.webp"), kPixels * 3);
  EXPECT_EQ(of_file("lossless.webp"), kPixels * (3 + 4)) << "all pixels as words besides";
  EXPECT_EQ(of_file("ycbcr_444.jpg"), kPixels * 3);
  EXPECT_EQ(of_file("ycbcr_444_progressive.jpg"), kPixels * 3 + kBlocks * 64 * 2 * 3)
      << "all coefficients besides";
  EXPECT_EQ(decoding_bytes(std::span(reinterpret_cast<const uint8_t*>("no image"), 8)), 0u);
}

TEST(DecodingMemory, EveryWorkerMayHoldTheLargestImage) {
  const DataFolder folder;
  for (int i = 0; i < 40; ++i) folder.file(strf("a/%02d.png", i), png(1));
  folder.file("a/broken.png", "x");
  const auto data = open_dataset("folder:" + folder.path(), Part::kTrain);
  EXPECT_LT(largest_decoding(*data), 1000u);
  folder.file("a/00.png", png(1, 300));
  EXPECT_GE(largest_decoding(*data), size_t{300 * 300 * 3});
  LoaderConfig loader;
  loader.workers = 4;
  EXPECT_EQ(Loader::decoding_bytes(loader, *data), 4 * largest_decoding(*data));
  EXPECT_EQ(Loader::decoding_bytes(loader, *open_dataset("synthetic:3x8x8x2x4", Part::kTrain)), 0u);
}

}  // namespace
}  // namespace vitrail
