// A synthetic device, its streams and its partners, which tell what they are asked for, in order, and answer
// as the test says.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/wrapped_device.h"
#include "dist/communicator.h"
#include "dist/device_communicator.h"

namespace vitrail {

using Lines = std::vector<std::string>;

// What a synthetic device, its streams and its partners do, in order, and what they answer.
struct Scene {
  Lines lines;
  int events = 0, stamps = 0, streams = 0;
  int unreached = 0;        // so many times events say that they are not reached; -1: always
  double deadline_s = 1e9;  // of a group of devices
  bool timed = true;        // else no time is known yet
  Lines taken() { return std::exchange(lines, {}); }
};

struct NumberedEvent : Event {
  NumberedEvent(Scene& s, int n) : scene(s), number(n) {}
  bool reached() override {
    const bool now = scene.unreached == 0;
    if (scene.unreached > 0) --scene.unreached;
    return now;
  }
  void synchronize() override { scene.lines.push_back("synchronize " + std::to_string(number)); }
  Scene& scene;
  int number;
};

struct NumberedStamp : Timestamp {
  explicit NumberedStamp(int n) : number(n) {}
  int number;
};

class ToldStream : public Stream {
 public:
  ToldStream(Scene& scene, std::string name) : scene_(scene), name_(std::move(name)) {}
  void upload(void* target, const void* host, size_t bytes) override { move("upload", target, host, bytes); }
  void download(void* host, const void* source, size_t bytes) override {
    move("download", host, source, bytes);
  }
  void copy(void* target, const void* source, size_t bytes) override { move("copy", target, source, bytes); }
  void record(Event& event) override { tell("record", dynamic_cast<NumberedEvent&>(event).number); }
  void wait(const Event& event) override { tell("wait", dynamic_cast<const NumberedEvent&>(event).number); }
  void stamp(Timestamp& stamp) override { tell("stamp", dynamic_cast<NumberedStamp&>(stamp).number); }

 private:
  void tell(const char* what, int number) {
    scene_.lines.push_back(name_ + " " + what + " " + std::to_string(number));
  }
  void move(const char* what, void* target, const void* source, size_t bytes) {
    tell(what, static_cast<int>(bytes));
    std::memmove(target, source, bytes);
  }
  Scene& scene_;
  std::string name_;
};

// Two timestamps n and n + 1 are n + 1 quarters of a second apart.
class ToldDevice : public WrappedDevice {
 public:
  ToldDevice(Scene& scene, bool apart) : scene_(scene), apart_(apart), programs_(scene, "programs") {}
  bool shares_host_memory() const override { return !apart_; }
  MemorySource* host_memory() override { return &process_memory(); }
  Stream& stream() override { return programs_; }
  std::unique_ptr<Stream> create_stream() override {
    ++scene_.streams;
    return std::make_unique<ToldStream>(scene_, "beside");
  }
  std::unique_ptr<Event> create_event() override {
    return std::make_unique<NumberedEvent>(scene_, scene_.events++);
  }
  std::unique_ptr<Timestamp> create_timestamp() override {
    return std::make_unique<NumberedStamp>(scene_.stamps++);
  }
  void stamp(Timestamp& time) override { programs_.stamp(time); }
  std::optional<double> seconds_apart(const Timestamp& from, const Timestamp& to) override {
    const int first = dynamic_cast<const NumberedStamp&>(from).number;
    EXPECT_EQ(dynamic_cast<const NumberedStamp&>(to).number, first + 1);
    return scene_.timed ? std::optional(0.25 * (first + 1)) : std::nullopt;
  }
  void finish() override { scene_.lines.emplace_back("finish"); }

 private:
  Scene& scene_;
  bool apart_;
  ToldStream programs_;
};

// A group of one rank whose collectives take a moment.
class ToldWorld : public Communicator {
 public:
  explicit ToldWorld(Scene& scene) : scene_(scene) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const char* transport() const override { return "told"; }
  std::unique_ptr<Pending> start(const Collective& c) override {
    scene_.lines.emplace_back(to_string(c.kind));
    if (c.in) std::memmove(c.out, c.in, c.counts[0] * size_of(c.dtype));
    return std::make_unique<Brief>();
  }
  std::unique_ptr<Communicator> split(int, int) override { return std::make_unique<ToldWorld>(scene_); }
  void abort(const std::string& why) override { scene_.lines.push_back("abort: " + why); }

 private:
  class Brief : public Pending {
    bool poll() override { return false; }
    void wait() override { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }
  };
  Scene& scene_;
};

class ToldDevices : public DeviceCommunicator {
 public:
  explicit ToldDevices(Scene& scene) : scene_(scene) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void enqueue(const Collective& c, void*) override {
    scene_.lines.push_back(std::string("enqueue ") + to_string(c.kind));
  }
  void check() override { scene_.lines.emplace_back("check"); }
  void abort(const std::string& why) override { scene_.lines.push_back("abort: " + why); }
  double deadline_s() const override { return scene_.deadline_s; }

 private:
  Scene& scene_;
};

class ToldTransport : public DeviceTransport {
 public:
  explicit ToldTransport(Scene& scene) : scene_(scene) {}
  const char* name() const override { return "told"; }
  std::unique_ptr<DeviceCommunicator> join(Communicator&) override {
    return std::make_unique<ToldDevices>(scene_);
  }

 private:
  Scene& scene_;
};

}  // namespace vitrail
