#include "base/error.h"

#include <cstdarg>
#include <cstdio>

namespace vitrail {

namespace {
struct KindRow {
  ErrorKind kind;
  const char* name;
  int exit_code;
};
constexpr KindRow kKinds[] = {
    {ErrorKind::kInternal, "internal", 1},  {ErrorKind::kCheck, "check", 2},
    {ErrorKind::kUsage, "usage", 64},       {ErrorKind::kConfig, "config", 64},
    {ErrorKind::kData, "data", 65},         {ErrorKind::kNumerics, "numerics", 66},
    {ErrorKind::kDevice, "device", 69},     {ErrorKind::kComm, "comm", 69},
    {ErrorKind::kDeadline, "deadline", 70}, {ErrorKind::kMemory, "memory", 71},
    {ErrorKind::kWrite, "write", 73},       {ErrorKind::kStopped, "stopped", 75},
};
const KindRow& row(ErrorKind kind) {
  return kKinds[static_cast<int>(kind)];
}
}  // namespace

const char* to_string(ErrorKind kind) {
  return row(kind).name;
}
int exit_code(ErrorKind kind) {
  return row(kind).exit_code;
}

std::string strf(const char* format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  const int length = std::vsnprintf(nullptr, 0, format, args);
  va_end(args);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  if (length > 0) std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return text;
}

void detail::check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::string text = strf("%s:%d: %s does not hold", file, line, condition);
  if (message.size() > 1) text += ":" + message;
  throw Error(ErrorKind::kInternal, text,
              "this is a fault in Vitrail; please report it with the command used");
}

}  // namespace vitrail
