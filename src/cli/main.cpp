// The program: standard descriptors and memory are prepared before the command runs.
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "cli/run.h"

namespace {
// A program may be started with closed standard descriptors. The next files opened would get their numbers,
// and messages meant for a terminal would be written into them.
void occupy_standard_descriptors() {
  int fd;
  do fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) ::close(fd);
}

// glibc reserves 64 MiB of address space for each thread that allocates. Under ulimit -v the reservations
// exhaust the limit and decoding fails, so all threads share one arena there.
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
