// DeepSpeed's optimizers: what each parameter is here, with DeepSpeed's defaults for those left out.
#include <algorithm>

#include "base/text.h"
#include "train/deepspeed/keys.h"

namespace vitrail::deepspeed {

namespace {

const std::string kParams = "optimizer.params";

struct OptimizerRow {
  std::string_view type;  // in lower case
  const char* name;
  double beta1, beta2, eps;
  std::string_view params;  // the names that its constructor takes, each between blanks
};
constexpr std::string_view kAdamParams =
    " lr betas eps weight_decay bias_correction adam_w_mode amsgrad torch_adam set_grad_none "
    "fp32_optimizer_states foreach fused capturable differentiable maximize ";
constexpr OptimizerRow kOptimizers[] = {
    {"adam", "adamw", 0.9, 0.999, 1e-8, kAdamParams},
    {"adamw", "adamw", 0.9, 0.999, 1e-8, kAdamParams},
    {"lamb", "lamb", 0.9, 0.999, 1e-8,
     " lr betas eps weight_decay bias_correction eps_inside_sqrt max_coeff min_coeff amsgrad "},
    {"sgd", "sgd", -1, -1, -1,
     " lr momentum dampening weight_decay nesterov maximize foreach fused differentiable "},
    {"lion", "lion", 0.9, 0.99, -1, " lr betas weight_decay set_grad_none fp32_optimizer_states "}};

constexpr std::string_view kWithoutEffect =
    " torch_adam set_grad_none fp32_optimizer_states foreach fused capturable differentiable ";
constexpr std::string_view kMustBeOff = " amsgrad maximize eps_inside_sqrt dampening ";

bool lists(std::string_view names, const std::string& name) {
  return name.find(' ') == name.npos && names.find(" " + name + " ") != names.npos;
}

std::string in_lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

void sort_params(Reader& reader, const OptimizerRow& row, const Json& params) {
  for (const auto& [name, value] : params.items()) {
    const std::string path = kParams + "." + name_text(name);
    if (name == "max_grad_norm")
      reader.refuse(path, "DeepSpeed refuses it, too: gradient_clipping is its key for that");
    else if (!lists(row.params, name))
      reader.refuse(path, strf("%s has no such parameter", std::string(row.type).c_str()));
    else if (lists(kWithoutEffect, name))
      reader.note(path, path + " has no effect: the update is the same rule");
    else if (lists(kMustBeOff, name) && is_on(value))
      reader.refuse(path, "the update has no such variant");
  }
}

void read_betas(Reader& reader, const OptimizerRow& row) {
  const std::string path = kParams + ".betas";
  const Json* betas = reader.find(path);
  if (row.beta1 < 0) return;
  if (reader.is_auto(path)) return reader.note(path, path + " is \"auto\": optim.beta1 and optim.beta2 hold");
  double values[] = {row.beta1, row.beta2};
  if (betas) {
    const bool pair = betas->is_array() && betas->size() == 2;
    for (size_t i = 0; i < 2; ++i) {
      const double value = pair && betas->at(i).is_number() ? betas->at(i).get<double>() : -1;
      if (!(value >= 0 && value < 1)) reader.wrong(path, "two numbers from 0 to below 1");
      values[i] = value;
    }
  }
  reader.set("optim.beta1", values[0], path);
  reader.set("optim.beta2", values[1], path);
}

// Adam decays weights apart from the gradient unless told otherwise; AdamW always does.
std::string optimizer_name(Reader& reader, const OptimizerRow& row) {
  const bool apart = reader.flag(kParams + ".adam_w_mode", "").value_or(true);
  return row.type == "adam" && !apart ? "adam" : row.name;
}

void read_special(Reader& reader, const OptimizerRow& row) {
  const std::string name = row.name;
  const auto flag = [&](const char* param, bool otherwise) {
    return reader.flag(kParams + "." + param, "").value_or(otherwise);
  };
  if (lists(row.params, "bias_correction"))
    reader.set("optim.bias_correction", flag("bias_correction", true), kParams + ".bias_correction");
  if (name == "sgd") {
    reader.take_number(kParams + ".momentum", "optim.momentum", {0, 0.9999999}, 0);
    reader.set("optim.nesterov", flag("nesterov", false), kParams + ".nesterov");
  }
  if (name == "lamb") {
    reader.take_number(kParams + ".min_coeff", "optim.trust_min", {0, 1e30}, 0.01);
    reader.take_number(kParams + ".max_coeff", "optim.trust_max", {1e-30, 1e30}, 10);
    reader.set("optim.adapt_all", true, "optimizer.type");
  }
}

void read_params(Reader& reader, const OptimizerRow& row) {
  reader.set("optim.name", optimizer_name(reader, row), "optimizer.type");
  reader.set("optim.decay", "usual", "optimizer.type");
  reader.take_number(kParams + ".lr", "optim.lr", {1e-30, 1e30}, 1e-3);
  // torch's AdamW has another default than DeepSpeed's own.
  const bool torch = reader.flag(kParams + ".torch_adam", "").value_or(false);
  const bool decays = torch && optimizer_name(reader, row) == "adamw";
  reader.take_number(kParams + ".weight_decay", "optim.weight_decay", {0, 1e30}, decays ? 0.01 : 0);
  read_betas(reader, row);
  if (row.eps >= 0) reader.take_number(kParams + ".eps", "optim.eps", {0, 1}, row.eps);
  read_special(reader, row);
}

}  // namespace

void read_optimizer(Reader& reader) {
  const Json* block = reader.find("optimizer");
  if (!block) return;
  if (!block->is_object()) reader.wrong("optimizer", "an object with type and params");
  const Json* params = reader.find(kParams);
  if (params && !params->is_object()) reader.wrong(kParams, "an object");
  for (const auto& [name, value] : block->items())
    if (name != "type" && name != "params")
      reader.note("optimizer." + name_text(name), "optimizer." + name_text(name) + " has no effect");
  const std::string type = reader.word("optimizer.type");
  if (type.empty() || type == "auto") reader.wrong("optimizer.type", "Adam, AdamW, Lamb, SGD or Lion");
  const auto* row = std::find_if(std::begin(kOptimizers), std::end(kOptimizers),
                                 [&](const OptimizerRow& one) { return one.type == in_lower_case(type); });
  if (row == std::end(kOptimizers))
    return reader.refuse("optimizer.type",
                         "it is " + name_text(type) + "; there are Adam, AdamW, Lamb, SGD and Lion");
  if (params) sort_params(reader, *row, *params);
  read_params(reader, *row);
  // DeepSpeed leaves the rate as it is unless the file or the program has a schedule.
  if (!reader.find("scheduler") && reader.given_by("schedule.kind") == GivenBy::kDefault) {
    reader.set("schedule.kind", "constant", "scheduler");
    reader.note("scheduler", "the file has no scheduler: the learning rate stays constant (schedule.kind)");
  }
}

}  // namespace vitrail::deepspeed
