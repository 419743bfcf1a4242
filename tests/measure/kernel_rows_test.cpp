// GEMMs and their kernels as texts: what the tuner prints, and which rows of a table's file are taken.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "backend/cpu/host/levels.h"
#include "base/file.h"
#include "measure/kernel_table_file.h"
#include "measure/tuner.h"
#include "temp_folder.h"
#include "thrown.h"

namespace vitrail {
namespace {

TEST(GemmText, IsReadAndWritten) {
  EXPECT_EQ(parse_gemm("1048576x1x7"), (GemmSize{1 << 20, 1, 7}));
  EXPECT_EQ(size_text({197, 2304, 768}), "197x2304x768");
  for (const char* bad :
       {"1048577x1x1", "0x1x1", "1x0x1", "1x1", "1x1x1x1", "x1x1", "1x1x", "axbxc", "", "1x1x1x"})
    EXPECT_TRUE(thrown_by([&] {
                  parse_gemm(bad);
                }).starts_with("usage: --gemm expects MxNxK, each from 1 to 1048576, not "))
        << bad;
  const std::vector<KernelSpeed> speeds = {{"a", 12.34, true}, {"b", 5, false}};
  EXPECT_EQ(row_json({3, 4, 5}, speeds),
            nlohmann::ordered_json::parse(R"({"m": 3, "n": 4, "k": 5, "gflops": {"a": 12.34, "b": 5.0}})"));
  EXPECT_EQ(row_cells({3, 4, 5}, speeds), (std::vector<std::string>{"3x4x5", "a 12.3", "b 5.0"}));
}

TEST(GemmText, OnlyAClearLeadCounts) {
  const auto first = [](double second) {
    return ranked({{"a", 100, false}, {"b", second, false}})[0].kernel;
  };
  EXPECT_EQ(first(103), "a") << "3 % are noise";
  EXPECT_EQ(first(103.1), "b");
}

TEST(GemmText, KernelsAreMeasuredInGflops) {
  const DeviceInfo device = []() {
    DeviceInfo info;
    info.threads = 1, info.isa = static_cast<int>(best_isa());
    return info;
  }();
  ThreadPool pool(1);
  const std::vector<KernelSpeed> speeds = measure_kernels({64, 64, 64}, device, pool, 2);
  ASSERT_FALSE(speeds.empty());
  for (const KernelSpeed& speed : speeds) {
    EXPECT_GT(speed.gflops, 0.01) << speed.kernel;
    EXPECT_LT(speed.gflops, 10000) << speed.kernel;
  }
}

// A row of a file with one value changed; what is refused is named.
TEST(KernelRows, LimitsAreMetExactly) {
  const TempFolder temp;
  const std::string file = (temp.path() / "t.json").string();
  KernelTable table;
  table.set({{"linear", 5, 6, 7, 1, static_cast<int>(best_isa())}, {"gemm that packs"}});
  table.set({{"linear", 8, 6, 7, 2, static_cast<int>(best_isa())}, {"gemm that packs"}});
  write_kernels(file, table);
  const nlohmann::json good = nlohmann::json::parse(read_file(file, 1 << 20));
  EXPECT_EQ(read_kernels(file).note, "kernels by " + file + ", 2 rows");
  EXPECT_EQ(read_kernels(file).table->hash(), table.hash());
  EXPECT_EQ(good["rows"][0]["op"], "linear");
  EXPECT_EQ(good["rows"][0]["n"], 6);
  EXPECT_EQ(good["rows"][0]["k"], 7);
  EXPECT_EQ(good["rows"][1]["threads"], 2);
  const std::string text = read_file(file, 1 << 20);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << "each row has a line of its own";
  const auto note = [&](const char* pointer, const nlohmann::json& value) {
    nlohmann::json changed = good;
    changed[nlohmann::json::json_pointer(pointer)] = value;
    const KernelsFile read = read_kernels(temp.file("c.json", changed.dump()));
    return read.table ? std::to_string(read.table->rows().size()) + " rows" : read.note;
  };
  for (const char* key : {"/rows/0/m", "/rows/0/n", "/rows/0/k", "/rows/0/threads"}) {
    const std::string name = std::string(key).substr(8);
    EXPECT_EQ(note(key, 1), "2 rows");
    EXPECT_EQ(note(key, int64_t{1} << 40), "2 rows") << key;
    EXPECT_NE(note(key, (int64_t{1} << 40) + 1)
                  .find("'" + name + "' is out of range; vitrail bench tune makes a new one"),
              std::string::npos)
        << key;
    EXPECT_NE(note(key, 0).find("'" + name + "' is out of range"), std::string::npos) << key;
    EXPECT_NE(note(key, 1.5).find("'" + name + "' is missing or of the wrong kind"), std::string::npos)
        << key;
  }
  EXPECT_EQ(note("/rows/0/isa", "avx9000"), "1 rows") << "what this processor lacks is left out";
  EXPECT_NE(note("/rows/0/kernels", {1}).find("a kernel is no name"), std::string::npos);
  EXPECT_NE(note("/rows/0/kernels", {"magic"})
                .find("names the kernel \"magic\", which this version of Vitrail does not have"),
            std::string::npos);
  const std::string broken = temp.file("broken.json", "{");
  EXPECT_TRUE(read_kernels(broken).note.starts_with(broken + " is not used: "));
}

TEST(KernelRows, OfTheUserComeFirst) {
  const TempFolder temp;
  const TunedDevice here = this_processor();
  EXPECT_STREQ(here.tables().key, "processor");
  EXPECT_EQ(usual_kernels(temp.path().string(), here).table, nullptr);
  KernelTable table;
  table.set({{"linear", 5, 6, 7, 1, static_cast<int>(best_isa())}, {"gemm that packs"}});
  const std::string own = own_kernels_path(temp.path().string());
  write_kernels(own, table);
  EXPECT_EQ(usual_kernels(temp.path().string(), here).table->hash(), table.hash());
  EXPECT_EQ(kernels_for("cpu", "auto", temp.path().string()).table->hash(), table.hash());
  EXPECT_EQ(kernels_for("cpu", "none", temp.path().string()).table, nullptr);
  EXPECT_EQ(kernels_for("cpu", own, "").table->hash(), table.hash());
  const std::string broken = temp.file("broken.json", "{}");
  EXPECT_EQ(
      thrown_by([&] { kernels_for("cpu", broken, ""); }),
      "data: --kernels " + broken +
          ": 'format' is missing or of the wrong kind | vitrail bench tune --out FILE makes one for this "
          "machine; --kernels none does without");
  // A new table begins with the file in its place, else with the usual one.
  EXPECT_EQ(kernels_to_extend(own, "", here).rows().size(), 1u);
  const std::string nowhere = (temp.path() / "nowhere.json").string();
  EXPECT_EQ(kernels_to_extend(nowhere, temp.path().string(), here).rows().size(), 1u);
  EXPECT_EQ(kernels_to_extend(nowhere, "", here).rows().size(), 0u);
  EXPECT_EQ(kernels_to_extend(broken, temp.path().string(), here).rows().size(), 0u)
      << "not those of another file";
}

}  // namespace
}  // namespace vitrail
