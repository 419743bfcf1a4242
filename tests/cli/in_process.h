// Runs a command of the program inside the test, with its stdout and stderr in files.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/config_file.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "temp_folder.h"

namespace vitrail::cli {

struct Answer {
  std::string out, err;
  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

inline const Command& command_named(const std::string& name) {
  for (const Command& command : commands())
    if (command.spec.name == name) return command;
  throw Error(ErrorKind::kInternal, "no command " + name);
}

// Throws what the command throws.
inline Answer run_in_process(const std::string& name, const std::vector<std::string>& arguments,
                             bool json = true) {
  const Command& command = command_named(name);
  const Options options = parse_options(
      command.spec, arguments,
      // Kernels tuned on this machine must not affect a test.
      [](const std::string& name_of) { return name_of == "VITRAIL_KERNELS" ? "none" : nullptr; },
      read_config_file);
  const TempFolder folder;
  const std::string out = folder.file("out", ""), err = folder.file("err", "");
  ConsoleSettings settings;
  settings.json = json;
  settings.out_fd = ::open(out.c_str(), O_WRONLY);
  settings.err_fd = ::open(err.c_str(), O_WRONLY);
  try {
    Console console(settings);
    command.run(options, console);
    console.flush();
  } catch (...) {
    ::close(settings.out_fd);
    ::close(settings.err_fd);
    throw;
  }
  ::close(settings.out_fd);
  ::close(settings.err_fd);
  constexpr size_t kMost = 16 << 20;
  return {read_file(out, kMost), read_file(err, kMost)};
}

}  // namespace vitrail::cli
