#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "cli/run.h"

namespace {
// A program may be started with standard descriptors closed. The next files opened would take their numbers,
// and talk meant for a terminal would go into them.
void occupy_standard_descriptors() {
  int fd;
  do fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) ::close(fd);
}

// Each thread would reserve 64 MiB for what it allocates, as if address space cost nothing: under ulimit -v
// that is all there is, and decoding fails for want of it.
void spare_address_space() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) ::mallopt(M_ARENA_MAX, 1);
}
}  // namespace

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  spare_address_space();
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return vitrail::cli::run(arguments);
}
