#include "run_op.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels.h"
#include "base/rng.h"
#include "blank_node.h"
#include "graph/builder.h"
#include "ops/elementwise.h"
#include "runtime/transfer.h"
#include "tensor/layout.h"

namespace vitrail {

namespace {

std::string input_name(size_t i) {
  return "in" + std::to_string(i);
}

bool is_updated(const OpCase& c, size_t i) {
  const std::span<const int> updated = c.op->updates();
  return std::find(updated.begin(), updated.end(), static_cast<int>(i)) != updated.end();
}

DType dtype_of(Role role, const RunSettings& settings) {
  switch (role) {
    case Role::kPlain:
    case Role::kNonNegative:
    case Role::kSmall:
      return settings.dtype;
    case Role::kVector:
      return settings.full_vectors ? DType::kF32 : settings.dtype;
    case Role::kSum:
      return accumulator_dtype(settings.dtype);
    case Role::kFull:
      return DType::kF32;
    case Role::kCounters:
      return DType::kI64;
    case Role::kScalars:
      return DType::kF64;
    case Role::kWords:
      return DType::kI32;
    case Role::kPixels:
      return DType::kU8;
  }
  throw Error(ErrorKind::kInternal, "unknown role");
}

// Converts numbers to elements of the type.
void convert(const Values& values, DType dtype, std::byte* target) {
  if (dtype == DType::kI64)
    std::copy(values.begin(), values.end(), reinterpret_cast<int64_t*>(target));
  else if (dtype == DType::kI32)
    std::copy(values.begin(), values.end(), reinterpret_cast<int32_t*>(target));
  else if (dtype == DType::kU8)
    std::copy(values.begin(), values.end(), reinterpret_cast<uint8_t*>(target));
  else
    convert_floats(values.data(), DType::kF64, target, dtype, values.size());
}

void store(RankContext& rank, const Values& values, const TensorView& view) {
  std::vector<std::byte> bytes(view.desc().bytes());
  convert(values, view.dtype(), bytes.data());
  write_bytes(rank, view, bytes);
}

Result read(RankContext& rank, const TensorView& view) {
  Result result{view.desc(), Values(static_cast<size_t>(view.desc().elems()))};
  read_doubles(rank, view, result.values);
  return result;
}

Program one_node(const OpCase& c, const std::vector<Shape>& shapes, const RunSettings& settings) {
  Builder builder;
  std::vector<ValueId> ins;
  const std::vector<TensorDesc> descs = input_descs(c, shapes, settings);
  for (size_t i = 0; i < descs.size(); ++i) {
    if (is_updated(c, i))
      ins.push_back(builder.state(input_name(i), descs[i], Category::kOptimizer));
    else if (c.is_parameter[i])
      ins.push_back(builder.parameter(input_name(i), descs[i]));
    else
      ins.push_back(builder.input(input_name(i), descs[i]));
    if (c.op->in_place_input() == static_cast<int>(i) && !c.is_parameter[i])
      ins.back() = builder.add<MultiplyOp>({ins.back()}, "before", 1.0);
  }
  const std::vector<ValueId> outs = builder.add_all(c.op, ins, c.name);
  for (size_t o = 0; o < outs.size(); ++o) builder.output("out" + std::to_string(o), outs[o]);
  return builder.finish();
}

DeviceInfo device_for(const OpCase& c, const std::vector<Shape>& shapes, const RunSettings& settings) {
  const Backend& backend = find_backend(settings.backend);
  DeviceInfo device =
      &backend == &cuda_backend() ? cuda_device() : cpu_device(settings.threads, settings.isa);
  if (settings.compute != 0) device.compute = settings.compute;
  if (*settings.kernel == 0) return device;
  const std::vector<TensorDesc> ins = input_descs(c, shapes, settings), outs = c.op->infer(ins);
  KernelTable table;
  table.set({backend.tune_key({*c.op, ins, outs}, device).value(), {settings.kernel}});
  device.kernels = std::make_shared<KernelTable>(table);
  return device;
}

// Returns the bytes of the persistent values that must not change.
std::vector<std::byte> untouched(const OpCase& c, const PersistentStore& store) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < c.ins.size(); ++i) {
    if (is_updated(c, i) || !store.layout().has(input_name(i))) continue;
    const TensorView view = store.view(input_name(i));
    bytes.resize(bytes.size() + view.desc().bytes());
    read_bytes(store.rank(), view, std::span(bytes).last(view.desc().bytes()));
  }
  return bytes;
}

void blindfold(ExecutionPlan& plan) {
  static const BlankOp blank;
  for (NodeChoice& choice : plan.choices)
    for (Launch& launch : choice.launches)
      if (std::string_view(launch.kernel->name) != "ref")
        launch.prepared.run = [run = launch.prepared.run](const KernelArgs& args) {
          const std::vector<TensorView> ins = without_shapes(args.ins), outs = without_shapes(args.outs);
          run({blank, ins, outs, args.scratch, args.context, args.fixed});
        };
}

// A GPU stays open from one case to the next: starting its libraries takes longer than most ops.
RankContext& gpu(const DeviceInfo& device) {
  static RankContext rank(device);
  rank.device = device;
  return rank;
}

}  // namespace

std::vector<TensorDesc> input_descs(const OpCase& c, const std::vector<Shape>& shapes,
                                    const RunSettings& settings) {
  std::vector<TensorDesc> descs;
  for (size_t i = 0; i < shapes.size(); ++i) descs.push_back({dtype_of(c.role(i), settings), shapes[i]});
  return descs;
}

Values rounded(const Values& values, DType type) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  Values result(values.size());
  convert_floats(values.data(), DType::kF64, bytes.data(), type, values.size());
  convert_floats(bytes.data(), type, result.data(), DType::kF64, result.size());
  return result;
}

std::vector<Values> make_inputs(const OpCase& c, const RunSettings& settings) {
  std::vector<Values> inputs;
  for (size_t i = 0; i < c.ins.size(); ++i) {
    if (const auto given = c.given.find(i); given != c.given.end()) {
      inputs.push_back(given->second);
      continue;
    }
    const uint64_t key = name_key(c.name + "/" + std::to_string(i));
    Values values(static_cast<size_t>(c.ins[i].elems()));
    for (size_t j = 0; j < values.size(); ++j) {
      values[j] = counter_uniform(key, j);
      if (c.role(i) == Role::kNonNegative) values[j] = std::abs(values[j]);
      if (c.role(i) == Role::kSmall) values[j] /= 4;
      if (c.role(i) == Role::kPixels) values[j] = std::floor(128 * (values[j] + 1));
    }
    const DType dtype = dtype_of(c.role(i), settings);
    if (!is_float(dtype)) {
      inputs.push_back(std::move(values));
      continue;
    }
    inputs.push_back(rounded(values, dtype));
  }
  return inputs;
}

namespace {
ExecutionPlan plan_op(const OpCase& c, const std::vector<Shape>& shapes, const RunSettings& settings) {
  return plan_execution(one_node(c, shapes, settings), find_backend(settings.backend),
                        device_for(c, shapes, settings));
}

// Gives the plan kernels that were prepared for nodes which are gone since: those of an equal case, whose
// memory was overwritten when it was given back (overwrite_freed.cpp).
void outlive_nodes(ExecutionPlan& plan, const OpCase& c, const std::vector<Shape>& shapes,
                   const RunSettings& settings) {
  plan.choices = plan_op(case_again(c.name), shapes, settings).choices;
}
}  // namespace

Rounding op_rounding(const OpCase& c, const std::vector<Shape>& shapes, const RunSettings& settings) {
  const ExecutionPlan plan = plan_op(c, shapes, settings);
  return rounding_of(plan, plan.program.nodes.size() - 1);
}

std::vector<Result> run_op(const OpCase& c, const std::vector<Shape>& shapes,
                           const std::vector<Values>& inputs, const RunSettings& settings) {
  ExecutionPlan plan = plan_op(c, shapes, settings);
  if (settings.blind) {
    outlive_nodes(plan, c, shapes, settings);
    blindfold(plan);
  }
  if (*settings.kernel != 0) {
    EXPECT_STREQ(plan.choices.back().launches[0].kernel->name, settings.kernel) << c.name;
  }
  const bool on_gpu = plan.backend == &cuda_backend();
  const auto own = on_gpu ? nullptr : std::make_unique<RankContext>(plan.device);
  RankContext& rank = on_gpu ? gpu(plan.device) : *own;
  PersistentStore persistent(plan, rank);
  // A store takes whole parameters and cuts its part out of them; the inputs are parts.
  persistent.load(plan, [&](const std::string& name, const Shape&, std::span<float> target) {
    const auto i = static_cast<size_t>(std::stoi(name.substr(2)));
    std::vector<float> part(inputs[i].size());
    convert_floats(inputs[i].data(), DType::kF64, part.data(), DType::kF32, part.size());
    copy_in_part(shapes[i], sizeof(float), part.data(), target.data());
  });
  Executor executor(plan, persistent, rank);
  const std::vector<std::byte> before = untouched(c, persistent);
  for (int run = 0; run < settings.runs; ++run) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (is_updated(c, i))
        store(rank, inputs[i], persistent.view(input_name(i)));
      else if (!c.is_parameter[i])
        store(rank, inputs[i], executor.input(input_name(i)));
    }
    executor.run();
  }
  EXPECT_TRUE(before == untouched(c, persistent)) << c.name << " writes a parameter it does not update";

  std::vector<Result> results;
  for (const Output& out : plan.program.outputs) results.push_back(read(rank, executor.output(out.name)));
  for (int i : c.op->updates())
    results.push_back(read(rank, persistent.view(input_name(static_cast<size_t>(i)))));
  return results;
}

}  // namespace vitrail
