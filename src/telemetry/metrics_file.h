// metrics.jsonl read back: line by line, and trimmed to the step from which a run resumes, so that the log of
// an interrupted run equals that of an uninterrupted one. Knows the keys "kind" and "step" only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/json.h"

namespace vitrail {

using MetricsVisitor = std::function<void(const Json& line)>;

// Visits every whole line that is a JSON object with a step, in order; others (a line cut off by a crash) are
// skipped and counted in the result. A missing file has no lines.
int64_t for_each_metrics_line(const std::string& path, const MetricsVisitor& visit);

struct TrimResult {
  int64_t kept = 0;
  int64_t undone = 0;  // lines of what comes after the state that is resumed
  int64_t broken = 0;
};
// Keeps the lines with step <= last_step, replacing the file atomically; `visit` receives each of them. Where
// the evaluation of last_step is still due, lines of one are not kept, nor of the end of its epoch. The file
// is not touched when nothing has to go. Throws Error(kWrite) when it cannot be replaced.
TrimResult trim_metrics(const std::string& path, int64_t last_step, bool eval_due,
                        const MetricsVisitor& visit);

// Returns a value of a line; NaN or `fallback` when the key is missing or of another type.
double metrics_number(const Json& line, const char* key);
std::string metrics_text(const Json& line, const char* key, const char* fallback = "");

}  // namespace vitrail
