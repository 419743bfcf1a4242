#include "dist/mesh_communicators.h"

#include "base/error.h"

namespace vitrail {

MeshCommunicators::MeshCommunicators(std::unique_ptr<Communicator> world, const Mesh& mesh)
    : mesh_(mesh), world_(std::move(world)) {
  VT_CHECK(mesh.world() == world_->size() && mesh.rank == world_->rank(), "%s for rank %d of %d",
           to_string(mesh).c_str(), world_->rank(), world_->size());
  for (unsigned bits = 1; bits < kAxisSets; ++bits) {
    const AxisSet axes = AxisSet::from_bits(bits);
    if (wider_than_one(axes) != axes || mesh.size(axes) == mesh.world()) continue;
    groups_[bits] = world_->split(mesh.group(axes), mesh.coordinate(axes));
  }
}

// The axes without those of one rank, along which there is no partner.
AxisSet MeshCommunicators::wider_than_one(AxisSet axes) const {
  AxisSet wide;
  for (const Axis axis : kAxes)
    if (axes.has(axis) && mesh_.size(axis) > 1) wide = wide.with(axis);
  return wide;
}

Communicator& MeshCommunicators::over(AxisSet axes) {
  const AxisSet wide = wider_than_one(axes);
  if (mesh_.size(wide) == mesh_.world()) return *world_;
  VT_CHECK(groups_[wide.bits()], "no group along %s", to_string(axes).c_str());
  return *groups_[wide.bits()];
}

DeviceCommunicator& MeshCommunicators::devices_over(AxisSet axes) {
  VT_CHECK(transport_, "the devices of these ranks have no transport");
  const AxisSet wide = wider_than_one(axes);
  std::unique_ptr<DeviceCommunicator>& devices = devices_[wide.bits()];
  if (!devices) devices = transport_->join(over(wide));
  return *devices;
}

void MeshCommunicators::abort(const std::string& why) {
  world_->abort(why);
  for (const auto& devices : devices_)
    if (devices) devices->abort(why);
}

void MeshCommunicators::poll() {
  world_->poll();
  for (const auto& group : groups_)
    if (group) group->poll();
}

}  // namespace vitrail
