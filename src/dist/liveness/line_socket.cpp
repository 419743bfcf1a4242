#include "dist/liveness/line_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace vitrail::liveness {

namespace {
constexpr size_t kMostBytes = size_t{1} << 20;  // of a line, and of what waits to be sent
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}
Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

LineSocket::LineSocket(Descriptor fd) : fd_(std::move(fd)) {
  const int on = 1;
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
}

void LineSocket::send(const std::string& line) {
  unsent_ += line + '\n';
  if (unsent_.size() > kMostBytes) closed_ = true;
  flush();
}

void LineSocket::flush() {
  while (!unsent_.empty() && !closed_) {
    const ssize_t sent = ::send(fd_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent >= 0)
      unsent_.erase(0, static_cast<size_t>(sent));
    else if (errno == EAGAIN)
      return;
    else if (errno != EINTR)
      closed_ = true;
  }
}

std::vector<std::string> LineSocket::receive() {
  char part[4096];
  while (!closed_) {
    const ssize_t got = ::recv(fd_.get(), part, sizeof part, 0);
    if (got > 0)
      received_.append(part, static_cast<size_t>(got));
    else if (got < 0 && errno == EAGAIN)
      break;
    else if (got == 0 || errno != EINTR)
      closed_ = true;
    if (received_.size() > kMostBytes) closed_ = true;
  }
  std::vector<std::string> lines;
  size_t start = 0;
  for (size_t end; (end = received_.find('\n', start)) != std::string::npos; start = end + 1)
    lines.push_back(received_.substr(start, end - start));
  received_.erase(0, start);
  return lines;
}

bool LineSocket::unacknowledged() const {
  int bytes = 0;
  return ::ioctl(fd_.get(), SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

}  // namespace vitrail::liveness
