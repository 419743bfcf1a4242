// A device that hands every call on to another one: the base of those that change a few of them, as a slow
// CPU or the stand-ins of tests do.
#pragma once

#include <memory>
#include <utility>

#include "backend/device.h"

namespace vitrail {

class WrappedDevice : public Device {
 public:
  explicit WrappedDevice(std::unique_ptr<Device> host = open_host_device()) : host_(std::move(host)) {}

  std::byte* allocate(size_t bytes) override { return host_->allocate(bytes); }
  void release(std::byte* data) override { host_->release(data); }
  bool shares_host_memory() const override { return host_->shares_host_memory(); }
  Stream& stream() override { return host_->stream(); }
  std::unique_ptr<Stream> create_stream() override { return host_->create_stream(); }
  std::unique_ptr<Event> create_event() override { return host_->create_event(); }
  void* launch_handle() override { return host_->launch_handle(); }
  void download(void* host, const void* source, size_t bytes) override {
    host_->download(host, source, bytes);
  }
  void clear(void* target, size_t bytes) override { host_->clear(target, bytes); }
  void finish() override { host_->finish(); }
  std::unique_ptr<Timestamp> create_timestamp() override { return host_->create_timestamp(); }
  void stamp(Timestamp& time) override { host_->stamp(time); }
  std::optional<double> seconds_apart(const Timestamp& from, const Timestamp& to) override {
    return host_->seconds_apart(from, to);
  }

 protected:
  Device& host() { return *host_; }

 private:
  std::unique_ptr<Device> host_;
};

}  // namespace vitrail
