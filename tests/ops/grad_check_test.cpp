// Every op's gradient against central differences in double, over at least 50 random shapes each, with all
// inputs trained and with every input frozen in turn.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "backend/cpu/kernels.h"
#include "backend/ref/kernels.h"
#include "base/rng.h"
#include "grad_cases.h"
#include "graph/builder.h"
#include "ops/cross_entropy.h"
#include "passes/passes.h"
#include "runtime/executor.h"

namespace vitrail {
namespace {

constexpr int64_t kShapes = 55;

DType dtype_of(const Shape& shape) {
  return shape.has('Z') ? DType::kI64 : DType::kF64;
}

// A program on the reference backend whose differentiated inputs are parameters, with an input "seed".
class OpRun {
 public:
  explicit OpRun(Program program)
      : plan_(plan_execution(std::move(program), ref_backend(), cpu_device(1, ""), {.pack = false})),
        rank_(plan_.device),
        store_(plan_, rank_),
        executor_(plan_, store_, rank_) {}

  bool has(const std::string& name) const { return store_.layout().has(name); }
  std::span<double> values(const std::string& name) const { return span(store_.view(name)); }
  std::span<double> output() const { return span(executor_.output("loss")); }
  void run(const OpCase& c) {
    for (const Value& value : plan_.program.values)
      if (value.kind == ValueKind::kInput) fill_input(value.name, c);
    executor_.run();
  }

 private:
  static std::span<double> span(const TensorView& view) {
    return {view.as<double>(), static_cast<size_t>(view.desc().elems())};
  }
  void fill_input(const std::string& name, const OpCase& c) {
    const TensorView view = executor_.input(name);
    if (view.dtype() == DType::kI64) {
      const int64_t counters[] = {5, 6, 7};
      std::copy_n(counters, 3, static_cast<int64_t*>(view.data()));
      return;
    }
    const bool is_target = is<CrossEntropyOp>(*c.op) && name != "seed";
    const std::span<double> target = span(view);
    for (size_t i = 0; i < target.size(); ++i) {
      const double u = counter_uniform(name_key(name), i);
      target[i] = is_target ? std::abs(u) : u;
    }
  }

  ExecutionPlan plan_;
  RankContext rank_;
  PersistentStore store_;
  Executor executor_;
};

Program record(const OpCase& c, bool backward, int frozen) {
  Builder builder;
  std::vector<ValueId> ins;
  for (size_t i = 0; i < c.ins.size(); ++i) {
    const std::string name = "in" + std::to_string(i);
    const TensorDesc desc{dtype_of(c.ins[i]), c.ins[i]};
    ins.push_back(c.is_parameter[i] ? builder.parameter(name, desc) : builder.input(name, desc));
  }
  const ValueId out = builder.add(c.op, ins, "op");
  builder.output("loss", out);
  if (!backward) return builder.finish();
  const ValueId seed = builder.input("seed", builder.desc(out));
  const std::string frozen_name = "in" + std::to_string(frozen);
  return schedule(differentiate(builder.finish(), {.seed = seed, .trained = [&](const std::string& name) {
                                                     return name != frozen_name;
                                                   }}));
}

void fill_parameters(const OpCase& c, int64_t n, const OpRun& run) {
  for (size_t i = 0; i < c.ins.size(); ++i) {
    const std::string name = "in" + std::to_string(i);
    if (!run.has(name)) continue;
    const std::span<double> values = run.values(name);
    for (size_t j = 0; j < values.size(); ++j)
      values[j] = 1.7 * counter_uniform(counter_hash(name_key(name), static_cast<uint64_t>(n)), j);
  }
}

double central_difference(const OpCase& c, OpRun& forward, const std::string& name,
                          const std::vector<double>& direction, std::span<const double> seed, double step) {
  const std::span<double> values = forward.values(name);
  const std::vector<double> start(values.begin(), values.end());
  double difference = 0;
  for (double sign : {1.0, -1.0}) {
    for (size_t i = 0; i < start.size(); ++i) values[i] = start[i] + sign * step * direction[i];
    forward.run(c);
    const std::span<double> out = forward.output();
    for (size_t i = 0; i < out.size(); ++i) difference += sign * seed[i] * out[i];
  }
  std::copy(start.begin(), start.end(), values.begin());
  return difference / (2 * step);
}

// Returns the derivative of seed . f along `direction` in one input: two steps, so that the error is of
// fourth order.
double slope(const OpCase& c, OpRun& forward, const std::string& name, const std::vector<double>& direction,
             std::span<const double> seed) {
  const double wide = central_difference(c, forward, name, direction, seed, 2e-5),
               narrow = central_difference(c, forward, name, direction, seed, 1e-5);
  return (4 * narrow - wide) / 3;
}

void check_input(const OpCase& c, OpRun& forward, OpRun& backward, size_t input, const std::string& label) {
  const std::string name = "in" + std::to_string(input);
  const std::span<double> gradient = backward.values(gradient_name(name));
  std::vector<double> seed(forward.output().size()), direction(gradient.size());
  for (size_t i = 0; i < seed.size(); ++i) seed[i] = counter_uniform(name_key("seed"), i);
  double wanted = 0, scale = 1e-3;
  for (size_t i = 0; i < direction.size(); ++i) {
    direction[i] = counter_uniform(name_key("direction" + name), i);
    wanted += gradient[i] * direction[i];
    scale += std::abs(gradient[i] * direction[i]);
  }
  EXPECT_NEAR(slope(c, forward, name, direction, seed), wanted, 1e-6 * scale) << label << " input " << input;
  // And one element alone.
  const size_t at = counter_hash(name_key(label), input) % direction.size();
  std::fill(direction.begin(), direction.end(), 0.0);
  direction[at] = 1;
  EXPECT_NEAR(slope(c, forward, name, direction, seed), gradient[at], 1e-6 * (std::abs(gradient[at]) + scale))
      << label << " input " << input << " element " << at;
}

class GradTest : public testing::TestWithParam<GradFamily> {};

TEST_P(GradTest, EqualsCentralDifferences) {
  for (int64_t n = 0; n < kShapes; ++n) {
    const OpCase c = GetParam().make(n);
    const std::string label = std::string(GetParam().name) + " example " + std::to_string(n);
    OpRun forward(record(c, false, -1)), backward(record(c, true, -1));
    fill_parameters(c, n, forward);
    fill_parameters(c, n, backward);
    forward.run(c);
    backward.run(c);
    for (size_t i = 0; i < c.ins.size(); ++i)
      if (c.is_parameter[i]) check_input(c, forward, backward, i, label);
    if (HasFailure()) return;
  }
}

TEST_P(GradTest, AFrozenInputCostsNothingAndChangesNoOtherGradient) {
  const OpCase c = GetParam().make(7);
  OpRun all(record(c, true, -1));
  fill_parameters(c, 7, all);
  all.run(c);
  size_t trained = 0;
  for (bool parameter : c.is_parameter) trained += parameter;
  for (size_t frozen = 0; trained > 1 && frozen < c.ins.size(); ++frozen) {
    if (!c.is_parameter[frozen]) continue;
    OpRun some(record(c, true, static_cast<int>(frozen)));
    fill_parameters(c, 7, some);
    some.run(c);
    for (size_t i = 0; i < c.ins.size(); ++i) {
      if (!c.is_parameter[i]) continue;
      const std::string name = gradient_name("in" + std::to_string(i));
      EXPECT_EQ(some.has(name), i != frozen) << GetParam().name;
      if (i == frozen) continue;
      const std::span<double> a = all.values(name), b = some.values(name);
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << GetParam().name << " " << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, GradTest, testing::ValuesIn(grad_families()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace vitrail
