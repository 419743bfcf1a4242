// A cache file: one block of bytes under an identity text that states exactly what it was made from. It is
// checked in full before use: length, identity, a checksum of the header and one of every piece. Knows
// nothing of what the bytes mean.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/thread_pool.h"

namespace vitrail {

// Fills `target` and returns nothing, or returns why the file cannot be used: it is absent, truncated,
// damaged, older, or of another identity. `target` may then hold anything. The file's content never makes it
// throw.
std::string read_cache_file(const std::string& path, std::string_view identity, std::span<std::byte> target,
                            ThreadPool& pool);

// Writes atomically: readers see the old file or the new one, and after a failure, Error(kWrite), nothing is
// left.
void write_cache_file(const std::string& path, std::string_view identity, std::span<const std::byte> content,
                      ThreadPool& pool);

}  // namespace vitrail
