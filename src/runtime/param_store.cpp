#include "runtime/param_store.h"

#include <algorithm>

#include "graph/builder.h"
#include "ops/load_param.h"

namespace vitrail {

namespace {

// One node a parameter somebody reads, from the f32 a source gives to what the plan wants.
Program load_program(const ExecutionPlan& plan) {
  Builder builder;
  for (size_t id = 0; id < plan.program.values.size(); ++id) {
    const Value& value = plan.program.values[id];
    if (!plan.memory.values[id].persistent) continue;
    const ValueId source = builder.input(value.name, {DType::kF32, value.desc.shape});
    builder.output(value.name, builder.add(std::make_shared<LoadParamOp>(value.desc), {source}, value.name));
  }
  return builder.finish();
}

}  // namespace

ParamStore::ParamStore(const ExecutionPlan& plan, RankContext& rank)
    : plan_(plan), rank_(rank), arena_(plan.memory.persistent_bytes, Category::kParameters) {}

TensorView ParamStore::view(ValueId id) const {
  const Placement& placement = plan_.memory.values[id];
  VT_CHECK(placement.persistent, "%s is no persistent value", plan_.program.values[id].name.c_str());
  return {arena_.data() + placement.offset, plan_.program.values[id].desc};
}

void ParamStore::load(const ParamFiller& fill) {
  const Program program = load_program(plan_);
  const auto choices = choose_kernels(program, *plan_.backend, rank_.device);
  size_t largest = 0;
  for (const Node& node : program.nodes)
    largest = std::max(largest, program.values[node.ins[0]].desc.bytes());
  Buffer staging(largest, Category::kStaging);
  size_t next = 0;
  for (ValueId id = 0; id < static_cast<ValueId>(plan_.program.values.size()); ++id) {
    if (!plan_.memory.values[id].persistent) continue;
    const Node& node = program.nodes[next];
    const Launch& launch = choices[next++].launches[0];
    const TensorView source(staging.data(), program.values[node.ins[0]].desc), target = view(id);
    fill(node.name, source.shape(), {source.as<float>(), static_cast<size_t>(source.desc().elems())});
    launch.kernel->run({*node.op, {&source, 1}, {&target, 1}, {}, {rank_.pool, rank_.device}});
  }
}

}  // namespace vitrail
