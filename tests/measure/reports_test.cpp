// What is told of a machine, of a dataset and of measurements on a device: each fact in its place.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "backend/cuda/kernels.h"
#include "data/fake_dataset.h"
#include "measure/calibrate.h"
#include "measure/calibrate_steps.h"
#include "measure/compare_models.h"
#include "measure/dataset_report.h"
#include "measure/device_check.h"
#include "measure/system_report.h"
#include "plan/devices.h"
#include "stored_text.h"
#include "thrown.h"

namespace vitrail {
namespace {

using nlohmann::ordered_json;

// Measured once: the peak takes a tenth of a second.
SystemReport made_report() {
  static const SystemReport here(
      {}, {"/models", "/more"}, {.problem = "", .library = "Open MPI", .plugin = "p.so", .mpirun = "mpirun"});
  SystemReport r = here;
  r.machine = {.processor = "Z80",
               .isa = {"avx", "fma"},
               .isa_missing = {"amx_tile"},
               .cores = 8,
               .usable = 6,
               .caches = {{"L1d", 32 << 10, 1}, {"L3", 8 << 20, 4}},
               .memory_bytes = uint64_t{4} << 30,
               .memory_available_bytes = uint64_t{3} << 30,
               .memory_where = "free here"};
  r.isa = "avx2", r.isa_levels = {"baseline", "avx2"}, r.peak_gflops = 150,
  r.device_files = {"mine", "yours"};
  r.nccl = {.problem = "no NCCL", .version = "2.1", .path = "lib.so"};
  r.backends = {{"cpu", true, "fast"}, {"cuda", false, "no driver"}};
  r.libraries = {{"zlib", "npz files", "zlib1g", true, true, "1.2", "/lib/z.so"},
                 {"libpng", "PNG images", "libpng16-16", true, false, "", ""},
                 {"oneDNN", "GEMMs", "libdnnl2", false, false, "", ""}};
  r.models = {}, r.folder = "/here", r.disk_bytes = uint64_t{5} << 30;
  r.version = "9.9", r.build_type = "Release", r.compiler = "g++ 1", r.optimised = true;
  return r;
}

TEST(SystemReport, SectionsTellMachineAndBuild) {
  SystemReport r = made_report();
  const auto sections = sections_of(r);
  ASSERT_EQ(sections.size(), 5u);
  EXPECT_EQ(sections[0].second,
            "  processor     Z80\n"
            "  instructions  avx fma  (without amx_tile)\n"
            "  kernels       baseline, avx2 (used); not tuned: vitrail bench tune\n"
            "  peak          150 GFLOP/s in f32, measured with avx2 on 6 threads\n"
            "  device file   mine, yours: plan --target predicts with it\n"
            "  cores         6 usable of 8\n"
            "  caches        L1d 32.0 KiB, L3 8.00 MiB (shared by 4)\n"
            "  memory        3.00 GiB of 4.00 GiB, free here\n"
            "  disk          5.00 GiB free in /here\n");
  EXPECT_NE(sections[1].second.find("zlib     1.2        npz files   /lib/z.so"), std::string::npos)
      << sections[1].second;
  EXPECT_NE(sections[1].second.find("libpng   not found  PNG images\n"), std::string::npos)
      << sections[1].second;
  EXPECT_NE(sections[1].second.find("not found  GEMMs       optional: apt install libdnnl2"),
            std::string::npos);
  EXPECT_EQ(sections[2].second, "  cpu   yes: fast\n  cuda  no: no driver\n");
  EXPECT_EQ(sections[3].second, "  none found\n");
  EXPECT_EQ(r.missing(),
            (std::vector<std::string>{
                "libpng (PNG images): apt install libpng16-16",
                "bundled models; looked in /models, /more; VITRAIL_MODELS names another folder"}));
  EXPECT_EQ(sections[4].second, "  " + r.missing()[0] + "\n  " + r.missing()[1] + "\n");
  r.optimised = false, r.libraries.clear(), r.machine.caches.clear(), r.machine.isa_missing.clear();
  r.models = {{"tiny", "/models/tiny"}}, r.tuned.note = "kernels by x", r.device_files.clear();
  EXPECT_EQ(r.missing(),
            std::vector<std::string>{"an optimised build: this one is several times slower; use make build"});
  const auto other = sections_of(r);
  for (const char* part : {"caches        unknown\n", "instructions  avx fma\n", "(used); kernels by x\n",
                           "none describes this machine: vitrail bench calibrate\n"})
    EXPECT_NE(other[0].second.find(part), std::string::npos) << part << other[0].second;
  EXPECT_EQ(other[3].second, "  tiny  /models/tiny\n");
  r.optimised = true;
  EXPECT_EQ(sections_of(r)[4].second, "  nothing\n");
}

TEST(SystemReport, JsonTellsTheSame) {
  const ordered_json json = to_json(made_report());
  EXPECT_EQ(json["version"], "9.9");
  EXPECT_EQ(json["build"], ordered_json::parse(R"({"type": "Release", "compiler": "g++ 1"})"));
  EXPECT_EQ(json["cpu"],
            ordered_json::parse(R"({"model": "Z80", "isa": ["avx", "fma"], "cores": 8, "usable": 6,
      "caches": [{"name": "L1d", "bytes": 32768, "shared_by": 1}, {"name": "L3", "bytes": 8388608, "shared_by": 4}],
      "kernels": "avx2", "tuned": false, "peak_gflops": 150.0})"));
  EXPECT_EQ(json["memory"],
            ordered_json::parse(R"({"total": 4294967296, "available": 3221225472, "bound": "free here"})"));
  EXPECT_EQ(json["device_files"], ordered_json::parse(R"(["mine", "yours"])"));
  EXPECT_EQ(json["disk"], ordered_json::parse(R"({"path": "/here", "free": 5368709120})"));
  EXPECT_EQ(json["libraries"][2], ordered_json::parse(R"({"name": "oneDNN", "found": false, "needed": false,
      "version": "", "for": "GEMMs", "package": "libdnnl2"})"));
  EXPECT_EQ(json["backends"], ordered_json::parse(R"({"cpu": true, "cuda": false})"));
  EXPECT_EQ(json["mpi"], ordered_json::parse(R"({"problem": "", "library": "Open MPI", "plugin": "p.so",
      "mpirun": "mpirun", "came_along": false})"));
  EXPECT_EQ(json["nccl"],
            ordered_json::parse(R"({"problem": "no NCCL", "version": "2.1", "path": "lib.so"})"));
  EXPECT_EQ(json["missing"].size(), 2u);
  SystemReport tuned = made_report();
  tuned.models = {{"tiny", "/models/tiny-1"}}, tuned.tuned.note = "kernels of another machine";
  EXPECT_EQ(to_json(tuned)["models"], ordered_json::parse(R"([{"name": "tiny", "path": "/models/tiny-1"}])"));
  EXPECT_EQ(to_json(tuned)["cpu"]["tuned"], false) << "a table that is not used has a note, too";
  tuned.tuned.table = std::make_shared<KernelTable>();
  EXPECT_EQ(to_json(tuned)["cpu"]["tuned"], true);
}

TEST(SystemReport, SaysHowMpiIsStarted) {
  const auto note = [](const MpiReport& mpi) {
    const SystemReport r({}, {}, mpi);
    EXPECT_STREQ(r.backends[3].name, "mpi");
    EXPECT_EQ(r.backends[3].usable, mpi.problem.empty());
    EXPECT_TRUE(r.backends[0].usable && r.backends[1].usable);
    EXPECT_GT(r.peak_gflops, 0);
    EXPECT_GT(r.disk_bytes, 0u);
    return r.backends[3].note;
  };
  EXPECT_EQ(note({.problem = "", .library = "M", .plugin = "p", .mpirun = "/m", .came_along = true}),
            "M (p), by what came along, for this host alone, /m");
  EXPECT_TRUE(note({.problem = "", .library = "M", .plugin = "p", .mpirun = ""})
                  .starts_with("M (p), no mpirun in PATH: "));
  EXPECT_EQ(note({.problem = "", .library = "M", .plugin = "p", .mpirun = "/m"}), "M (p), by /m");
  EXPECT_EQ(note({.problem = "no MPI", .library = "", .plugin = "", .mpirun = ""}), "no MPI");
}

TEST(SystemReport, SaysWhyThereIsNoNccl) {
  const SystemReport r({}, {}, {}, [](const char* name) {
    return std::string(name) == kNcclVariable ? "/nowhere/libnccl.so.2" : nullptr;
  });
  EXPECT_STREQ(r.backends[4].name, "nccl");
  EXPECT_FALSE(r.backends[4].usable);
  EXPECT_TRUE(r.backends[4].note.starts_with("/nowhere/libnccl.so.2 is not there")) << r.backends[4].note;
}

// Three images of class 0 and one of class 1, of two sizes.
TEST(DatasetReport, TellsClassesAndSizes) {
  test::FakeDataset data(4, 2);
  data.set_labels(1, {0});
  DatasetReport report{"mine", "train", data, {}, {3, 1}};
  EXPECT_FALSE(to_json(report).contains("width"));
  EXPECT_EQ(to_text(report, 9).find("width"), std::string::npos);
  ImageSums small{.height = 10, .width = 20, .channels = 1}, large{.height = 30, .width = 20, .channels = 3};
  report.found.images.add(small), report.found.images.add(large);
  report.found.looked_at = 3, report.found.bad = 1;
  const ordered_json json = to_json(report);
  EXPECT_EQ(json["data"], "mine");
  EXPECT_EQ(json["part"], "train");
  EXPECT_EQ(json["count"], 4);
  EXPECT_EQ(json["looked_at"], 3);
  EXPECT_EQ(json["bad"], 1);
  EXPECT_EQ(json["multi_label"], false);
  EXPECT_EQ(json["classes"],
            ordered_json::parse(R"([{"name": "class0", "count": 3}, {"name": "class1", "count": 1}])"));
  EXPECT_EQ(json["height"], ordered_json::parse(R"({"min": 10.0, "median": 20.0, "max": 30.0})"));
  EXPECT_EQ(json["width"]["max"], 20);
  EXPECT_EQ(json["channels"], 3);
  EXPECT_EQ(json["fingerprint"].get<std::string>().size(), 16u);
  const std::string text = to_text(report, 1);
  for (const char* part :
       {"  samples  4\n", "  classes  2\n", "  width    20\n", "  height   10 to 30, median 20\n",
        "  mean     0.0000, 0.0000, 0.0000\n", "class0        3  75.00 %  ██████████████████████████████",
        "  and 1 more (--classes)\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
  EXPECT_NE(to_text(report, 2).find("class1        1  25.00 %  ██████████\n"), std::string::npos)
      << to_text(report, 2);
  EXPECT_EQ(to_text(report, 2).find("more"), std::string::npos);
  data.set_multi_label();
  EXPECT_NE(to_text(report, 2).find("4, several labels each"), std::string::npos);
}

TEST(DeviceCheck, ErrorsAreOfThePrediction) {
  const std::vector<CheckedStep> steps = {{"a", 1.5, 1}, {"b", 0.75, 1}, {"c", 2, 2}};
  const ordered_json json = to_json(steps);
  EXPECT_EQ(json["median_error"], 0.25);
  EXPECT_EQ(json["worst_error"], 0.5);
  EXPECT_EQ(json["steps"][1],
            ordered_json::parse(R"({"step": "b", "predicted_s": 0.75, "measured_s": 1.0, "error": -0.25})"));
  const std::string text = to_text(steps);
  for (const char* part : {"1.50 s    1.00 s  +50.0 %", "750 ms    1.00 s  -25.0 %",
                           "\nThe file is off by 25.0 % in the median, by 50.0 % at worst.\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
}

TEST(Calibration, StepsCoverADeviceAndABriefListAnEighth) {
  const DeviceInfo cpu = device_here("cpu", 2, ""), gpu = planned_cuda_device("synthetic", 90);
  EXPECT_EQ(calibration_types(cpu), (std::vector<std::string>{"f32", "bf16", "int8"}));
  EXPECT_EQ(calibration_types(gpu), (std::vector<std::string>{"f32", "tf32", "bf16", "f16", "fp8"}));
  // Batches on a processor: 7 of Tiny, 5 of Small, 2 of Base/32, 6 of Base/16, 3 of Large, 2 of Huge; on a
  // GPU 3 + 1 + 1 + 3 + 1 + 2 + 4 + 1 + 1 + 3 + 1 + 3. Each for inference and training; int8 trains nothing.
  EXPECT_EQ(calibration_steps(cpu, {"f32"}, false).size(), 50u);
  EXPECT_EQ(calibration_steps(cpu, {"f32", "int8"}, false).size(), 75u);
  EXPECT_EQ(calibration_steps(gpu, {"bf16"}, false).size(), 48u);
  std::vector<std::string> texts;
  for (const CalibrationStep& step : calibration_steps(cpu, {"f32"}, true)) texts.push_back(step.text());
  EXPECT_EQ(texts,
            (std::vector<std::string>{"vit_tiny_patch16_224 at 224 px, 12 blocks, batch 8, inference, f32",
                                      "vit_tiny_patch16_224 at 224 px, 12 blocks, batch 8, training, f32",
                                      "vit_base_patch16_224 at 224 px, 3 blocks, batch 8, inference, f32",
                                      "vit_base_patch16_224 at 224 px, 3 blocks, batch 8, training, f32",
                                      "vit_huge_patch14_224 at 224 px, 2 blocks, batch 3, inference, f32",
                                      "vit_huge_patch14_224 at 224 px, 2 blocks, batch 3, training, f32"}));
}

// Which models, at which sizes and batches, files of other machines were made with.
TEST(Calibration, StepsAreTheStoredOnes) {
  std::string text;
  for (const DeviceInfo& device : {device_here("cpu", 1, ""), planned_cuda_device("synthetic", 90)})
    for (const bool brief : {true, false}) {
      text += strf("%s, %s\n", device.backend.c_str(), brief ? "brief" : "whole");
      for (const CalibrationStep& step : calibration_steps(device, {"f32"}, brief))
        text += "  " + step.text() + "\n";
    }
  expect_stored("golden/told/calibration.txt", text);
}

TEST(Calibration, CountsItsMeasurements) {
  Calibration c{.device = device_here("cpu", 2, "")};
  EXPECT_EQ(c.thread_counts(), (std::vector<int>{1, 2}));
  EXPECT_EQ(c.types().size(), 3u);
  // Two peaks and three GEMMs of three types, and 50 + 50 + 25 steps, for one thread and for two.
  EXPECT_EQ(c.measurements(), 2 * (2 + 9 + 125));
  c.budget = 0;
  EXPECT_EQ(c.measurements(), 2 * 11);
  c.threads = {1, 3, 4}, c.gemms.resize(1);
  EXPECT_EQ(c.measurements(), 3 * 5);
  c.device.threads = 1, c.threads.clear();
  EXPECT_EQ(c.thread_counts(), std::vector<int>{1});
  c.device = planned_cuda_device("synthetic", 90), c.dtypes = {"bf16"}, c.budget = 1;
  EXPECT_EQ(c.thread_counts(), std::vector<int>{1});
  EXPECT_EQ(c.measurements(), 49);
  EXPECT_EQ(calibration_gemms(),
            (std::vector<GemmSize>{{50, 768, 192}, {197, 2304, 768}, {1576, 1024, 4096}}));
}

TEST(CompareModels, TellsTheFirstLayerInTextAndJson) {
  ModelComparison found{
      .facts = {"depth"}, .layers = {{"embed", 0.5, 0.125}, {"logits", 2, 0.5}}, .first = "logits"};
  EXPECT_EQ(verdict_of(found, 0.25), "A and B differ from logits on, by more than 0.25 of its values");
  EXPECT_EQ(to_json(found, 0.25), ordered_json::parse(R"({"same": false,
      "verdict": "A and B differ from logits on, by more than 0.25 of its values", "tolerance": 0.25, "first": "logits",
      "card": ["depth"], "layers": [{"name": "embed", "max_difference": 0.5, "relative": 0.125},
                                    {"name": "logits", "max_difference": 2.0, "relative": 0.5}]})"));
  const std::string table = layer_table(found.layers, 0.125);
  EXPECT_NE(table.find("0.5     0.125\n"), std::string::npos) << "exactly the tolerance is the same\n"
                                                              << table;
  EXPECT_NE(table.find("2       0.5  differs\n"), std::string::npos) << table;
  found.first.clear();
  EXPECT_EQ(verdict_of(found, 0.25), "A and B compute the same");
  EXPECT_TRUE(to_json(found, 0.25)["first"].is_null());
  EXPECT_EQ(to_json(found, 0.25)["same"], true);
  EXPECT_EQ(difference_of("a", {0, 0}, {0.5, 0}).relative, 0.5 / 1e-30) << "nothing to compare with";
  EXPECT_EQ(difference_of("a", {INFINITY, 4}, {INFINITY, 2}).relative, 0.5);
}

}  // namespace
}  // namespace vitrail
