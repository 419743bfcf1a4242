// A training run that takes no time: a ViT of one narrow block on synthetic images of 8 x 8.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "in_process.h"

namespace vitrail::cli {

inline std::vector<std::string> operator+(std::vector<std::string> first,
                                          const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// "--set a=b" for each of them.
inline std::vector<std::string> settings(const std::vector<std::string>& assignments) {
  std::vector<std::string> arguments;
  for (const std::string& assignment : assignments) {
    arguments.emplace_back("--set");
    arguments.push_back(assignment);
  }
  return arguments;
}

inline std::vector<std::string> tiny_model() {
  return settings(
      {"model.image=8", "model.patch=4", "model.width=16", "model.depth=2", "model.heads=2", "model.mlp=32"});
}

inline std::vector<std::string> tiny_run() {
  return tiny_model() +
         settings({"data.train=synthetic:3x8x8x4x64", "train.batch=16", "train.epochs=2", "train.log_every=1",
                   "train.tensorboard=false", "optim.lr=0.01"}) +
         std::vector<std::string>{"--threads", "1"};
}

inline std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

inline Options options_of(const std::string& command, const std::vector<std::string>& arguments) {
  return parse_options(
      command_named(command).spec, arguments, [](const std::string&) -> const char* { return nullptr; },
      read_config_file);
}

// What a command throws; a failure when it does not.
inline Error error_of(const std::string& command, const std::vector<std::string>& arguments) {
  try {
    run_in_process(command, arguments);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::kInternal, "nothing was thrown");
}

}  // namespace vitrail::cli
