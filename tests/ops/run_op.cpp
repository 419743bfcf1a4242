#include "run_op.h"

#include "backend/cpu/kernels.h"
#include "base/rng.h"
#include "graph/builder.h"

namespace vitrail {

namespace {
void store(const Values& values, const TensorView& view) {
  convert_floats(values.data(), DType::kF64, view.data(), view.dtype(), values.size());
}

Program one_node(const OpCase& c, const std::vector<Shape>& shapes, DType dtype) {
  Builder builder;
  std::vector<ValueId> ins;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string name = "in" + std::to_string(i);
    ins.push_back(c.is_parameter[i] ? builder.parameter(name, {dtype, shapes[i]})
                                    : builder.input(name, {dtype, shapes[i]}));
  }
  builder.output("out", builder.add(c.op, ins, c.name));
  return builder.finish();
}
}  // namespace

std::vector<Values> random_inputs(const OpCase& c, DType dtype) {
  std::vector<Values> inputs;
  for (size_t i = 0; i < c.ins.size(); ++i) {
    const uint64_t key = name_key(c.name + "/" + std::to_string(i));
    Values values(static_cast<size_t>(c.ins[i].elems()));
    for (size_t j = 0; j < values.size(); ++j) values[j] = counter_uniform(key, j);
    std::vector<std::byte> rounded(values.size() * size_of(dtype));
    convert_floats(values.data(), DType::kF64, rounded.data(), dtype, values.size());
    convert_floats(rounded.data(), dtype, values.data(), DType::kF64, values.size());
    inputs.push_back(std::move(values));
  }
  return inputs;
}

Shape output_shape(const OpCase& c, const std::vector<Shape>& shapes, DType dtype) {
  std::vector<TensorDesc> descs;
  for (const Shape& shape : shapes) descs.push_back({dtype, shape});
  return c.op->infer(descs)[0].shape;
}

Values run_op(const OpCase& c, const std::vector<Shape>& shapes, const std::vector<Values>& inputs,
              const RunSettings& settings) {
  const ExecutionPlan plan =
      plan_execution(one_node(c, shapes, settings.dtype), find_backend(settings.backend),
                     cpu_device(settings.threads, settings.isa));
  RankContext rank(plan.device);
  ParamStore params(plan, rank);
  params.load([&](const std::string& name, const Shape&, std::span<float> target) {
    const Values& values = inputs[static_cast<size_t>(std::stoi(name.substr(2)))];
    convert_floats(values.data(), DType::kF64, target.data(), DType::kF32, values.size());
  });
  Executor executor(plan, params, rank);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!c.is_parameter[i]) store(inputs[i], executor.input("in" + std::to_string(i)));
  executor.run();
  const TensorView out = executor.output("out");
  Values result(static_cast<size_t>(out.desc().elems()));
  convert_floats(out.data(), out.dtype(), result.data(), DType::kF64, result.size());
  return result;
}

}  // namespace vitrail
