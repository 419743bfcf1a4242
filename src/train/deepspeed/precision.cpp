// fp16 and bf16, the loss scale, and the types in which gradients are summed and sent.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "train/deepspeed/keys.h"

namespace vitrail::deepspeed {

namespace {

// DeepSpeed's scale has no upper limit; f32 ends before this one.
const double kNoLimit = std::ldexp(1.0, 126);

// Returns whether a block switches its type on; "auto" asks the config.
bool enabled(Reader& reader, const std::string& block, const char* type) {
  const std::string path = block + ".enabled";
  if (!reader.is_auto(path)) return reader.flag(path, "").value_or(false);
  const bool on = reader.value_of("train.dtype") == type;
  reader.note(path, strf("%s is \"auto\": train.dtype is %s, so it is %s", path.c_str(),
                         reader.value_of("train.dtype").get<std::string>().c_str(), on ? "on" : "off"));
  return on;
}

void read_fixed_scale(Reader& reader, double scale) {
  reader.set("loss_scale.mode", "fixed", "fp16.loss_scale");
  reader.set("loss_scale.initial", scale, "fp16.loss_scale");
  reader.set("loss_scale.min", std::min(scale, 1.0), "fp16.loss_scale");
  reader.set("loss_scale.max", std::max(scale, 16777216.0), "fp16.loss_scale");
}

void read_dynamic_scale(Reader& reader) {
  reader.set("loss_scale.mode", "dynamic", "fp16.loss_scale");
  const double power =
      static_cast<double>(reader.integer("fp16.initial_scale_power", "", {-14, 120}).value_or(16));
  const double least = reader.number("fp16.min_loss_scale", "loss_scale.min", {1e-30, 1e30}).value_or(1);
  reader.set("loss_scale.min", std::min(least, std::exp2(power)), "fp16.min_loss_scale");
  reader.set("loss_scale.max", kNoLimit, "fp16.loss_scale");
  reader.set("loss_scale.initial", std::exp2(power), "fp16.initial_scale_power");
  const auto whole = [&](const char* path, const char* key, int64_t otherwise) {
    reader.set(key, reader.integer(path, key, kCount).value_or(otherwise), path);
  };
  whole("fp16.loss_scale_window", "loss_scale.window", 1000);
  whole("fp16.hysteresis", "loss_scale.hysteresis", 2);
  reader.set("loss_scale.consecutive",
             reader.flag("fp16.consecutive_hysteresis", "loss_scale.consecutive").value_or(false),
             "fp16.consecutive_hysteresis");
}

void require_f32(Reader& reader, const std::string& path) {
  const std::string type = reader.word(path);
  if (type.empty() || type == "fp32" || type == "float32" || type == "float" || type == "auto") return;
  reader.refuse(path, "it is " + name_text(type) + "; gradients are summed and sent as f32 (\"fp32\")");
}

// The type in which ranks that share images sum their gradients.
void require_f32_of_sequences(Reader& reader, const std::string& path) {
  if (reader.value_of("mesh.sp") != 1) return require_f32(reader, path);
  if (const std::string type = reader.word(path); !type.empty())
    reader.note(path,
                path + " is " + name_text(type) + " and has no effect: no ranks share an image's tokens");
}

}  // namespace

void read_precision(Reader& reader) {
  require_f32(reader, "communication_data_type");
  require_f32_of_sequences(reader, "seq_parallel_communication_data_type");
  require_f32(reader, "data_types.grad_accum_dtype");
  if (const std::string op = reader.word("gradient_allreduce_op"); !op.empty() && op != "mean" && op != "avg")
    reader.refuse("gradient_allreduce_op", "it is " + name_text(op) + "; gradients are means (\"mean\")");
  const bool said = reader.find("fp16") || reader.find("bf16") || reader.find("bfloat16");
  if (!said) return;
  const std::string bf16_block = reader.find("bf16") ? "bf16" : "bfloat16";
  const bool fp16 = enabled(reader, "fp16", "f16"), bf16 = enabled(reader, bf16_block, "bf16");
  if (fp16 && bf16)
    throw Error(ErrorKind::kConfig, reader.place() + ": fp16.enabled and bf16.enabled are both true",
                "one of them; DeepSpeed refuses both together, too");
  const bool rounded_gemms = reader.value_of("train.dtype") == "tf32";  // f32 to DeepSpeed, too
  if (fp16 || bf16 || !rounded_gemms)
    reader.set("train.dtype",
               fp16   ? "f16"
               : bf16 ? "bf16"
                      : "f32",
               bf16 ? bf16_block + ".enabled" : std::string("fp16.enabled"));
  const double scale = reader.number("fp16.loss_scale", "", {0, 1e30}).value_or(0);
  if (reader.value_of("train.dtype") != "f16") return;
  if (scale > 0) return read_fixed_scale(reader, scale);
  read_dynamic_scale(reader);
}

}  // namespace vitrail::deepspeed
