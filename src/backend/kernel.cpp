#include "backend/kernel.h"

#include <algorithm>

#include "ops/fused.h"
#include "ops/grouped.h"

namespace vitrail {

namespace {
constexpr std::string_view kFused = "fused";
}  // namespace

OpKernels fused_row(std::vector<Kernel> kernels) {
  return {std::string(kFused), std::move(kernels)};
}

std::string_view row_name(const Op& op) {
  return dynamic_cast<const FusedOp*>(&op) ? kFused : op.kind();
}

void Kernel::run(const KernelArgs& args) const {
  std::vector<TensorDesc> ins, outs;
  for (const TensorView& view : args.ins) ins.push_back(view.desc());
  for (const TensorView& view : args.outs) outs.push_back(view.desc());
  prepare({args.op, ins, outs}, args.context.device).run(args);
}

const std::vector<Kernel>* Backend::find(std::string_view row) const {
  for (const OpKernels& served : kernels())
    if (served.op == row) return &served.kernels;
  return nullptr;
}

RewriteTraits Backend::traits() const {
  RewriteTraits traits = fusing();
  traits.groups = [this](std::string_view kind) { return find(GroupedOp::kind_of(kind)) != nullptr; };
  return traits;
}

const std::vector<Kernel>* Backend::kernels_of(const NodeView& node) const {
  return find(row_name(node.op));
}

std::vector<const Kernel*> Backend::candidates(const NodeView& node, const DeviceInfo& device) const {
  std::vector<const Kernel*> ordered;
  const std::vector<Kernel>* list = kernels_of(node);
  if (!list) return ordered;
  const auto key = device.kernels ? tune_key(node, device) : std::nullopt;
  const std::vector<std::string>* preferred = key ? device.kernels->find(*key) : nullptr;
  if (preferred)
    for (const std::string& name : *preferred)
      for (const Kernel& kernel : *list)
        if (name == kernel.name) ordered.push_back(&kernel);
  for (const Kernel& kernel : *list) {
    const bool waits = kernel.only_by_table && !(kernel.by_default && kernel.by_default(node, device));
    if (!waits && std::find(ordered.begin(), ordered.end(), &kernel) == ordered.end())
      ordered.push_back(&kernel);
  }
  return ordered;
}

Choice Backend::choose(const NodeView& node, const DeviceInfo& device) const {
  Choice choice;
  for (const Kernel* kernel : candidates(node, device)) {
    std::string reason = kernel->declines(node, device);
    if (reason.empty()) {
      choice.kernel = kernel;
      return choice;
    }
    choice.declined.push_back(std::string(kernel->name) + ": " + reason);
  }
  if (dynamic_cast<const FusedOp*>(&node.op)) return choice;
  std::string message = strf("backend %s has no kernel for %s", name(), std::string(node.op.kind()).c_str());
  for (const std::string& reason : choice.declined) message += "; " + reason;
  throw Error(ErrorKind::kDevice, message);
}

void require_arithmetic(const Backend& backend, const DeviceInfo& device, Arithmetic arithmetic) {
  if (const std::string reason = backend.unsupported_reason(arithmetic, device); !reason.empty())
    throw Error(ErrorKind::kUsage, reason, "--dtype f32 or bf16 run everywhere");
}

}  // namespace vitrail
