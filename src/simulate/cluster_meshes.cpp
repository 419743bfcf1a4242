// Finds which meshes a cluster is asked about, and the settings that ask.
#include "simulate/cluster_plan.h"

namespace vitrail {

std::vector<MeshConfig> sensible_meshes(const MeshConfig& asked, const VitConfig& model, int64_t nodes,
                                        int64_t devices, bool pipelines) {
  std::vector<MeshConfig> meshes;
  const int64_t world = nodes * devices;
  const auto add = [&](int64_t tp, int64_t sp, int64_t pp) {
    if (world % (tp * sp * pp) != 0) return;
    for (int64_t zero = 0; zero <= (pp > 1 ? 1 : 3); ++zero) {
      MeshConfig mesh = asked;
      mesh.tp = tp;
      mesh.sp = sp;
      mesh.pp = pp;
      mesh.zero = zero;
      mesh.dp = world / (tp * sp * pp);
      if (zero == 0 || mesh.dp > 1) meshes.push_back(mesh);
    }
  };
  // Both share out heads, within a node.
  const auto shares = [&](int64_t ranks) { return model.heads % ranks == 0 && devices % ranks == 0; };
  for (int64_t tp = 1; tp <= devices; ++tp)
    for (int64_t sp = 1; tp * sp <= devices; ++sp) {
      if (!shares(tp * sp)) continue;
      const int64_t stages = pipelines && sp == 1 ? std::min<int64_t>(model.depth, world) : 1;
      for (int64_t pp = 1; pp <= stages; pp *= 2) add(tp, sp, pp);
    }
  return meshes;
}

const ClusterRow* ClusterPlan::runner_up() const {
  for (size_t i = 1; i < rows.size(); ++i)
    if (rows[i].runs()) return &rows[i];
  return nullptr;
}

std::vector<FieldSpec> cluster_fields() {
  std::vector<FieldSpec> specs;
  const ClusterSettings usual;
  ClusterSettings::fields(usual, [&](const char* name, const auto& field, const char* help) {
    specs.push_back(field_spec<std::decay_t<decltype(field)>>(name, help));
    if (std::string_view(name) == "nodes" || std::string_view(name) == "devices")
      specs.back().usual = field_text(field);
  });
  return specs;
}

}  // namespace vitrail
