#include "telemetry/metrics_file.h"

#include <filesystem>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "telemetry/run_status.h"

namespace vitrail {

namespace {
constexpr size_t kMostBytes = size_t{4} << 30;
constexpr size_t kMostLineBytes = 1 << 20;

std::optional<Json> read_line(std::string_view text, const std::string& path) {
  try {
    Json line = parse_json(text, path, {.max_bytes = kMostLineBytes, .max_depth = 8});
    if (line.is_object() && line.contains("step") && line["step"].is_number_integer()) return line;
  } catch (const Error&) {
  }
  return std::nullopt;
}

// Calls visit(text with its newline, parsed line or nothing) for every line, a last one without newline too.
template <typename Visit>
void scan_lines(const std::string& content, const std::string& path, Visit&& visit) {
  std::string_view rest = content;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const bool whole = end != std::string_view::npos;
    const std::string_view line = rest.substr(0, whole ? end + 1 : rest.size());
    rest.remove_prefix(line.size());
    visit(line, whole ? read_line(line.substr(0, end), path) : std::nullopt);
  }
}

std::string content_of(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? read_file(path, kMostBytes) : "";
}

bool is_undone(const Json& line, int64_t last_step, bool eval_due) {
  const auto step = line["step"].get<int64_t>();
  if (step != last_step || !eval_due) return step > last_step;
  const std::string kind = metrics_text(line, "kind");
  return kind == "eval" || kind == "epoch";
}

}  // namespace

int64_t for_each_metrics_line(const std::string& path, const MetricsVisitor& visit) {
  int64_t broken = 0;
  scan_lines(content_of(path), path, [&](std::string_view, const std::optional<Json>& line) {
    if (line)
      visit(*line);
    else
      ++broken;
  });
  return broken;
}

TrimResult trim_metrics(const std::string& path, int64_t last_step, bool eval_due,
                        const MetricsVisitor& visit) {
  const std::string content = content_of(path);
  TrimResult result;
  std::string kept;
  scan_lines(content, path, [&](std::string_view text, const std::optional<Json>& line) {
    if (!line) {
      ++result.broken;
    } else if (is_undone(*line, last_step, eval_due)) {
      ++result.undone;
    } else {
      ++result.kept;
      kept += text;
      if (visit) visit(*line);
    }
  });
  if (kept.size() != content.size()) write_file(path, kept);
  return result;
}

double metrics_number(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : kUnknown;
}

std::string metrics_text(const Json& line, const char* key, const char* fallback) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : fallback;
}

}  // namespace vitrail
