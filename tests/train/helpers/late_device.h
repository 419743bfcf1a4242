// This machine as a device with a lane of its own for uploads, and a slow one: an upload aside reads the
// host's bytes as late as it may, so that bytes reused too early are noticed.
#pragma once

#include <cstring>
#include <functional>
#include <vector>

#include "backend/device.h"

namespace vitrail::testing {

class LateDevice : public Device {
 public:
  std::byte* allocate(size_t bytes) override { return host_->allocate(bytes); }
  void release(std::byte* data) override { host_->release(data); }
  bool shares_host_memory() const override { return true; }
  void upload(void* target, const void* host, size_t bytes) override { host_->upload(target, host, bytes); }
  void download(void* host, const void* source, size_t bytes) override {
    host_->download(host, source, bytes);
  }
  void copy(void* target, const void* source, size_t bytes) override { host_->copy(target, source, bytes); }
  void clear(void* target, size_t bytes) override { host_->clear(target, bytes); }
  void mark(size_t slot) override {
    if (while_it_works) while_it_works();
    host_->mark(slot);
  }
  double seconds_between(size_t from, size_t to) override { return host_->seconds_between(from, to); }

  void upload_aside(void* landing, const void* host, size_t bytes) override {
    std::memset(landing, 0x7f, bytes);  // neither the old nor the new
    pending.push_back({landing, host, bytes});
  }
  void take(void* target, const void* landing, size_t bytes) override {
    finish();
    copy(target, landing, bytes);
    ++taken;
  }
  void finish() override {
    for (const Upload& one : pending) host_->upload(one.landing, one.host, one.bytes);
    pending.clear();
  }

  struct Upload {
    void* landing;
    const void* host;
    size_t bytes;
  };
  std::vector<Upload> pending;
  int taken = 0;
  std::function<void()> while_it_works;  // called as nodes run

 private:
  std::unique_ptr<Device> host_ = open_device({});
};

}  // namespace vitrail::testing
