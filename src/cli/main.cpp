#include <fcntl.h>
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
}  // namespace

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return vitrail::cli::run(arguments);
}
