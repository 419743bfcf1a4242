// Writes into VT_FAULT_REACHED after each test its name, its seconds and the numbers of the faults it met, a
// line each. What was met before the first test counts for it, and what tests share is met by the first of
// them.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/vt_fault.h"

namespace {
class VtFaultListener : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& info) override {
    const char* path = std::getenv("VT_FAULT_REACHED");
    std::FILE* file = path ? std::fopen(path, "a") : nullptr;
    if (!file) return;
    std::fprintf(file, "%s.%s %s %.4f", info.test_suite_name(), info.name(),
                 info.result()->Skipped()  ? "skipped"
                 : info.result()->Passed() ? "passed"
                                           : "failed",
                 static_cast<double>(info.result()->elapsed_time()) / 1000);
    for (int n = 0; n < kVtMostFaults; ++n)
      if (vt_fault_met[n]) std::fprintf(file, " %d", n);
    std::fputc('\n', file);
    std::fclose(file);
    std::memset(vt_fault_met, 0, sizeof(vt_fault_met));
  }
};

[[maybe_unused]] const bool vt_fault_listens =
    (testing::UnitTest::GetInstance()->listeners().Append(new VtFaultListener), true);
}  // namespace
