// Drives a fuzz target without libFuzzer: tries each file of a corpus, then RUNS seeded mutations of them,
// the same ones every time.  fuzz_NAME CORPUS RUNS
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

using Bytes = std::vector<uint8_t>;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
// A target may define its own mutator, which keeps checksums correct.
extern "C" [[gnu::weak]] size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                                        unsigned seed);

namespace {

constexpr size_t kMaxBytes = 1 << 16;
std::mt19937 generator(1);  // the same mutations every time

size_t below(size_t bound) {
  return std::uniform_int_distribution<size_t>(0, bound - 1)(generator);
}

std::vector<Bytes> read_corpus(const char* folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

Bytes mutate(Bytes bytes, unsigned seed) {
  const size_t size = std::min(bytes.size(), kMaxBytes);
  bytes.resize(kMaxBytes);
  bytes.resize(LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(bytes.data(), size, kMaxBytes, seed)
                                       : LLVMFuzzerMutate(bytes.data(), size, kMaxBytes));
  return bytes;
}

}  // namespace

// Makes a few small changes: flipped bits, edge values, a piece removed, a piece doubled.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  constexpr uint8_t kEdges[] = {0, 1, 0x7f, 0x80, 0xfe, 0xff};
  for (size_t change = 1 + below(4); change > 0 && size > 0; --change) {
    const size_t at = below(size), length = 1 + below(std::min<size_t>(size - at, 16));
    switch (below(4)) {
      case 0:
        data[at] ^= static_cast<uint8_t>(1U << below(8));
        break;
      case 1:
        std::fill_n(data + at, length, kEdges[below(std::size(kEdges))]);
        break;
      case 2:
        std::copy(data + at + length, data + size, data + at);
        size -= length;
        break;
      default:
        if (size + length > max_size) break;
        std::copy_backward(data + at, data + size, data + size + length);
        size += length;
    }
  }
  return size;
}

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  const std::vector<Bytes> corpus = read_corpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "no files in %s\n", argv[1]);
    return 65;
  }
  for (const Bytes& bytes : corpus) LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  const auto runs = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
  for (unsigned run = 0; run < runs; ++run) {
    const Bytes bytes = mutate(corpus[below(corpus.size())], run);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%zu files and %u mutations\n", corpus.size(), runs);
}
