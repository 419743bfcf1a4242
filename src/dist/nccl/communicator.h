// The device communicator of one rank of a group over NCCL. Every collective is one group of NCCL's calls, so
// that pieces of any size, nothing included, travel at once.
#pragma once

#include <memory>

#include "dist/device_communicator.h"
#include "dist/nccl/guard.h"

namespace vitrail::nccl {

class NcclCommunicator : public DeviceCommunicator {
 public:
  NcclCommunicator(std::shared_ptr<Guard> guard, const Library& library, Communicator& group, Comm comm,
                   double deadline_s);
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void enqueue(const Collective& collective, void* stream) override;
  void check() override { watched_.throw_if_failed(); }
  void abort(const std::string& why) override { watched_.fail(ErrorKind::kComm, why); }
  double deadline_s() const override { return watched_.deadline_s(); }

 private:
  // These make the calls of which one collective is made; each returns NCCL's first error.
  Status calls_of(const Collective& collective, void* stream) const;
  Status reduce_scatter(const Collective& c, void* stream) const;
  Status all_gather(const Collective& c, void* stream) const;
  Status all_to_all(const Collective& c, void* stream) const;
  void settle(const std::string& what);

  std::shared_ptr<Guard> guard_;
  Watched watched_;
  int rank_, size_;
};

}  // namespace vitrail::nccl
