// This machine as a device with memory of its own, in which streams beside the programs' do their work as
// late as they may: when somebody waits for it. A copy that nobody waits for has not happened, and one
// between two places of the same memory ends the test.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "backend/wrapped_device.h"
#include "base/error.h"

namespace vitrail::testing {

class QueueDevice : public WrappedDevice {
 public:
  bool shares_host_memory() const override { return false; }
  MemorySource* host_memory() override { return &locked_; }
  const MemorySource& locked() const { return locked_; }
  std::byte* allocate(size_t bytes) override {
    std::byte* const data = WrappedDevice::allocate(bytes);
    sizes_[data] = bytes;
    return data;
  }
  void release(std::byte* data) override {
    sizes_.erase(data);
    WrappedDevice::release(data);
  }
  Stream& stream() override { return programs_; }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<Queue>(*this); }
  std::unique_ptr<Event> create_event() override { return std::make_unique<Mark>(); }
  void download(void* host, const void* source, size_t bytes) override {
    move(host, source, bytes, false, true);
  }
  void clear(void* target, size_t bytes) override {
    VT_CHECK(bytes == 0 || is_own(target), "what is cleared lies on the host");
    WrappedDevice::clear(target, bytes);
  }

  int late = 0;  // copies that were made behind their call

 private:
  // What a stream still has to do; it never goes away before its events.
  struct Work {
    std::vector<std::function<void()>> calls;
    size_t done = 0;
    void reach(size_t count) {
      for (; done < count; ++done) calls[done]();
    }
  };
  class Mark : public Event {
   public:
    void synchronize() override {
      if (work) work->reach(count);
    }
    bool reached() override { return !work || work->done >= count; }
    std::shared_ptr<Work> work;
    size_t count = 0;
  };
  class Queue : public Stream {
   public:
    explicit Queue(QueueDevice& device) : device_(device) {}
    void upload(void* target, const void* host, size_t bytes) override {
      add(target, host, bytes, true, false);
    }
    void download(void* host, const void* source, size_t bytes) override {
      add(host, source, bytes, false, true);
    }
    void copy(void* target, const void* source, size_t bytes) override {
      add(target, source, bytes, true, true);
    }
    void record(Event& event) override {
      auto& mark = dynamic_cast<Mark&>(event);
      mark.work = work_, mark.count = work_->calls.size();
    }
    void wait(const Event&) override {}  // the programs' work is done when it is enqueued

   private:
    void add(void* target, const void* source, size_t bytes, bool to_own, bool from_own) {
      work_->calls.emplace_back([this, target, source, bytes, to_own, from_own] {
        device_.move(target, source, bytes, to_own, from_own);
        ++device_.late;
      });
    }
    QueueDevice& device_;
    std::shared_ptr<Work> work_ = std::make_shared<Work>();
  };
  class Programs : public Stream {
   public:
    explicit Programs(QueueDevice& device) : device_(device) {}
    void upload(void* target, const void* host, size_t bytes) override {
      device_.move(target, host, bytes, true, false);
    }
    void copy(void* target, const void* source, size_t bytes) override {
      device_.move(target, source, bytes, true, true);
    }
    void record(Event& event) override { dynamic_cast<Mark&>(event).work = nullptr; }
    void wait(const Event& event) override {
      if (const auto& mark = dynamic_cast<const Mark&>(event); mark.work) mark.work->reach(mark.count);
    }

   private:
    QueueDevice& device_;
  };
  class Locked : public MemorySource {
   public:
    std::byte* allocate(size_t bytes) override { return process_memory().allocate(bytes); }
    void release(std::byte* data) override { process_memory().release(data); }
  };

  bool is_own(const void* place) const {
    const auto* at = static_cast<const std::byte*>(place);
    return std::any_of(sizes_.begin(), sizes_.end(), [&](const auto& one) {
      return at >= one.first && at < one.first + std::max<size_t>(one.second, 1);
    });
  }
  void move(void* target, const void* source, size_t bytes, bool to_own, bool from_own) {
    if (bytes == 0) return;
    VT_CHECK(is_own(target) == to_own && is_own(source) == from_own, "a copy in the wrong direction");
    std::copy_n(static_cast<const std::byte*>(source), bytes, static_cast<std::byte*>(target));
  }

  std::map<const std::byte*, size_t> sizes_;
  Programs programs_{*this};
  Locked locked_;
};

}  // namespace vitrail::testing
