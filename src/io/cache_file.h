// A file that holds what can be made again: one block of bytes under a text that says exactly what it was
// made from. Checked in full before it is believed: length, text, a checksum of the header and one of every
// piece. Knows nothing of what the bytes mean.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/thread_pool.h"

namespace vitrail {

// Fills `target` and returns nothing, or returns why the file cannot serve: it is absent, cut short, damaged,
// older, or of something else. `target` may then hold anything. Never throws for what the file holds.
std::string read_cache_file(const std::string& path, std::string_view identity, std::span<std::byte> target,
                            ThreadPool& pool);

// Atomic: readers see the file before or the file after, and on failure, Error(kWrite), nothing is left.
void write_cache_file(const std::string& path, std::string_view identity, std::span<const std::byte> content,
                      ThreadPool& pool);

}  // namespace vitrail
