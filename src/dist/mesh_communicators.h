// The groups of a mesh: one communicator for every set of axes along which this rank has partners. A rank
// holds one of these, and hands collectives to the group of their axes.
#pragma once

#include <array>

#include "dist/communicator.h"
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
  // Moves on what is on its way in any group.
  void poll();
  // Makes every rank of the run fail where it waits.
  void abort(const std::string& why) { world_->abort(why); }

 private:
  AxisSet wider_than_one(AxisSet axes) const;

  Mesh mesh_;
  std::unique_ptr<Communicator> world_;
  std::array<std::unique_ptr<Communicator>, kAxisSets> groups_;
};

}  // namespace vitrail
