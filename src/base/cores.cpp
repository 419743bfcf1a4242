#include "base/cores.h"

#include <sched.h>

namespace vitrail {

namespace {

// The cores of a thread that is bound, from before the first binding.
thread_local const std::vector<int>* unbound = nullptr;

std::vector<int> current_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

void run_on(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace

std::vector<int> allowed_cores() {
  return unbound ? *unbound : current_cores();
}

std::string cores_text(const std::vector<int>& cores) {
  std::string text;
  for (size_t i = 0; i < cores.size(); ++i) {
    const int first = cores[i];
    while (i + 1 < cores.size() && cores[i + 1] == cores[i] + 1) ++i;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (cores[i] > first) text += "-" + std::to_string(cores[i]);
  }
  return text;
}

BoundThread::BoundThread(const std::vector<int>& cores) {
  if (cores.empty()) return;
  before_ = current_cores();
  if (before_.empty()) return;
  outermost_ = !unbound;
  if (outermost_) unbound = &before_;
  run_on(cores);
}

BoundThread::~BoundThread() {
  if (before_.empty()) return;
  run_on(before_);
  if (outermost_) unbound = nullptr;
}

}  // namespace vitrail
