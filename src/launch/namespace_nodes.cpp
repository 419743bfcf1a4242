#include "launch/namespace_nodes.h"

#include <unistd.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/text.h"

namespace vitrail {

namespace {
constexpr const char* kRemedy = "as root, with iproute2: apt install iproute2";
}  // namespace

NamespaceNodes::NamespaceNodes(const std::string& owner, int64_t count, const std::string& rate)
    : script_(own_program("vitrail-nodes", "it is built and installed with the program")),
      name_(strf("vs%06x", crc32c(std::as_bytes(std::span(owner))) >> 8)) {
  if (::geteuid() != 0)
    throw Error(ErrorKind::kDevice, "network namespaces can be made by root only", kRemedy);
  call({"down", name_});
  try {
    const std::string told = call({"up", name_, std::to_string(count)});
    for (const std::string_view line : split(told, '\n'))
      if (const size_t equals = line.find('='); equals != std::string_view::npos)
        environment_.emplace_back(line.substr(0, equals), line.substr(equals + 1));
    if (!rate.empty()) call({"rate", name_, rate});
  } catch (const Error&) {
    call({"down", name_});
    throw;
  }
  for (int64_t i = 1; i <= count; ++i) names_.push_back(name_ + std::to_string(i));
}

NamespaceNodes::~NamespaceNodes() {
  try {
    call({"down", name_});
  } catch (const Error&) {
    // The next nodes of this name try again.
  }
}

std::string NamespaceNodes::call(const std::vector<std::string>& words) const {
  std::vector<std::string> all = {script_};
  all.insert(all.end(), words.begin(), words.end());
  const ProgramEnd end = run_program(all, {}, [] { return true; });
  if (end.code == 0) return end.out;
  throw Error(ErrorKind::kDevice,
              strf("no nodes can be made of network namespaces: %s", shown(end.err.substr(0, 200)).c_str()),
              kRemedy);
}

}  // namespace vitrail
