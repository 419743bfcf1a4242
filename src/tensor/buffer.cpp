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
std::array<std::atomic<size_t>, kCategoryCount> g_allocated{};
constexpr const char* kNames[kCategoryCount] = {"parameters", "gradients", "optimizer",     "saved",
                                                "transient",  "scratch",   "communication", "staging"};
size_t index(Category category) {
  return static_cast<size_t>(category);
}

// The arena, many megabytes, is traversed at every step: huge pages save most of its address translations,
// which cost double in a virtual machine. This is a hint that the kernel may ignore.
constexpr size_t kLargePage = size_t{2} << 20;
constexpr size_t kLargeFrom = 2 * kLargePage;

void* allocate(size_t bytes) {
  if (bytes < kLargeFrom) return std::aligned_alloc(Buffer::kAlignment, round_up(bytes, Buffer::kAlignment));
  const size_t whole = round_up(bytes, Buffer::kAlignment);
  void* data = nullptr;  // aligned_alloc would require a multiple of the huge page
  if (posix_memalign(&data, kLargePage, whole) != 0) return nullptr;
  madvise(data, whole / kLargePage * kLargePage, MADV_HUGEPAGE);
  return data;
}
}  // namespace

const char* to_string(Category category) {
  return kNames[index(category)];
}

Buffer::Buffer(size_t bytes, Category category, MemorySource* source)
    : bytes_(bytes), category_(category), source_(source) {
  if (bytes == 0) return;
  data_ = source ? source->allocate(bytes) : static_cast<std::byte*>(allocate(bytes));
  VT_REQUIRE(data_, ErrorKind::kMemory, "cannot allocate %zu bytes for %s", bytes, to_string(category));
  g_allocated[index(category)] += bytes;
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
  g_allocated[index(category_)] -= bytes_;
  if (source_)
    source_->release(data_);
  else
    std::free(data_);
  data_ = nullptr;
  bytes_ = 0;
}

size_t Buffer::allocated(Category category) {
  return g_allocated[index(category)];
}

}  // namespace vitrail
