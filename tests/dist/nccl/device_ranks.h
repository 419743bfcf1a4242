// The suite of collectives over devices: a communicator of the host's ranks whose collectives are made by a
// device transport, one after another. `perform` brings the values to where the device sees them, and back.
#pragma once

#include <functional>

#include "dist/communicator.h"
#include "dist/device_communicator.h"

namespace vitrail {

class DeviceRanks : public Communicator {
 public:
  using Perform = std::function<void(DeviceCommunicator&, const Collective&)>;

  DeviceRanks(Communicator& host, DeviceTransport& transport, Perform perform)
      : host_(host), transport_(transport), perform_(std::move(perform)), devices_(transport.join(host)) {}

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  const char* transport() const override { return transport_.name(); }
  DeviceCommunicator& devices() { return *devices_; }

  std::unique_ptr<Pending> start(const Collective& c) override {
    if (c.kind == Collective::Kind::kBarrier) return host_.start(c);
    perform_(*devices_, c);
    return std::make_unique<Done>();
  }
  std::unique_ptr<Communicator> split(int color, int key) override {
    parts_.push_back(host_.split(color, key));
    return std::make_unique<DeviceRanks>(*parts_.back(), transport_, perform_);
  }
  void abort(const std::string& why) override { host_.abort(why); }
  std::string failure() const override { return host_.failure(); }

 private:
  class Done : public Pending {
    bool poll() override { return true; }
    void wait() override {}
  };

  Communicator& host_;
  DeviceTransport& transport_;
  Perform perform_;
  std::unique_ptr<DeviceCommunicator> devices_;
  std::vector<std::unique_ptr<Communicator>> parts_;  // they outlive what is made of them
};

}  // namespace vitrail
