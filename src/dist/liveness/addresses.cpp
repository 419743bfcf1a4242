// TCP sockets by host and port: listening, accepting, connecting within a time.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/timing.h"
#include "dist/liveness/line_socket.h"

namespace vitrail::liveness {

namespace {

sockaddr_in address_of(const std::string& host, int port) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  const int code = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  VT_REQUIRE(code == 0, ErrorKind::kComm, "the host %s has no address: %s", host.c_str(),
             ::gai_strerror(code));
  sockaddr_in address{};
  std::memcpy(&address, found->ai_addr, sizeof address);
  ::freeaddrinfo(found);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

Descriptor tcp_socket() {
  Descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  VT_REQUIRE(fd.get() >= 0, ErrorKind::kComm, "no socket could be made: %s", std::strerror(errno));
  return fd;
}

}  // namespace

Descriptor listen_on(const std::string& host, int port) {
  Descriptor fd = tcp_socket();
  const sockaddr_in address = address_of(host, port);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), 1024) != 0)
    throw Error(ErrorKind::kComm,
                strf("the port %d of %s, on which ranks would report, cannot be used: %s", port, host.c_str(),
                     std::strerror(errno)),
                "another port; 0 takes any that is free");
  return fd;
}

int port_of(const Descriptor& listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

Descriptor accept_one(const Descriptor& listener) {
  return Descriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

Descriptor connect_to(const std::string& host, int port, double seconds) {
  const sockaddr_in address = address_of(host, port);
  const auto start = Clock::now();
  while (true) {
    Descriptor fd = tcp_socket();
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
    VT_REQUIRE(seconds_since(start) < seconds, ErrorKind::kComm,
               "the port %d of %s, on which ranks report, does not answer: %s", port, host.c_str(),
               std::strerror(errno));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

std::string own_address() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return "127.0.0.1";
  std::string found = "127.0.0.1";
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET) continue;
    if (!(one->ifa_flags & IFF_UP) || (one->ifa_flags & IFF_LOOPBACK)) continue;
    char text[INET_ADDRSTRLEN] = "";
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text)) found = text;
    break;
  }
  ::freeifaddrs(all);
  return found;
}

}  // namespace vitrail::liveness
