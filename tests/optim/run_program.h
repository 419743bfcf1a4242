// Runs a recorded Program node by node on the reference backend, its persistent values kept under their
// names.
#pragma once

#include <map>
#include <vector>

#include "backend/ref/kernels.h"
#include "graph/builder.h"

namespace vitrail {

class ProgramRunner {
 public:
  explicit ProgramRunner(Program program) : program_(std::move(program)) {
    for (const Value& value : program_.values)
      storage_.emplace_back(value.desc.bytes() / sizeof(double) + 1, 0.0);
  }

  void set(const std::string& name, const std::vector<double>& values) {
    const ValueId id = find(name);
    convert_floats(values.data(), DType::kF64, storage_[static_cast<size_t>(id)].data(),
                   program_.values[static_cast<size_t>(id)].desc.dtype, values.size());
  }
  std::vector<double> get(const std::string& name) const {
    const ValueId id = find(name);
    const TensorDesc& desc = program_.values[static_cast<size_t>(id)].desc;
    std::vector<double> values(static_cast<size_t>(desc.elems()));
    convert_floats(storage_[static_cast<size_t>(id)].data(), desc.dtype, values.data(), DType::kF64,
                   values.size());
    return values;
  }
  std::vector<std::string> persistent() const {
    std::vector<std::string> names;
    for (const Value& value : program_.values)
      if (value.persistent()) names.push_back(value.name);
    return names;
  }
  const Program& program() const { return program_; }

  void run() {
    for (const Node& node : program_.nodes) {
      const auto ins = program_.descs(node.ins), outs = program_.descs(node.outs);
      const Choice choice = ref_backend().choose({*node.op, ins, outs}, device_);
      const std::vector<TensorView> in_views = views(node.ins), out_views = views(node.outs);
      choice.kernel->run({*node.op, in_views, out_views, {}, context_});
    }
  }

 private:
  ValueId find(const std::string& name) const {
    for (size_t i = 0; i < program_.values.size(); ++i)
      if (program_.values[i].name == name && program_.values[i].kind != ValueKind::kComputed)
        return static_cast<ValueId>(i);
    return program_.output(name);
  }
  std::vector<TensorView> views(const std::vector<ValueId>& ids) {
    std::vector<TensorView> result;
    result.reserve(ids.size());
    for (ValueId id : ids)
      result.emplace_back(storage_[static_cast<size_t>(id)].data(),
                          program_.values[static_cast<size_t>(id)].desc);
    return result;
  }

  Program program_;
  std::vector<std::vector<double>> storage_;
  DeviceInfo device_{};
  ThreadPool pool_{1};
  LaunchContext context_{pool_, device_};
};

}  // namespace vitrail
