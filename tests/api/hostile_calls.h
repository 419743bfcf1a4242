// What careless programs call with, and what they must get for it.
#pragma once

#include <gtest/gtest.h>
#include <vitrail/vitrail.h>

#include <string>

#include "source_root.h"

namespace hostile {

inline const std::string kModel = VT_SOURCE_DIR "/tests/golden/models/timm_hub";
inline const std::string kImage = VT_SOURCE_DIR "/examples/images/coffee.png";

template <typename Body>
void expect_error(vitrail::ErrorKind kind, const std::string& words, const Body& body) {
  try {
    body();
    ADD_FAILURE() << "expected an error with: " << words;
  } catch (const vitrail::Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    EXPECT_FALSE(error.message().empty());
  }
}

}  // namespace hostile
