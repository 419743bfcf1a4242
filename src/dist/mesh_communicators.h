// The groups of a mesh: one communicator for every set of axes along which this rank has partners, and, where
// devices exchange values themselves, one of devices for every set that is used. A rank holds one of these,
// and hands collectives to the group of their axes.
#pragma once

#include <array>

#include "dist/communicator.h"
#include "dist/device_communicator.h"
#include "tensor/mesh.h"

namespace vitrail {

class MeshCommunicators {
 public:
  // All ranks of `world` must call it with the same mesh, each with its own rank.
  MeshCommunicators(std::unique_ptr<Communicator> world, const Mesh& mesh);

  const Mesh& mesh() const { return mesh_; }
  Communicator& world() { return *world_; }
  // The group of ranks that differ from this one in `axes` alone.
  Communicator& over(AxisSet axes);
  // Devices exchange values themselves from here on; every rank must call it before its first program.
  void use(std::unique_ptr<DeviceTransport> transport) { transport_ = std::move(transport); }
  // "nccl"; null: values of devices travel through the host.
  const char* device_transport() const { return transport_ ? transport_->name() : nullptr; }
  // The devices of the ranks of over(axes). The first call for a group is a collective of its ranks.
  DeviceCommunicator& devices_over(AxisSet axes);
  // Moves on what is on its way in any group.
  void poll();
  // Makes every rank of the run fail where it waits.
  void abort(const std::string& why);

 private:
  AxisSet wider_than_one(AxisSet axes) const;

  Mesh mesh_;
  std::unique_ptr<Communicator> world_;
  std::array<std::unique_ptr<Communicator>, kAxisSets> groups_;
  // The transport and its communicators are destroyed before the groups that they watch.
  std::unique_ptr<DeviceTransport> transport_;
  std::array<std::unique_ptr<DeviceCommunicator>, kAxisSets> devices_;
};

}  // namespace vitrail
