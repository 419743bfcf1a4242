#include "backend/kernel.h"

#include "backend/cpu/kernels.h"
#include "backend/ref/kernels.h"
#include "ops/fused.h"

namespace vitrail {

namespace {
const std::vector<const Backend*>& backends() {
  static const std::vector<const Backend*> list = {&cpu_backend(), &ref_backend()};
  return list;
}
}  // namespace

const std::vector<Kernel>* Backend::find(std::string_view op_kind) const {
  for (const OpKernels& row : kernels())
    if (row.op == op_kind) return &row.kernels;
  return nullptr;
}

Choice Backend::choose(const NodeView& node, const DeviceInfo& device) const {
  const bool fused = dynamic_cast<const FusedOp*>(&node.op) != nullptr;
  Choice choice;
  if (const std::vector<Kernel>* list = find(fused ? "fused" : node.op.kind())) {
    for (const Kernel& kernel : *list) {
      std::string reason = kernel.declines(node, device);
      if (reason.empty()) {
        choice.kernel = &kernel;
        return choice;
      }
      choice.declined.push_back(std::string(kernel.name) + ": " + reason);
    }
  }
  if (fused) return choice;
  std::string message = strf("backend %s has no kernel for %s", name(), std::string(node.op.kind()).c_str());
  for (const std::string& reason : choice.declined) message += "; " + reason;
  throw Error(ErrorKind::kDevice, message);
}

const Backend& find_backend(std::string_view name) {
  std::string known;
  for (const Backend* backend : backends()) {
    if (name == backend->name()) return *backend;
    known += std::string(known.empty() ? "" : ", ") + backend->name();
  }
  throw Error(ErrorKind::kUsage, strf("unknown backend '%s'", std::string(name).c_str()), "one of " + known);
}

}  // namespace vitrail
