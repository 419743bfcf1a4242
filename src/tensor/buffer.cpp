#include "tensor/buffer.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace vitrail {

namespace {
std::array<std::atomic<size_t>, kCategoryCount> g_allocated{};  // of all sources
constexpr const char* kNames[kCategoryCount] = {"parameters", "gradients", "optimizer",     "saved",
                                                "transient",  "scratch",   "communication", "staging"};
size_t index(Category category) {
  return static_cast<size_t>(category);
}

// The arena, many megabytes, is traversed at every step: huge pages save most of its address translations,
// which cost double in a virtual machine. This is a hint that the kernel may ignore.
constexpr size_t kLargePage = size_t{2} << 20;
constexpr size_t kLargeFrom = 2 * kLargePage;

class ProcessMemory : public MemorySource {
 public:
  std::byte* allocate(size_t bytes) override {
    const size_t whole = round_up(bytes, Buffer::kAlignment);
    void* data = nullptr;  // aligned_alloc would want whole large pages
    if (bytes < kLargeFrom) {
      data = std::aligned_alloc(Buffer::kAlignment, whole);
    } else {
      if (posix_memalign(&data, kLargePage, whole) != 0) return nullptr;
      madvise(data, whole / kLargePage * kLargePage, MADV_HUGEPAGE);
    }
    return static_cast<std::byte*>(data);
  }
  void release(std::byte* data) override { std::free(data); }
};
}  // namespace

const char* to_string(Category category) {
  return kNames[index(category)];
}

MemorySource& process_memory() {
  static ProcessMemory memory;
  return memory;
}

Buffer::Buffer(size_t bytes, Category category, MemorySource* source)
    : bytes_(bytes), category_(category), source_(source ? source : &process_memory()) {
  if (bytes == 0) return;
  data_ = source_->allocate(bytes);
  VT_REQUIRE(data_, ErrorKind::kMemory, "cannot allocate %zu bytes for %s", bytes, to_string(category));
  count(static_cast<ptrdiff_t>(bytes));
}

Buffer::~Buffer() {
  release();
}

Buffer::Buffer(Buffer&& other) noexcept {
  *this = std::move(other);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  category_ = other.category_;
  source_ = other.source_;
  return *this;
}

void Buffer::release() {
  if (!data_) return;
  count(-static_cast<ptrdiff_t>(bytes_));
  source_->release(data_);
  data_ = nullptr;
  bytes_ = 0;
}

void Buffer::count(ptrdiff_t bytes) {
  g_allocated[index(category_)] += static_cast<size_t>(bytes);
  source_->allocated_[index(category_)] += static_cast<size_t>(bytes);
}

size_t Buffer::allocated(Category category) {
  return g_allocated[index(category)];
}

}  // namespace vitrail
