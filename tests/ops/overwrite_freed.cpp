// Memory that is given back is overwritten in the tests of ops, so that whoever still refers to it, such as a
// kernel to the node it was prepared for, computes something else. AddressSanitizer sees such a read itself,
// and needs its own allocation functions for that.
#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VT_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define VT_SANITIZED
#endif

#ifndef VT_SANITIZED

void* operator new(size_t bytes) {
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept {
  if (memory) std::memset(memory, 0x7b, malloc_usable_size(memory));
  asm volatile("" : : "r"(memory) : "memory");  // the compiler may not drop what it takes for a dead store
  std::free(memory);
}

void operator delete(void* memory, size_t) noexcept {
  operator delete(memory);
}

#endif
