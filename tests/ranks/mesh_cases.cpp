#include "mesh_cases.h"

#include <set>

#include "train/balance.h"

namespace vitrail {

namespace {

using StepChange = std::function<void(StepConfig&)>;

void tokens_on_tp(StepConfig& step) {
  step.distribution.tokens_on_tp = true;
}
void recompute_blocks(StepConfig& step) {
  step.recompute = {Recompute::kBlock, 1};
}
void recompute_mlps(StepConfig& step) {
  step.recompute = {Recompute::kMlp, 1};
}
void recompute_norms(StepConfig& step) {
  step.recompute = {Recompute::kNorms, 1};
}
void recompute_cheap(StepConfig& step) {
  step.recompute = {Recompute::kCheap, 1};
}
StepChange zero(int stage, size_t bucket_bytes = 20000) {
  return [=](StepConfig& step) { step.zero = stage, step.bucket_bytes = bucket_bytes; };
}
void whole_sums(StepConfig& step) {
  step.whole_sums = true;
}
StepChange cut(const std::vector<CutTable>& tables) {
  return [=](StepConfig& step) { step.distribution.cuts = tables; };
}
// Shares by hand, of evaluations too.
StepChange balance(const std::vector<int64_t>& shares) {
  return [=](StepConfig& step) { step.distribution.cuts = cuts_by_shares(shares, step.eval_batch); };
}
StepChange both(const StepChange& a, const StepChange& b) {
  return [=](StepConfig& step) { a(step), b(step); };
}

void lora(StepConfig& step) {
  step.lora = {.rank = 4, .alpha = 8, .mlp = true};
}
void lamb(StepConfig& step) {
  step.optim.name = "lamb";
}
// Only what every rank of tp has is trained.
void probe(StepConfig& step) {
  step.trained = {{"head.", {}, 1, 0}};
}
void odd_mlp(StepConfig& step) {
  step.model.mlp = 31;
}
// Nothing is dropped: what follows an exchange is one pass over rows.
void still(StepConfig& step) {
  step.dropout = step.drop_path = 0;
}
// What a plain model leaves out: norms of q and k, scaled branches, mean pooling, no class token.
void all_parts(StepConfig& step) {
  VitConfig& m = step.model;
  m.qk_norm = m.layer_scale = true;
  m.pool = Pool::kMean, m.norm_place = NormPlace::kAfterPool, m.class_token = false;
}

constexpr MeshModel kLora = {"lora", lora}, kLamb = {"lamb", lamb}, kAllParts = {"all_parts", all_parts},
                    kStill = {"still", still}, kProbe = {"probe", probe}, kOddMlp = {"odd_mlp", odd_mlp},
                    kOddLora = {"odd_lora", [](StepConfig&s) { odd_mlp(s), lora(s); }};
constexpr MeshModel kWide = {"wide", widen},
                    kWideLamb = {"wide_lamb", [](StepConfig&s) { widen(s), lamb(s); }},
                    kWideLora = {"wide_lora", [](StepConfig&s) { widen(s), lora(s); }};

}  // namespace

std::vector<MeshCase> narrow_cases() {
  return {
      {"dp2", {2, 1, 1}},
      {"dp3", {3, 1, 1}},
      {"dp8", {8, 1, 1}},
      {"dp5_uneven", {5, 1, 1}},
      {"dp2_accumulated", {2, 1, 1}, {}, 4},
      {"dp2_recomputed", {2, 1, 1}, recompute_blocks},
      {"tp2", {1, 2, 1}},
      {"tp4", {1, 4, 1}},
      {"tp3_uneven", {1, 3, 1}},
      {"tp2_tokens", {1, 2, 1}, tokens_on_tp},
      {"tp4_tokens", {1, 4, 1}, tokens_on_tp},
      {"sp2", {1, 1, 2}},
      {"sp3", {1, 1, 3}},
      {"dp2_tp2", {2, 2, 1}},
      {"dp2_tp2_tokens_recomputed", {2, 2, 1}, both(tokens_on_tp, recompute_blocks)},
      {"dp2_sp2_tp2", {2, 2, 2}},
      {"dp3_lamb", {3, 1, 1}, {}, 1, kLamb},
      {"dp2_small_buckets", {2, 1, 1}, zero(0, 5000)},
      {"zero1_dp2", {2, 1, 1}, zero(1)},
      {"zero1_dp3_accumulated", {3, 1, 1}, zero(1), 2},
      {"zero2_dp2", {2, 1, 1}, zero(2)},
      {"zero2_dp4_accumulated", {4, 1, 1}, zero(2), 2},
      {"zero3_dp2", {2, 1, 1}, zero(3)},
      {"zero3_dp3_recomputed", {3, 1, 1}, both(zero(3), recompute_blocks)},
      {"zero3_dp4_accumulated", {4, 1, 1}, zero(3), 2},
      {"zero1_lamb", {2, 1, 1}, zero(1), 1, kLamb},
      {"zero3_lamb", {3, 1, 1}, zero(3), 1, kLamb},
      {"tp2_lamb", {1, 2, 1}, {}, 1, kLamb},
      {"zero2_tp2_lamb", {2, 2, 1}, zero(2), 1, kLamb},
      {"zero2_lora", {2, 1, 1}, zero(2), 1, kLora},
      {"zero3_lora", {2, 1, 1}, zero(3), 1, kLora},
      {"zero1_dp2_tp2", {2, 2, 1}, zero(1)},
      {"zero3_dp2_tp2_tokens", {2, 2, 1}, both(zero(3), tokens_on_tp)},
      {"zero2_dp2_sp2", {2, 1, 2}, zero(2)},
      {"dp2_mlps_recomputed", {2, 1, 1}, recompute_mlps},
      {"tp2_lora", {1, 2, 1}, {}, 1, kLora},
      {"tp2_tokens_lora", {1, 2, 1}, tokens_on_tp, 1, kLora},
      {"sp2_lora", {1, 1, 2}, {}, 1, kLora},
      {"tp2_all_parts", {1, 2, 1}, {}, 1, kAllParts},
      {"tp2_tokens_all_parts", {1, 2, 1}, tokens_on_tp, 1, kAllParts},
      {"zero2_whole_sums", {2, 1, 1}, both(zero(2), whole_sums), 4},
      {"zero3_whole_sums_lamb", {3, 1, 1}, both(zero(3), whole_sums), 2, kLamb},
      {"dp3_cut_unevenly", {3, 1, 1}, cut({{Axis::kData, 'B', {0, 2, 8, 24}}})},
      {"dp3_one_empty", {3, 1, 1}, cut({{Axis::kData, 'B', {0, 0, 10, 24}}})},
      {"balance_dp3", {3, 1, 1}, balance({12, 8, 4})},
      {"balance_dp3_accumulated", {3, 1, 1}, balance({2, 6, 4}), 2},
      {"balance_dp3_zero1", {3, 1, 1}, both(zero(1), balance({12, 8, 4}))},
      {"balance_dp3_zero3_accumulated", {3, 1, 1}, both(zero(3), balance({2, 6, 4})), 2},
      {"balance_dp2_tp2", {2, 2, 1}, balance({18, 6})},
      {"tp2_cut_unevenly",
       {1, 2, 1},
       cut({{Axis::kTensor, 'H', {0, 3, 12}}, {Axis::kTensor, 'F', {0, 20, 96}}})},
      {"tp2_tokens_cut_unevenly", {1, 2, 1}, both(tokens_on_tp, cut({{Axis::kTensor, 'N', {0, 13, 17}}}))},
      {"sp3_one_empty", {1, 1, 3}, cut({{Axis::kSequence, 'N', {0, 9, 9, 17}}})},
      {"tp2_still", {1, 2, 1}, {}, 1, kStill},
      {"tp2_probe", {1, 2, 1}, {}, 1, kProbe},
      {"zero1_dp2_tp2_probe", {2, 2, 1}, zero(1), 1, kProbe},
      {"zero3_tp2_tokens_probe", {2, 2, 1}, both(zero(3), tokens_on_tp), 1, kProbe},
      {"tp2_odd_lora", {1, 2, 1}, zero(0, 1000), 1, kOddLora},
      {"dp2_tp2_odd_mlp", {2, 2, 1}, zero(0, 1000), 1, kOddMlp},
      {"zero2_dp2_tp2_odd_mlp", {2, 2, 1}, zero(2, 1000), 1, kOddMlp},
      {"tp2_tokens_still", {1, 2, 1}, both(tokens_on_tp, recompute_blocks), 1, kStill},
      {"sp3_all_parts_recomputed", {1, 1, 3}, recompute_blocks, 1, kAllParts},
      {"dp2_cheap_recomputed", {2, 1, 1}, recompute_cheap},
      {"zero3_dp3_cheap_recomputed", {3, 1, 1}, both(zero(3), recompute_cheap)},
      {"tp2_tokens_cheap_recomputed", {1, 2, 1}, both(tokens_on_tp, recompute_cheap)},
      {"sp2_cheap_recomputed", {1, 1, 2}, recompute_cheap},
      {"sp2_all_parts_cheap_recomputed", {1, 1, 2}, recompute_cheap, 1, kAllParts},
      {"dp2_norms_recomputed", {2, 1, 1}, recompute_norms},
      {"zero3_dp3_norms_recomputed", {3, 1, 1}, both(zero(3), recompute_norms)},
      {"tp2_tokens_norms_recomputed", {1, 2, 1}, both(tokens_on_tp, recompute_norms)},
      {"sp2_all_parts_norms_recomputed", {1, 1, 2}, recompute_norms, 1, kAllParts},
  };
}

namespace {

using Mesh3 = std::array<int, kAxisCount>;
constexpr size_t kWideBucket = 600'000;  // several a block

// The strategies of the table, each with the meshes that it is tried on.
struct Strategy {
  const char* name;
  StepChange change;
  std::vector<Mesh3> meshes;
};

std::vector<Strategy> strategies() {
  const std::vector<Mesh3> dp = {{2, 1, 1}, {3, 1, 1}, {4, 1, 1}, {8, 1, 1}};
  return {
      {"dp", zero(0, kWideBucket), dp},
      {"zero1", zero(1, kWideBucket), dp},
      {"zero2", zero(2, kWideBucket), dp},
      {"zero3", zero(3, kWideBucket), dp},
      {"tp", {}, {{1, 2, 1}, {1, 4, 1}, {1, 3, 1}}},
      {"tp_tokens", tokens_on_tp, {{1, 2, 1}, {1, 4, 1}, {1, 3, 1}}},
      {"ulysses", {}, {{1, 1, 2}, {1, 1, 3}}},
      {"dp_tp", {}, {{2, 2, 1}, {4, 2, 1}, {2, 4, 1}}},
      {"zero3_tp_tokens", both(zero(3, kWideBucket), tokens_on_tp), {{2, 2, 1}, {4, 2, 1}, {2, 4, 1}}},
      {"zero2_tp_ulysses", zero(2, kWideBucket), {{2, 2, 2}}},
  };
}

std::string name_of(const Strategy& strategy, const Mesh3& mesh, const std::string& more) {
  std::string name = strategy.name;
  for (const Axis axis : kAxes)
    if (const int size = mesh[static_cast<size_t>(axis)]; size > 1)
      name += "_" + std::string(to_string(axis)) + std::to_string(size);
  return name + more;
}

}  // namespace

namespace {

void deepen(StepConfig& step) {
  step.model.depth = 12;
}
constexpr MeshModel kDeep = {"deep", deepen},
                    kDeepLamb = {"deep_lamb", [](StepConfig&s) { deepen(s), lamb(s); }},
                    kDeepLora = {"deep_lora", [](StepConfig&s) { deepen(s), lora(s); }},
                    kDeepParts = {"deep_all_parts", [](StepConfig&s) { deepen(s), all_parts(s); }};

StepChange scheduled(PipelineSchedule schedule, int chunks = 1, const std::vector<int>& begins = {}) {
  return [=](StepConfig& step) {
    step.stages.schedule = schedule, step.stages.chunks = chunks, step.stages.begins = begins;
  };
}

// What else a pipeline goes with.
std::vector<MeshCase> joined_cases() {
  const StepChange one = scheduled(PipelineSchedule::k1F1B), gpipe = scheduled(PipelineSchedule::kGpipe);
  const StepChange parts = scheduled(PipelineSchedule::kInterleaved, 2);
  return {
      {"pp2_zero1_dp2", {2, 1, 1, 2}, both(one, zero(1)), 4, kDeep},
      {"pp2_zero1_dp2_lamb", {2, 1, 1, 2}, both(parts, zero(1)), 4, kDeepLamb},
      {"pp2_tp2_lamb", {1, 2, 1, 2}, one, 4, kDeepLamb},
      {"pp2_tp2_tokens_recomputed",
       {1, 2, 1, 2},
       both(gpipe, both(tokens_on_tp, recompute_blocks)),
       4,
       kDeep},
      {"pp2_sp2", {1, 1, 2, 2}, one, 4, kDeep},
      {"pp2_dp2_tp2", {2, 2, 1, 2}, parts, 4, kDeep},
      {"pp3_lora", {1, 1, 1, 3}, one, 6, kDeepLora},
      {"pp3_all_parts", {1, 1, 1, 3}, parts, 6, kDeepParts},
      {"pp3_recomputed", {1, 1, 1, 3}, both(parts, recompute_mlps), 3, kDeep},
      {"pp2_norms_recomputed", {1, 1, 1, 2}, both(one, recompute_norms), 4, kDeep},
      {"pp3_named", {1, 1, 1, 3}, scheduled(PipelineSchedule::k1F1B, 1, {1, 10}), 4, kDeep},
      {"pp4_two_micro_batches", {1, 1, 1, 4}, one, 2, kDeep},
      {"pp4_one_micro_batch", {1, 1, 1, 4}, gpipe, 1, kDeep},
      {"pp2_dp3_one_empty", {3, 1, 1, 2}, both(one, cut({{Axis::kData, 'B', {0, 0, 2, 6}}})), 4, kDeep},
  };
}

}  // namespace

std::vector<MeshCase> pipeline_cases(bool all) {
  const std::tuple<const char*, PipelineSchedule, int> schedules[] = {
      {"gpipe", PipelineSchedule::kGpipe, 1},
      {"1f1b", PipelineSchedule::k1F1B, 1},
      {"interleaved", PipelineSchedule::kInterleaved, 2}};
  constexpr int64_t kBatch = 64;
  std::vector<MeshCase> cases = joined_cases();
  size_t row = 0;
  for (const int stages : {2, 3, 4})
    for (const int64_t micros : {4, 8, 16})
      for (const auto& [name, schedule, chunks] : schedules)
        for (const Mesh3& beside : {Mesh3{1, 1, 1}, Mesh3{2, 1, 1}, Mesh3{1, 2, 1}}) {
          if (!all && row++ % 7 != 0) continue;
          const std::string more = beside[0] > 1 ? "_dp2" : beside[1] > 1 ? "_tp2" : "";
          cases.push_back({"pp" + std::to_string(stages) + "_m" + std::to_string(micros) + "_" + name + more,
                           {beside[0], beside[1], 1, stages},
                           scheduled(schedule, chunks),
                           micros,
                           kDeep,
                           kBatch});
        }
  return cases;
}

std::vector<MeshCase> wide_cases(bool all) {
  std::vector<MeshCase> cases;
  const auto add = [&](const Strategy& s, const Mesh3& mesh, const std::string& more,
                       const StepChange& change, const MeshModel& model, int64_t accumulation) {
    const StepChange shared = s.change ? s.change : [](StepConfig&) {};
    cases.push_back(
        {name_of(s, mesh, more), mesh, change ? both(shared, change) : shared, accumulation, model, 16});
  };
  for (const Strategy& s : strategies()) {
    for (const Mesh3& mesh : s.meshes)
      add(s, mesh, "", {}, kWide, 1), add(s, mesh, "_lamb", {}, kWideLamb, 1);
    const Mesh3& first = s.meshes[0];
    add(s, first, "_accumulated", {}, kWide, 4);
    add(s, first, "_mlps_recomputed", recompute_mlps, kWide, 1);
    add(s, first, "_blocks_recomputed", recompute_blocks, kWide, 1);
    add(s, first, "_cheap_recomputed", recompute_cheap, kWide, 1);
    add(s, first, "_norms_recomputed", recompute_norms, kWide, 1);
    add(s, first, "_lora", {}, kWideLora, 1);
  }
  const std::set<std::string> covering = {"dp_dp3_lamb", "zero3_dp2_accumulated", "tp_tp4_lamb",
                                          "ulysses_sp3", "zero3_tp_tokens_dp2_tp2_blocks_recomputed"};
  if (!all) std::erase_if(cases, [&](const MeshCase& c) { return !covering.contains(c.name); });
  return cases;
}

}  // namespace vitrail
