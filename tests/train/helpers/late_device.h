// This machine as a device with streams beside the programs' own, and slow ones: an upload there reads the
// host's bytes as late as it may, so that bytes reused too early are noticed.
#pragma once

#include <cstring>
#include <functional>
#include <vector>

#include "backend/wrapped_device.h"

namespace vitrail::testing {

class LateDevice : public WrappedDevice {
 public:
  Stream& stream() override { return programs_; }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<LateStream>(*this); }
  std::unique_ptr<Event> create_event() override { return std::make_unique<CountedEvent>(host_waits); }
  void stamp(Timestamp& time) override {
    if (while_it_works) while_it_works();
    WrappedDevice::stamp(time);
  }
  void finish() override {
    for (const Upload& one : pending) host().upload(one.target, one.host, one.bytes);
    pending.clear();
  }

  struct Upload {
    void* target;
    const void* host;
    size_t bytes;
  };
  std::vector<Upload> pending;
  int host_waits = 0;                    // of the host for an event
  int waits = 0;                         // of the programs for an event
  std::function<void()> while_it_works;  // called as nodes run

 private:
  class CountedEvent : public Event {
   public:
    explicit CountedEvent(int& waits) : waits_(waits) {}
    void synchronize() override { ++waits_; }

   private:
    int& waits_;
  };
  class Programs : public Stream {
   public:
    explicit Programs(LateDevice& device) : device_(device) {}
    void upload(void* target, const void* host, size_t bytes) override {
      device_.host().upload(target, host, bytes);
    }
    void copy(void* target, const void* source, size_t bytes) override {
      device_.host().copy(target, source, bytes);
    }
    void record(Event&) override {}
    void wait(const Event&) override {
      device_.finish();
      ++device_.waits;
    }

   private:
    LateDevice& device_;
  };
  class LateStream : public Programs {
   public:
    explicit LateStream(LateDevice& device) : Programs(device), device_(device) {}
    void upload(void* target, const void* host, size_t bytes) override {
      std::memset(target, 0x7f, bytes);  // neither the old nor the new
      device_.pending.push_back({target, host, bytes});
    }
    void wait(const Event&) override {}

   private:
    LateDevice& device_;
  };

  Programs programs_{*this};
};

}  // namespace vitrail::testing
