// A TCP connection that carries lines of text, never waiting to send or to receive. Lines are bounded; what
// they mean is others' matter.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace vitrail::liveness {

// A descriptor that is closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  int get() const { return fd_; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

class LineSocket {
 public:
  explicit LineSocket(Descriptor fd);

  int fd() const { return fd_.get(); }
  bool closed() const { return closed_; }
  bool wants_to_send() const { return !unsent_.empty(); }
  void send(const std::string& line);  // what the system does not take now is kept for flush()
  void flush();
  // The lines that have come whole; an end or an error of the connection sets closed().
  std::vector<std::string> receive();
  // Returns whether bytes that were sent have not been acknowledged by the other side's system: a stopped
  // process acknowledges, a host that is cut off does not.
  bool unacknowledged() const;

 private:
  Descriptor fd_;
  std::string unsent_, received_;
  bool closed_ = false;
};

// Listens on the port of a host's address, 0 for any that is free. Throws Error(kComm) naming both.
Descriptor listen_on(const std::string& host, int port);
int port_of(const Descriptor& listener);
// Returns an invalid descriptor when nobody waits.
Descriptor accept_one(const Descriptor& listener);
// Tries for so long; throws Error(kComm) naming the place.
Descriptor connect_to(const std::string& host, int port, double seconds);
// The address under which other hosts reach this one.
std::string own_address();

}  // namespace vitrail::liveness
