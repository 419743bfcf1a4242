// A stream of images, measured: its figures fit each other, whatever they are.
#include "measure/stream_bench.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "source_root.h"

namespace vitrail {
namespace {

TEST(StreamBench, FiguresFitEachOther) {
  const auto model = open_model(VT_SOURCE_DIR "/tests/golden/models/hf_single");
  const std::vector<std::string> paths(3, VT_SOURCE_DIR "/tests/golden/images/grey.jpg");
  StreamBench bench(*model, {.threads = 1, .batch = 2}, paths, "--threads ");
  for (int i = 0; i < 3; ++i) bench.round();
  const nlohmann::ordered_json json = bench.to_json();
  const auto median = [&](const char* key) { return spread_of(json[key].get<std::vector<double>>()).median; };
  const double decode = median("decode_seconds"), compute = median("compute_seconds"),
               both = median("both_seconds");
  EXPECT_EQ(json["both_seconds"].size(), 3u);
  EXPECT_DOUBLE_EQ(json["img_per_s"].get<double>(), 3 / both);
  EXPECT_DOUBLE_EQ(json["ratio_to_slower"].get<double>(), both / std::max(decode, compute));
  EXPECT_DOUBLE_EQ(json["ratio_to_sum"].get<double>(), both / (decode + compute));
  EXPECT_TRUE(bench.to_text().starts_with("images            3, batch 2, on cpu (")) << bench.to_text();
  EXPECT_NE(bench.to_text().find("; medians of 3\n"), std::string::npos);
}

}  // namespace
}  // namespace vitrail
