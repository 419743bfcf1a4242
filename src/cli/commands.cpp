#include "cli/commands.h"

namespace vitrail::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      inspect_command(),
      convert_command(),
      doctor_command(),
  };
  return all;
}

}  // namespace vitrail::cli
