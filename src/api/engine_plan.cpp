// Plans the program of an engine: the ViT recorded, rewritten and laid out for the device of its options.
#include <algorithm>

#include "api/engine.h"
#include "backend/registry.h"

namespace vitrail {

ExecutionPlan plan_inference(const VitConfig& config, const EngineOptions& options) {
  return plan_inference(config, options, options.rank ? options.rank->device : engine_device(options));
}

DeviceInfo engine_device(const EngineOptions& options) {
  return find_entry(options.backend).find({options.ordinal, options.threads, options.isa});
}

DeviceInfo used_as(DeviceInfo device, const EngineOptions& options) {
  device.parallel_heads = options.parallel_heads;
  device.parallel_rows = options.parallel_rows;
  device.parallel_softmax = options.parallel_softmax;
  device.kernels = options.kernels;
  return device;
}

ExecutionPlan plan_inference(const VitConfig& config, const EngineOptions& options, DeviceInfo device) {
  device = used_as(std::move(device), options);
  const Backend& backend = find_backend(options.backend);
  require_arithmetic(backend, device, options.arithmetic);
  return plan_execution(engine_program(config, options), backend, device);
}

namespace {
bool has_packed(const ExecutionPlan& plan) {
  return std::any_of(plan.program.values.begin(), plan.program.values.end(),
                     [](const Value& value) { return value.persistent() && !value.desc.packing.empty(); });
}
}  // namespace

// Where weights were packed for fp8, all GEMMs of the blocks are in fp8, by any number of rows.
ExecutionPlan plan_sharing(const VitConfig& config, const EngineOptions& options, const ExecutionPlan& base) {
  const auto layout = std::make_shared<PersistentLayout>(*base.memory.persistent);
  EngineOptions own = options;
  own.rounds_few_rows = options.rounds_few_rows || has_packed(base);
  Program program = engine_program(config, own);
  for (Value& value : program.values)
    if (value.kind == ValueKind::kParameter && layout->has(value.name))
      value.desc = layout->at(value.name).desc;
  ExecutionPlan plan =
      plan_execution(std::move(program), *base.backend, base.device, {.pack = false, .layout = layout});
  VT_CHECK(layout->bytes() == base.memory.persistent->bytes(),
           "a program wants parameters that are not there");
  return plan;
}

Program engine_program(const VitConfig& config, const EngineOptions& options, const AfterPass& after) {
  Program recorded = record_vit(config, {.batch = options.batch,
                                         .dtype = options.dtype,
                                         .features = options.features,
                                         .layers = options.layers,
                                         .attention = options.attention,
                                         .attention_block = options.attention_block,
                                         .probabilities = options.probabilities});
  const Distribution& how = options.distribution;
  if (how.active()) require_divisible_heads(config.heads, how.mesh);
  VT_CHECK(options.batch >= how.mesh.size(Axis::kData), "%lld images for %s",
           static_cast<long long>(options.batch), to_string(how.mesh).c_str());
  Rewrites rewrites;
  rewrites.arithmetic = options.arithmetic;
  rewrites.precision = {.compute = options.compute, .residual = options.compute, .keep_masters = false};
  rewrites.distribution = how;
  rewrites.fuse = options.fuse;
  rewrites.traits = find_backend(options.backend).traits();
  if (options.rounds_few_rows) rewrites.traits.fp8_rows = 0;
  return inference_program(std::move(recorded), rewrites, after);
}

}  // namespace vitrail
