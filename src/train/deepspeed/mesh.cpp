// Reads how a run is shared out: tensor and sequence parallelism, pipeline stages, ZeRO and offload.
#include <algorithm>

#include "train/deepspeed/keys.h"

namespace vitrail::deepspeed {

namespace {

constexpr Limits kRanks{1, 65536};

// Elements of DeepSpeed's buckets as megabytes of gradients, which are f32.
double bucket_mb(double elements) {
  constexpr double kBytes = 4, kMost = 1 << 20;
  return std::min(kMost, elements * kBytes / (1 << 20));
}

// Returns where a block of ZeRO keeps its state: none, cpu or nvme. Its former name was a flag.
std::string offload_device(Reader& reader, const std::string& block,
                           std::initializer_list<const char*> former) {
  const std::string path = "zero_optimization." + block;
  for (const char* name : former)
    if (reader.flag(std::string("zero_optimization.") + name, "").value_or(false)) return "cpu";
  if (reader.is_auto(path + ".device")) reader.wrong(path + ".device", "none, cpu or nvme");
  const std::string device = reader.word(path + ".device");
  if (!device.empty() && device != "none" && device != "cpu" && device != "nvme")
    reader.wrong(path + ".device", "none, cpu or nvme");
  return device.empty() ? "none" : device;
}

void read_offload(Reader& reader, const std::string& optimizer, std::string parameters) {
  const std::string state = "zero_optimization.offload_optimizer.device";
  const std::string weights = "zero_optimization.offload_param.device";
  const bool by_block = reader.value_of("mesh.zero") == 3;
  if (parameters != "none" && !by_block) {
    reader.note(weights, strf("%s is %s and has no effect: below stage 3 every rank has all parameters, "
                              "which DeepSpeed leaves on the device, too",
                              weights.c_str(), parameters.c_str()));
    parameters = "none";
  }
  for (const auto& [path, device] : {std::pair{state, optimizer}, {weights, parameters}})
    if (device == "nvme")
      reader.refuse(path, "it is nvme; it lies in the device's or in the host's memory (\"none\", \"cpu\")");
  if (parameters == "cpu") {
    reader.set("mesh.offload", "parameters", weights);
    if (optimizer == "none") reader.note(weights, weights + " is cpu: the optimizer's state lies there, too");
  } else if (optimizer == "cpu") {
    reader.set("mesh.offload", "optimizer", state);
  }
}

}  // namespace

void read_mesh(Reader& reader) {
  reader.take_integer("tensor_parallel.autotp_size", "mesh.tp", {0, kRanks.most});
  if (reader.find("tensor_parallel.autotp_size") && reader.value_of("mesh.tp") == 0)
    reader.set("mesh.tp", 1, "tensor_parallel.autotp_size");
  reader.take_integer("sequence_parallel_size", "mesh.sp", kRanks);
  if (reader.is_auto("pipeline.stages")) return;  // DeepSpeed's default: as the model has them
  const int64_t stages = reader.integer("pipeline.stages", "", kRanks).value_or(1);
  if (stages == 1) return;
  if (reader.has_setting("mesh.pp")) return reader.set("mesh.pp", stages, "pipeline.stages");
  reader.refuse("pipeline.stages", "it is above 1; use mesh.tp, mesh.sp or ZeRO 3 for a model in parts");
}

void read_zero(Reader& reader) {
  const Json* block = reader.find("zero_optimization");
  if (!block) return;
  if (block->is_boolean())  // how DeepSpeed's first versions had it
    return reader.set("mesh.zero", block->get<bool>() ? 1 : 0, "zero_optimization");
  const std::string path = "zero_optimization.stage";
  reader.set("mesh.zero", reader.integer(path, "mesh.zero", {0, 3}).value_or(0), path);
  const bool shared = reader.value_of("mesh.zero") != 0;
  const std::string bucket = "zero_optimization.reduce_bucket_size";
  if (reader.is_auto(bucket))
    reader.note(bucket, bucket + " is \"auto\": mesh.bucket_mb holds");
  else if (const auto elements = reader.number(bucket, "", {0, 1e18}); elements && shared)
    reader.set("mesh.bucket_mb", bucket_mb(*elements), bucket);
  const std::string optimizer = offload_device(reader, "offload_optimizer", {"cpu_offload"});
  const std::string parameters =
      offload_device(reader, "offload_param", {"cpu_offload_param", "cpu_offload_params"});
  read_offload(reader, optimizer, parameters);
}

}  // namespace vitrail::deepspeed
