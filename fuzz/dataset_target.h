// Shared by the fuzzers of dataset files: any exception but vitrail::Error of kind data is a finding.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace vitrail::fuzz {

template <typename Body>
void refuse_as_data_only(const uint8_t* data, size_t size, Body&& body) {
  try {
    body(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData) std::abort();
  }
}

}  // namespace vitrail::fuzz
