/// \file
/// The one exception type of Vitrail. A message says what was expected and what was found; the hint says what
/// to try. What a callback of the caller throws passes through Vitrail as it is.
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/export.h"

namespace vitrail {

/// The kind of an error, by which a program can decide how to react.
enum class ErrorKind {
  kInternal,  ///< a fault in Vitrail
  kCheck,     ///< results differ from the reference
  kUsage,     ///< an invalid argument or option
  kConfig,    ///< a setting of a model or of a training config
  kData,      ///< an image, a model or a dataset that cannot be used
  kNumerics,  ///< NaN or infinity where a number is needed
  kDevice,    ///< a device that is absent or failed
  kComm,      ///< communication with other processes of a run
  kDeadline,  ///< a time limit
  kMemory,    ///< not enough memory; nothing was allocated
  kWrite,     ///< a file that cannot be written
  kStopped    ///< ended on request, with everything saved
};

/// What every call of Vitrail throws when it cannot do what was asked. what() is all of it for people: where
/// it happened, the message, and the hint behind "try:".
class VITRAIL_API Error : public std::exception {
 public:
  /// Callbacks may throw one, too.
  Error(ErrorKind kind, std::string message, std::string hint = {})
      : kind_(kind), message_(std::move(message)), hint_(std::move(hint)) {
    compose();
  }

  /// Adds where it happened (a file, a key, a rank); the outermost place comes first when shown.
  Error& at(std::string place) {
    context_.insert(context_.begin(), std::move(place));
    compose();
    return *this;
  }

  ErrorKind kind() const { return kind_; }                 ///< by which a program can decide how to react
  const std::string& message() const { return message_; }  ///< what was expected and what was found
  const std::string& hint() const { return hint_; }        ///< what to try; may be empty
  const std::vector<std::string>& context() const { return context_; }  ///< places, the outermost first
  const char* what() const noexcept override { return full_.c_str(); }

 private:
  void compose() {
    full_.clear();
    for (const std::string& place : context_) full_ += place + ": ";
    full_ += message_;
    if (!hint_.empty()) full_ += "\n  try: " + hint_;
  }

  ErrorKind kind_;
  std::string message_, hint_, full_;
  std::vector<std::string> context_;
};

}  // namespace vitrail
