// What the program writes, compared with texts that are kept: every word and every number of it.
// VITRAIL_WRITE_GOLDENS writes them anew, for a reader to judge what changed.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "source_root.h"

namespace vitrail {

// `name` lies below tests, as passes/golden/dp.txt.
inline void expect_stored(const std::string& name, const std::string& text) {
  const std::string path = std::string(VT_SOURCE_DIR) + "/tests/" + name;
  if (std::getenv("VITRAIL_WRITE_GOLDENS")) std::ofstream(path) << text;
  std::stringstream stored;
  stored << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, stored.str()) << path;
}

// What of a page its data decide, up to `end`; a line for each piece, so that a difference is found.
inline std::string body_of(const std::string& page, const char* end = "<script") {
  const size_t begin = page.find("<body");
  std::string body = page.substr(begin, page.find(end) - begin);
  for (size_t at = 0; (at = body.find("><", at)) != std::string::npos; at += 2) body.insert(at + 1, "\n");
  return body;
}

}  // namespace vitrail
