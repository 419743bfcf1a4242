#include "train/deepspeed/keys.h"

#include <algorithm>

#include "base/text.h"

namespace vitrail::deepspeed {

namespace {

constexpr char kTelemetry[] = "a monitor of its own; runs/ has metrics.jsonl, TensorBoard files and a report";
constexpr char kBuffers[] = "sizes of DeepSpeed's own buffers and fetches; results do not change";
constexpr char kFiles[] = "how DeepSpeed stores its files; Vitrail's checkpoints are read by any mesh";

constexpr KeyRow kKeys[] = {
    {"train_batch_size", Rule::kRead, "`train.batch`"},
    {"train_micro_batch_size_per_gpu", Rule::kRead, "`train.micro_batch`"},
    {"gradient_accumulation_steps", Rule::kRead, "`train.accumulation`"},
    {"micro_batch_per_gpu", Rule::kRead, "no key of DeepSpeed, which passes over it: named and explained"},
    {"optimizer", Rule::kRead, "`optim.*`, see below"},
    {"scheduler", Rule::kRead, "`schedule.*`, see below"},
    {"gradient_clipping", Rule::kRead, "`optim.clip_norm`"},
    {"fp16", Rule::kBlock, ""},
    {"fp16.enabled", Rule::kRead, "`train.dtype=f16`"},
    {"fp16.loss_scale", Rule::kRead, "0: `loss_scale.mode=dynamic`, else `fixed` with `loss_scale.initial`"},
    {"fp16.initial_scale_power", Rule::kRead, "`loss_scale.initial`, a power of two"},
    {"fp16.loss_scale_window", Rule::kRead, "`loss_scale.window`"},
    {"fp16.hysteresis", Rule::kRead, "`loss_scale.hysteresis`"},
    {"fp16.consecutive_hysteresis", Rule::kRead, "`loss_scale.consecutive`"},
    {"fp16.min_loss_scale", Rule::kRead, "`loss_scale.min`"},
    {"fp16.auto_cast", Rule::kNone, "inputs are always cast to what is computed in"},
    {"fp16.opt_level", Rule::kNone, "a setting of apex, which DeepSpeed's fp16 does not read either"},
    {"fp16.fp16_master_weights_and_grads", Rule::kOff, "master weights are f32"},
    {"bf16", Rule::kBlock, ""},
    {"bf16.enabled", Rule::kRead, "`train.dtype=bf16`"},
    {"bf16.immediate_grad_update", Rule::kNone, "when gradients are copied; results do not change"},
    {"bf16.check_grad_overflow", Rule::kNone, "updates with NaN or Inf are always skipped and counted"},
    {"bf16.bf16_master_weights_and_grads", Rule::kOff, "master weights are f32"},
    {"bf16.bf16_optimizer_states", Rule::kOff, "use --set optim.moment_dtype=bf16 for the first moment"},
    {"bfloat16", Rule::kBlock, ""},
    {"bfloat16.enabled", Rule::kRead, "the former name of `bf16.enabled`"},
    {"amp", Rule::kOff, "apex; use fp16 or bf16"},
    {"torch_autocast", Rule::kOff, "use bf16, which keeps f32 master weights, too"},
    {"zero_optimization", Rule::kBlock, ""},
    {"zero_optimization.stage", Rule::kRead, "`mesh.zero`"},
    {"zero_optimization.reduce_bucket_size", Rule::kRead,
     "`mesh.bucket_mb` of ZeRO 1 to 3: elements of 4 bytes"},
    {"zero_optimization.offload_optimizer", Rule::kBlock, ""},
    {"zero_optimization.offload_optimizer.device", Rule::kRead,
     "none; cpu: `mesh.offload=optimizer`; nvme is refused"},
    {"zero_optimization.offload_param", Rule::kBlock, ""},
    {"zero_optimization.offload_param.device", Rule::kRead,
     "with stage 3: none; cpu: `mesh.offload=parameters`; nvme is refused"},
    {"zero_optimization.cpu_offload", Rule::kRead, "the former name of offload_optimizer"},
    {"zero_optimization.cpu_offload_param", Rule::kRead, "the former name of offload_param"},
    {"zero_optimization.cpu_offload_params", Rule::kRead, "the former name of offload_param"},
    {"zero_optimization.overlap_comm", Rule::kNone,
     "gradients are always exchanged while others are computed; results do not change"},
    {"zero_optimization.contiguous_gradients", Rule::kNone, "gradients lie where the plan puts them"},
    {"zero_optimization.reduce_scatter", Rule::kNone, "the collective is chosen by the stage"},
    {"zero_optimization.allgather_partitions", Rule::kNone, "the collective is chosen by the stage"},
    {"zero_optimization.allgather_bucket_size", Rule::kNone, kBuffers},
    {"zero_optimization.use_multi_rank_bucket_allreduce", Rule::kNone, kBuffers},
    {"zero_optimization.sub_group_size", Rule::kNone, kBuffers},
    {"zero_optimization.stage3_max_live_parameters", Rule::kNone, kBuffers},
    {"zero_optimization.stage3_max_reuse_distance", Rule::kNone, kBuffers},
    {"zero_optimization.stage3_prefetch_bucket_size", Rule::kNone, kBuffers},
    {"zero_optimization.stage3_param_persistence_threshold", Rule::kNone, kBuffers},
    {"zero_optimization.stage3_model_persistence_threshold", Rule::kNone, kBuffers},
    {"zero_optimization.stage3_module_granularity_threshold", Rule::kNone, kBuffers},
    {"zero_optimization.stage3_use_all_reduce_for_fetch_params", Rule::kNone, kBuffers},
    {"zero_optimization.stage3_allgather_sequential", Rule::kNone, kBuffers},
    {"zero_optimization.stage3_partition_stream_chunk_size", Rule::kNone, kBuffers},
    {"zero_optimization.max_live_parameters", Rule::kNone, kBuffers},
    {"zero_optimization.max_reuse_distance", Rule::kNone, kBuffers},
    {"zero_optimization.prefetch_bucket_size", Rule::kNone, kBuffers},
    {"zero_optimization.param_persistence_threshold", Rule::kNone, kBuffers},
    {"zero_optimization.model_persistence_threshold", Rule::kNone, kBuffers},
    {"zero_optimization.stage3_gather_16bit_weights_on_model_save", Rule::kNone, kFiles},
    {"zero_optimization.stage3_gather_fp16_weights_on_model_save", Rule::kNone, kFiles},
    {"zero_optimization.gather_16bit_weights_on_model_save", Rule::kNone, kFiles},
    {"zero_optimization.load_from_fp32_weights", Rule::kNone, kFiles},
    {"zero_optimization.elastic_checkpoint", Rule::kNone, kFiles},
    {"zero_optimization.pipeline_loading_checkpoint", Rule::kNone, kFiles},
    {"zero_optimization.cpu_offload_use_pin_memory", Rule::kNone, kBuffers},
    {"zero_optimization.round_robin_gradients", Rule::kNone, kBuffers},
    {"zero_optimization.ignore_unused_parameters", Rule::kNone, "every parameter of a ViT is used"},
    {"zero_optimization.legacy_stage1", Rule::kNone, "an older way to the same result"},
    {"zero_optimization.memory_efficient_linear", Rule::kNone, "memory is planned; results do not change"},
    {"zero_optimization.override_module_apply", Rule::kNone, "how torch modules are set up"},
    {"zero_optimization.leaf_module", Rule::kNone, "how torch modules are fetched"},
    {"zero_optimization.log_trace_cache_warnings", Rule::kNone, "DeepSpeed's own log"},
    {"zero_optimization.enable_sanity_checks", Rule::kNone, "DeepSpeed's own checks"},
    {"zero_optimization.zero_hpz_partition_size", Rule::kNone, "where pieces lie; results do not change"},
    {"zero_optimization.mics_shard_size", Rule::kNone, "where pieces lie; results do not change"},
    {"zero_optimization.mics_hierarchical_params_gather", Rule::kNone, "how pieces travel"},
    {"zero_optimization.zero_quantized_weights", Rule::kOff, "parameters travel unquantized"},
    {"zero_optimization.zero_quantized_nontrainable_weights", Rule::kOff, "parameters are kept unquantized"},
    {"zero_optimization.zero_quantized_gradients", Rule::kOff, "gradients travel as f32"},
    {"zero_optimization.zeropp_loco_param", Rule::kOff, "gradients travel as f32"},
    {"zero_optimization.zenflow", Rule::kOff, "every update is made before the next step"},
    {"zero_allow_untested_optimizer", Rule::kNone, "every optimizer here runs with every ZeRO stage"},
    {"zero_force_ds_cpu_optimizer", Rule::kNone, "which implementation updates; the rule is the same"},
    {"tensor_parallel", Rule::kBlock, ""},
    {"tensor_parallel.autotp_size", Rule::kRead, "`mesh.tp`"},
    {"sequence_parallel_size", Rule::kRead, "`mesh.sp`"},
    {"pipeline", Rule::kBlock, ""},
    {"pipeline.stages", Rule::kRead, "`mesh.pp`"},
    {"pipeline.activation_checkpoint_interval", Rule::kRead,
     "`train.recompute=block` and `train.recompute_every`"},
    {"pipeline.partition", Rule::kNone, "where stages are cut; results do not change"},
    {"pipeline.seed_layers", Rule::kNone, "every random number is a function of seed, step and place"},
    {"pipeline.pipe_partitioned", Rule::kNone, "how activations travel between stages"},
    {"pipeline.grad_partitioned", Rule::kNone, "how gradients travel between stages"},
    {"activation_checkpointing", Rule::kBlock, ""},
    {"activation_checkpointing.partition_activations", Rule::kRead, "true: `train.recompute=block`"},
    {"activation_checkpointing.cpu_checkpointing", Rule::kRead,
     "true: `train.recompute=block`; what is kept stays on the device"},
    {"activation_checkpointing.number_checkpoints", Rule::kRead,
     "a number: `train.recompute=block`; every block is kept, whatever the number"},
    {"activation_checkpointing.contiguous_memory_optimization", Rule::kNone, "memory is planned"},
    {"activation_checkpointing.synchronize_checkpoint_boundary", Rule::kNone,
     "when the device is waited for"},
    {"activation_checkpointing.profile", Rule::kNone, "DeepSpeed's own log"},
    {"steps_per_print", Rule::kRead, "`train.log_every`"},
    {"wall_clock_breakdown", Rule::kRead, "`train.breakdown`"},
    {"tensorboard", Rule::kBlock, ""},
    {"tensorboard.enabled", Rule::kRead, "`train.tensorboard`"},
    {"tensorboard.output_path", Rule::kNone, "event files lie in the run's folder"},
    {"tensorboard.job_name", Rule::kNone, "event files lie in the run's folder"},
    {"prescale_gradients", Rule::kNone,
     "gradients are summed as f32, so that the order of scaling is the same"},
    {"gradient_predivide_factor", Rule::kNone,
     "gradients are summed as f32, so that the order of scaling is the same"},
    {"sparse_gradients", Rule::kNone, "a ViT has no sparse gradients"},
    {"disable_allgather", Rule::kNone, "the collective is chosen by the stage"},
    {"pin_memory", Rule::kNone,
     "a key of offload_optimizer and offload_param, which DeepSpeed does not read here; buffers are pinned "
     "where that helps"},
    {"memory_breakdown", Rule::kNone, "vitrail plan tells memory beforehand"},
    {"dump_state", Rule::kNone, "config.json in the run's folder holds every setting"},
    {"flops_profiler", Rule::kNone, "vitrail profile measures"},
    {"comms_logger", Rule::kNone, "train.breakdown tells communication"},
    {"monitor_config", Rule::kNone, kTelemetry},
    {"wandb", Rule::kNone, kTelemetry},
    {"csv_monitor", Rule::kNone, kTelemetry},
    {"comet", Rule::kNone, kTelemetry},
    {"timers", Rule::kNone, "DeepSpeed's own log"},
    {"log_level", Rule::kNone, "DeepSpeed's own log"},
    {"aio", Rule::kNone, "how nvme is read, which is not offered"},
    {"checkpoint", Rule::kNone, kFiles},
    {"nebula", Rule::kNone, kFiles},
    {"datastates_ckpt", Rule::kNone, kFiles},
    {"use_node_local_storage", Rule::kNone, kFiles},
    {"dataloader_drop_last", Rule::kNone, "of a loader that DeepSpeed makes; data.* and loader.* hold"},
    {"compile", Rule::kNone, "programs are always planned and fused"},
    {"graph_harvesting", Rule::kNone, "CUDA graphs are used where they help"},
    {"hybrid_engine", Rule::kNone, "of text generation"},
    {"eigenvalue", Rule::kNone, "read by quantize_training alone"},
    {"use_data_before_expert_parallelism", Rule::kNone, "a ViT has no experts"},
    {"communication_data_type", Rule::kRead, "fp32; anything else is refused"},
    {"seq_parallel_communication_data_type", Rule::kRead,
     "fp32; anything else is refused where `mesh.sp` is above 1"},
    {"gradient_allreduce_op", Rule::kRead, "a mean; anything else is refused"},
    {"data_types", Rule::kBlock, ""},
    {"data_types.grad_accum_dtype", Rule::kRead, "fp32; anything else is refused"},
    {"elasticity", Rule::kOff, "it chooses the batch by the ranks; give the batch that it chose"},
    {"autotuning", Rule::kOff, "it searches for settings; give those that it found"},
    {"sparse_attention", Rule::kOff, "attention is dense"},
    {"progressive_layer_drop", Rule::kOff, "use --set train.drop_path"},
    {"curriculum_learning", Rule::kOff, "every update sees images of one size"},
    {"data_efficiency", Rule::kOff, "samples come in the order of data.* and loader.*"},
    {"compression_training", Rule::kOff, "weights and activations are neither pruned nor quantized"},
    {"quantize_training", Rule::kOff, "weights are not quantized"},
    {"weight_quantization", Rule::kOff, "weights are not quantized"},
    {"expert_parallel", Rule::kOff, "a ViT has no experts"},
};

// Blocks in which DeepSpeed refuses keys that it does not know; elsewhere it passes over them.
constexpr std::string_view kStrict[] = {"zero_optimization."};
// Keys of the two offload blocks that say how, not whether.
constexpr std::string_view kOffloadKeys[] = {
    "pin_memory", "nvme_path",     "buffer_count",   "buffer_size", "max_in_cpu",    "fast_init",
    "pipeline",   "pipeline_read", "pipeline_write", "ratio",       "super_offload", "cpuadam_cores_perc"};
constexpr size_t kMostKeys = 512;

bool any_enabled(const Json& value, bool* found) {
  bool on = false;
  if (value.is_object() && value.contains("enabled")) {
    *found = true;
    on = !value["enabled"].is_boolean() || value["enabled"].get<bool>();
  }
  if (value.is_structured())
    for (const Json& part : value) on |= any_enabled(part, found);
  return on;
}

const KeyRow* find_row(const std::string& path) {
  const auto* row =
      std::find_if(std::begin(kKeys), std::end(kKeys), [&](const KeyRow& one) { return one.key == path; });
  return row == std::end(kKeys) ? nullptr : row;
}

void sort_unknown(Reader& reader, const std::string& path, const std::string& prefix) {
  const std::string name = path.substr(prefix.size());
  if (prefix.starts_with("zero_optimization.offload_") &&
      std::find(std::begin(kOffloadKeys), std::end(kOffloadKeys), name) != std::end(kOffloadKeys))
    return reader.note(path, path + " has no effect: how states move, not whether");
  std::vector<std::string_view> known;
  for (const KeyRow& row : kKeys)
    if (row.key.starts_with(prefix)) known.push_back(row.key);
  const std::string near = nearest_key(path, known);
  const bool strict = std::any_of(std::begin(kStrict), std::end(kStrict),
                                  [&](std::string_view block) { return prefix.starts_with(block); });
  if (strict) return reader.refuse(prefix + name_text(name), "DeepSpeed has no such key" + near);
  reader.note(prefix + name_text(name),
              prefix + name_text(name) + " is no key of DeepSpeed, which passes over it" + near);
}

void sort_object(Reader& reader, const Json& object, const std::string& prefix) {
  if (object.size() > kMostKeys)
    throw Error(ErrorKind::kConfig,
                strf("%s holds an object of %zu keys", reader.place().c_str(), object.size()),
                strf("a DeepSpeed JSON; DeepSpeed has fewer than %zu keys", kMostKeys));
  for (const auto& [name, value] : object.items()) {
    if (value.is_null()) continue;
    const std::string path = prefix + name;
    const KeyRow* row = find_row(path);
    if (!row)
      sort_unknown(reader, path, prefix);
    else if (row->rule == Rule::kNone)
      reader.note(path, path + " has no effect: " + std::string(row->text));
    else if (row->rule == Rule::kOff && is_on(value))
      reader.refuse(path, std::string(row->text));
    else if (row->rule == Rule::kOff && (value.is_array() || value.is_string()))
      reader.note(path, path + " has no effect: it is neither an object nor true, and switches nothing on");
    else if (row->rule == Rule::kBlock && value.is_object())
      sort_object(reader, value, path + ".");
    else if (row->rule == Rule::kBlock && !(path == "zero_optimization" && value.is_boolean()))
      reader.wrong(path, "an object");
  }
}

}  // namespace

std::span<const KeyRow> deepspeed_keys() {
  return kKeys;
}

bool is_on(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() != 0;
  bool found = false;
  const bool on = any_enabled(value, &found);
  return found ? on : value.is_structured() && !value.empty();
}

std::string nearest_key(const std::string& wrong, std::span<const std::string_view> known) {
  if (wrong.size() > 64) return {};
  const std::vector<std::string> names(known.begin(), known.end());
  const std::string near = nearest_name(wrong, names);
  return near.empty() ? "" : strf("; did you mean %s?", near.c_str());
}

void sort_keys(Reader& reader) {
  sort_object(reader, reader.file(), "");
}

}  // namespace vitrail::deepspeed
