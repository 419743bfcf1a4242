// The paper's table beside its program: ratios worked out by hand, and texts that are not its output.
#include "measure/seed_table.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace vitrail {
namespace {

// Every part at 100 MMAC/s a thread; heads of 0.4 GMAC on two cores, then 1.4 GMAC on one.
std::string told(const char* attention = "38.0", const char* last = "last layer norm") {
  std::string rows;
  const std::vector<std::array<std::string, 3>> all = {
      {"embeddings", "1.0", "1e8"},      {"layer norm 1", "0.02", "0"},
      {"attention", attention, "6.2e9"}, {"residual 1", "0.001", "0"},
      {"layer norm 2", "0.02", "0"},     {"MLP", "9.0", "9e8"},
      {"residual 2", "0.001", "0"},      {last, "0.02", "0"}};
  for (const auto& [name, seconds, macs] : all)
    rows += (rows.empty() ? "" : ",") +
            ("{\"name\":\"" + name + "\",\"seconds\":" + seconds + ",\"macs\":" + macs + "}");
  return "{\"cores\":2,\"layers\":1,\"heads\":12,\"head_macs\":4e8,\"output_macs\":1.4e9,\"rows\":[" + rows +
         "]}";
}

TEST(SeedTable, ItsTimesAreExplained) {
  const SeedTimes seed = read_seed_times(told());
  EXPECT_DOUBLE_EQ(seed.rate(), 1e8);
  EXPECT_DOUBLE_EQ(seed.predicted_attention(), 12 * 4 / 2.0 + 14);
  const std::string text = seed_explanation(seed);
  EXPECT_NE(text.find("38.0 s of attention predicted, 38.0 s measured"), std::string::npos) << text;
  EXPECT_NE(
      text.find(
          "= 38.0 : 9.00 : 1; by the arithmetic on 2 cores 38.0 : 9.00 : 1; published (8 cores) 17.8 : 8.07"),
      std::string::npos)
      << text;
}

TEST(SeedTable, MoreCoresThanHeadsDoNotHelp) {
  SeedTimes seed = read_seed_times(told());
  seed.cores = 64;
  EXPECT_DOUBLE_EQ(seed.predicted_attention(), 4 + 14);
  EXPECT_NE(seed_explanation(seed).find("0.400 GMAC a head, 4.0 s for all on 12 cores."), std::string::npos)
      << seed_explanation(seed);
}

TEST(SeedTable, OwnTimesAreThoseOfALayer) {
  ProfileRow mlp{.name = "MLP", .kind = "", .kernel = ""};
  mlp.seconds = 0.06, mlp.flops = 12e9, mlp.layer_seconds = {0.01, 0.02, 0.03};
  const std::string table = seed_table(read_seed_times(told()), {mlp});
  EXPECT_NE(table.find("450 x"), std::string::npos) << table;  // 9 s against the median layer's 0.02 s
  EXPECT_NE(table.find("2.000"), std::string::npos) << table;  // GMAC a layer
}

TEST(SeedTable, OtherTextsAreRefused) {
  for (const std::string& text : {std::string(), std::string("[]"), std::string("{}"), told().substr(0, 90),
                                  told("\"x\""), told("0"), told("38", "norm")})
    EXPECT_THROW(read_seed_times(text), Error) << text;
}

}  // namespace
}  // namespace vitrail
