// Gradients of one step of 197 or 577 tokens with heads of 64 (tests/golden/gradients): reads a case, and
// compares every parameter's gradient with torch's in double or with another run's.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "case_run.h"

namespace vitrail::golden {

// What a step computes in.
struct StepTypes {
  DType compute = DType::kF32, residual = DType::kF32;
  Arithmetic arithmetic = Arithmetic::kExact;  // of the blocks' GEMMs
};
constexpr StepTypes kInFloat, kInTf32{.arithmetic = Arithmetic::kTF32}, kInBf16{.compute = DType::kBF16},
    kInBf16Stream{.compute = DType::kBF16, .residual = DType::kBF16},
    kInFp8{.compute = DType::kBF16, .arithmetic = Arithmetic::kFp8};

// A case of torch's, or with a batch of another size one that torch has not run.
inline StepCase load_gradient_case(const std::string& name, const StepTypes& types, int64_t batch = 0) {
  const std::string path = VT_SOURCE_DIR "/tests/golden/gradients/" + name + ".json";
  StepCase c{.name = name, .json = parse_json(read_file(path, 1 << 20), path)};
  c.config = step_config(c.json, DType::kF32);
  c.config.precision.compute = types.compute;
  c.config.precision.residual = types.residual;
  c.config.arithmetic = types.arithmetic;
  c.steps = c.json.at("steps");
  c.batch = batch > 0 ? batch : c.json.at("batch").get<int64_t>();
  c.config.micro_batch = c.config.eval_batch = c.batch;
  return c;
}

// One parameter's gradient, or a third of it: "blocks.0.attn.qkv.weight/k".
struct SavedPart {
  std::string name, parameter;
  size_t third = 0, thirds = 1;

  explicit SavedPart(const std::string& full) : name(full), parameter(full.substr(0, full.find('/'))) {
    if (parameter.size() == full.size()) return;
    thirds = 3, third = std::string("qkv").find(full.back());
  }
  std::vector<double> of(const CaseRun& run) const {
    const std::vector<double> gradient = run.value(gradient_name(parameter));
    const auto size = static_cast<std::ptrdiff_t>(gradient.size() / thirds);
    const auto first = gradient.begin() + static_cast<std::ptrdiff_t>(third) * size;
    return {first, first + size};
  }
};

// The norm of the values' difference, estimated from their sums under random signs.
inline double distance(const SavedPart& part, const std::vector<double>& values,
                       const std::vector<double>& projections) {
  double squares = 0;
  for (size_t k = 0; k < projections.size(); ++k) {
    const uint64_t key = name_key(part.name + "/" + std::to_string(k));
    double sum = -projections[k];
    for (size_t i = 0; i < values.size(); ++i) sum += counter_hash(key, i) & 1 ? -values[i] : values[i];
    squares += sum * sum;
  }
  return std::sqrt(squares / static_cast<double>(projections.size()));
}

// What a gradient may be off by, as a share of its norm.
struct Limit {
  const char* name;
  double least;
  double times_torch = 0;  // what torch is off by when it rounds alike, times this; 0: in f32
  const char* torch = "torch_bf16_off";
  double loss = 0.01;  // as a share of the loss

  double of(const Json& row) const {
    return times_torch == 0 ? least : least + times_torch * row.at(torch).get<double>();
  }
};

// The estimate scatters by a tenth; torch rounds the same GEMMs and attention's weights. In fp8, whose
// roundings are large, how far a step is off scatters by another quarter.
constexpr Limit kFloat{.name = "f32", .least = 2e-5, .loss = 1e-5},
    kTf32{.name = "tf32", .least = 2e-5, .times_torch = 1.6, .torch = "torch_tf32_off", .loss = 1e-3},
    kHalf{.name = "bf16", .least = 1e-3, .times_torch = 1.6},
    kHalfStream{.name = "bf16 stream", .least = 1e-3, .times_torch = 1.6, .torch = "torch_bf16_stream_off"},
    kFp8{.name = "fp8", .least = 1e-3, .times_torch = 2, .torch = "torch_fp8_off", .loss = 0.05};

// The gradients that are not zero in theory: softmax does not see what is added to every key alike.
inline std::vector<Json> gradient_rows(const StepCase& c) {
  double largest = 0;
  for (const Json& row : c.json.at("gradients")) largest = std::max(largest, row.at("norm").get<double>());
  std::vector<Json> rows;
  for (const Json& row : c.json.at("gradients"))
    if (row.at("norm").get<double>() >= 1e-9 * largest) rows.push_back(row);
  return rows;
}

// Compares the gradients of a run, and prints the least margin it met.
class GradientMargin {
 public:
  GradientMargin(const StepCase& c, const CaseRun& run, const Limit& limit)
      : limit_(limit),
        name_(strf("%s %s, %s x %lld", run.plan().micro.backend->name(), limit.name, c.name.c_str(),
                   static_cast<long long>(c.batch))) {}
  GradientMargin(const GradientMargin&) = delete;
  GradientMargin& operator=(const GradientMargin&) = delete;
  ~GradientMargin() {
    printf("margin of gradients, %s: %.2f (%s)\n", name_.c_str(), 1 / share_, part_.c_str());
  }

  void expect(double off, const Json& row) {
    const double share = off / limit_.of(row);
    const std::string part = row.at("name");
    EXPECT_LE(share, 1) << name_ << ", " << part << ": off by " << off;
    if (share <= share_) return;
    share_ = share;
    part_ = part;
  }
  void expect_loss(double found, double wanted) const {
    EXPECT_NEAR(found, wanted, limit_.loss * wanted) << name_;
  }

 private:
  const Limit& limit_;
  std::string name_, part_;
  double share_ = 0;
};

// Compares with torch. Where a `finer` limit is given, some gradient is beyond it: the coarser type was used.
inline void expect_gradients(const StepCase& c, CaseRun& run, const Limit& limit,
                             const Limit* finer = nullptr) {
  GradientMargin margin(c, run, limit);
  margin.expect_loss(run.gradients(0), c.json.at("loss_value"));
  size_t beyond = 0;
  for (const Json& row : gradient_rows(c)) {
    const SavedPart part(row.at("name").get<std::string>());
    const double off = distance(part, part.of(run), row.at("projections").get<std::vector<double>>()) /
                       row.at("norm").get<double>();
    margin.expect(off, row);
    if (finer && off > finer->of(row)) ++beyond;
  }
  EXPECT_TRUE(!finer || beyond > 0) << c.name << ": nothing was rounded as coarsely as in " << limit.name;
}

// Compares with a run of the same batch in f32, within what torch is off by in a smaller batch.
inline void expect_near_run(const StepCase& c, CaseRun& run, CaseRun& exact, const Limit& limit) {
  GradientMargin margin(c, run, limit);
  margin.expect_loss(run.gradients(0), exact.gradients(0));
  for (const Json& row : gradient_rows(c)) {
    const SavedPart part(row.at("name").get<std::string>());
    const std::vector<double> found = part.of(run), wanted = part.of(exact);
    double off = 0, norm = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      off += (found[i] - wanted[i]) * (found[i] - wanted[i]);
      norm += wanted[i] * wanted[i];
    }
    margin.expect(std::sqrt(off / norm), row);
  }
}

inline constexpr const char* kGradientCases[] = {"tokens_197", "tokens_577"};
constexpr int64_t kManyImages = 12;  // 2,364 rows of 197 tokens, for kernels that need many

}  // namespace vitrail::golden
