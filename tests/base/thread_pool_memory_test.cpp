// A thread pool that finds no memory for one of its threads. Allocations of this program can be made to fail,
// one at a time; sanitizers need allocation functions of their own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "base/thread_pool.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define VT_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VT_SANITIZED
#endif

#ifndef VT_SANITIZED

namespace {
thread_local int allocations_left = -1;  // of this thread, before one fails; -1: none does
}  // namespace

void* operator new(size_t bytes) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace vitrail {
namespace {

// Whichever allocation fails, threads that have been started end, and the error leaves.
TEST(ThreadPoolMemory, NoMemoryForOneMoreThread) {
  int failed = 0;
  for (bool made = false; !made; ++failed) {
    ASSERT_LT(failed, 100);
    allocations_left = failed;
    try {
      const ThreadPool pool(5);
      allocations_left = -1;
      made = true;
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(allocations_left, -1) << "the one failure";
    }
    allocations_left = -1;
  }
  EXPECT_GT(failed, 4) << "each of the four threads takes memory";
}

}  // namespace
}  // namespace vitrail

#endif
