// What commands tell about synthetic machines and small models, whole: a number that changes anywhere below
// them is seen. Nothing of it is measured or depends on this host.
#include "base/values.h"
#include "in_process.h"
#include "stored_text.h"

namespace vitrail::cli {
namespace {

struct Told {
  const char* name;
  std::vector<std::vector<std::string>> calls;  // a command and its arguments each
  bool json = true;                             // both forms
};

const std::string kDesk = std::string(VT_SOURCE_DIR) + "/tests/golden/told/desk.json";

const std::string kAppendix = std::string(VT_SOURCE_DIR) + "/tests/golden/deepspeed/seed-003-appendix-b.json";

std::vector<std::string> plan(std::vector<std::string> more) {
  std::vector<std::string> all = {
      "plan", "-m", "vit_tiny_patch16_224", "--image", "64", "--set", "model.depth=4", "--target", kDesk};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}
std::vector<std::string> training(std::vector<std::string> more) {
  std::vector<std::string> all = plan({"--train", "--batch", "8", "--set", "loader.workers=2"});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// The program of two blocks after a pass.
std::vector<std::string> program(const char* pass, std::vector<std::string> more) {
  std::vector<std::string> all =
      training({"--classes", "10", "--set", "model.depth=2", "--dump-after", pass});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

const Told kTold[] = {
    {"plan",
     {plan({"--batch", "4"}),
      plan({"--no-fuse", "--threads", "1"}),
      plan({"--parameters"}),
      {"plan", "-m", "vit_huge_patch14_224", "--batch", "4096", "--target", kDesk}}},
    {"plan_targets",
     {{"plan", "-m", "vit_tiny_patch16_224", "--weights", "rule", "--targets", kDesk},
      {"plan", "-m", "vit_tiny_patch16_224,vit_small_patch16_224", "--weights", "rule", "--targets", kDesk}}},
    {"plan_deepspeed",
     {plan({"--classes", "10", "--set", "loader.workers=2", "--deepspeed", kAppendix}),
      plan({"--classes", "10", "--set", "loader.workers=2", "--deepspeed", kAppendix, "--mesh", "dp=2",
            "--set", "optim.lr=0.5"})}},
    {"plan_training",
     {training({"--classes", "10", "--recompute", "block"}),
      training({"--optimizer", "lamb", "--set", "optim.ema_decay=0.9", "--set", "train.accumulation=3"}),
      training({"--set", "lora.rank=4", "--set", "train.drop_path=0.1"}),
      {"plan", "--train", "-m", "vit_tiny_patch16_224", "--image", "64", "--set", "model.depth=4", "--target",
       kDesk, "--wanted-batch", "64"}}},
    {"plan_meshes",
     {training({"--mesh", "dp=4,tp=3,zero=3"}), training({"--mesh", "dp=2,sp=3,zero=1"}),
      training({"--mesh", "tp=3,tokens_on_tp"}),
      training({"--set", "mesh.pp=2", "--set", "train.accumulation=4", "--set", "mesh.schedule=interleaved",
                "--set", "mesh.virtual_stages=2"}),
      training({"--mesh", "dp=4,zero=3", "--set", "mesh.offload=parameters"}),
      training({"--mesh", "dp=2,zero=1", "--set", "mesh.offload=optimizer"}),
      plan({"--batch", "8", "--mesh", "dp=2,tp=3"})}},
    {"plan_cluster",
     {plan({"--cluster", "dgx-a100", "--nodes", "2", "--devices", "2", "--batch", "8"}),
      plan({"--cluster", "dgx-a100", "--nodes", "4", "--mesh", "dp=32,zero=2", "--batch", "8",
            "--one-device-s", "0.5"}),
      plan(
          {"--cluster", "dgx-a100", "--nodes", "2", "--devices", "3", "--mesh", "dp=2,sp=3", "--batch", "8"}),
      plan({"--cluster", "dgx-a100", "--nodes", "1", "--devices", "3", "--batch", "30000"})}},
    {"data", {{"data stats", "synthetic:3x8x8x4x40"}, {"data check", "synthetic:1x9x7x3x12"}}},
    {"inspect",
     {{"inspect", std::string(VT_SOURCE_DIR) + "/models/deit_tiny_patch16_224", "--stats", "--filter",
       "*layer.1.*"}}},
    {"programs",
     {program("group_updates", {}), program("evaluation", {}),
      program("group_updates", {"--set", "train.dtype=bf16", "--recompute", "block"}),
      program("schedule",
              {"--recompute", "cheap", "--set", "train.dropout=0.1", "--set", "train.drop_path=0.1", "--set",
               "model.qk_norm=true", "--set", "model.layer_scale=true", "--set", "model.pool=mean"}),
      program("group_updates", {"--set", "lora.rank=4", "--set", "lora.mlp=true"}),
      program("update",
              {"--optimizer", "lamb", "--set", "optim.ema_decay=0.9", "--set", "optim.clip_norm=1"}),
      program("update", {"--optimizer", "sgd", "--set", "train.dtype=bf16"})},
     false},
    {"programs_of_ranks",
     {program("group_updates", {"--mesh", "dp=4,zero=3"}), program("update", {"--mesh", "dp=4,zero=3"}),
      program("update", {"--mesh", "dp=2,tp=3,zero=1", "--optimizer", "lamb"}),
      program("group_updates", {"--mesh", "tp=3,tokens_on_tp"}), program("group_updates", {"--mesh", "sp=3"}),
      program("group_updates", {"--mesh", "dp=4,zero=3", "--set", "mesh.offload=parameters"}),
      program("last_micro", {"--mesh", "dp=2,zero=2", "--set", "train.accumulation=2"}),
      program("last_micro", {"--set", "mesh.pp=2", "--set", "train.accumulation=2"})},
     false},
};

std::string text_of(const Told& told) {
  std::string text;
  for (const std::vector<std::string>& call : told.calls)
    for (const bool json : {false, true}) {
      if (json && !told.json) continue;
      const Answer answer = run_in_process(call[0], {call.begin() + 1, call.end()}, json);
      text += "$ " + join(call, " ") + (json ? " --json" : "") + "\n" + answer.out + answer.err + "\n";
    }
  // Why kernels declined is theirs to say, and tested with them.
  for (size_t at; (at = text.find("\"declined\":[")) != std::string::npos;)
    text.erase(at, text.find("],", at) + 2 - at);
  const std::string source = std::string(VT_SOURCE_DIR) + "/";  // may be "./"
  for (size_t at; (at = text.find(source)) != std::string::npos;) text.replace(at, source.size(), "SOURCE/");
  return text;
}

void PrintTo(const Told& told, std::ostream* out) {
  *out << told.name;
}
class ToldWhole : public testing::TestWithParam<Told> {};
TEST_P(ToldWhole, IsTheStoredText) {
  expect_stored(std::string("golden/told/") + GetParam().name + ".txt", text_of(GetParam()));
}
INSTANTIATE_TEST_SUITE_P(Commands, ToldWhole, testing::ValuesIn(kTold),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace vitrail::cli
