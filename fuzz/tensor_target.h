// Shared by the weight-file fuzzers: runs a reader and reads every tensor it accepts; any exception but
// vitrail::Error of kind data is a finding.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/tensor_source.h"

namespace vitrail::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

template <typename Body>
void expect_data_errors_only(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData) std::abort();
  }
}

// Accepted tensors must not be larger than the input explains.
inline void read_all(const TensorSource& source, size_t max_bytes) {
  std::vector<std::byte> target;
  for (size_t i = 0; i < source.tensors().size(); ++i) {
    if (source.tensors()[i].bytes > max_bytes) std::abort();
    target.resize(source.tensors()[i].bytes);
    expect_data_errors_only([&] { source.read(i, target); });
    const size_t half = target.size() / 2;
    expect_data_errors_only([&] {
      source.read_part(i, 0, std::span(target).first(half));
      source.read_part(i, half, std::span(target).subspan(half));
    });
  }
}

}  // namespace vitrail::fuzz
