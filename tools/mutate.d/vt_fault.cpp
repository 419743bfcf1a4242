#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace {
std::atomic<bool> reached = false;

constexpr int kMostSetters = 256;
void (*setters[kMostSetters])();
int setter_count = 0;
}  // namespace

int vt_fault_chosen = 0;

// Before everything else that is made when a program starts: tables may hold faults.
__attribute__((constructor(101))) static void choose_by_environment() {
  if (const char* text = std::getenv("VT_FAULT")) vt_fault_chosen = std::atoi(text);
}

void vt_fault_reached() {
  if (reached.exchange(true)) return;
  const char* path = std::getenv("VT_FAULT_REACHED");
  if (!path || !*path) return;
  const int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
}

void vt_fault_add_setter(void (*setter)()) {
  if (setter_count < kMostSetters) setters[setter_count++] = setter;
}
void vt_fault_set_on_device() {
  for (int i = 0; i < setter_count; ++i) setters[i]();
}
