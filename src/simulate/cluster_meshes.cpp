// Which meshes a cluster is asked about, and the settings that ask.
#include "simulate/cluster_plan.h"

namespace vitrail {

std::vector<MeshConfig> sensible_meshes(const MeshConfig& asked, const VitConfig& model, int64_t nodes,
                                        int64_t devices, bool pipelines) {
  std::vector<MeshConfig> meshes;
  const int64_t world = nodes * devices;
  for (int64_t tp = 1; tp <= devices; ++tp) {
    if (model.heads % tp != 0 || devices % tp != 0) continue;
    for (int64_t pp = 1; pp <= (pipelines ? std::min<int64_t>(model.depth, world) : 1); pp *= 2) {
      if (world % (tp * pp) != 0) continue;
      for (int64_t zero = 0; zero <= (pp > 1 ? 1 : 3); ++zero) {
        MeshConfig mesh = asked;
        mesh.tp = tp, mesh.pp = pp, mesh.sp = 1, mesh.zero = zero;
        mesh.dp = world / (tp * pp);
        if (zero > 0 && mesh.dp == 1) continue;
        meshes.push_back(mesh);
      }
    }
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
