// Nodes for tests and studies on one host: network namespaces with host names and a link of their own, made
// by the script vitrail-nodes. Needs root and iproute2. They are gone with the object; what a process that
// was killed left is replaced by the next one of the same owner.
#pragma once

#include <string>
#include <vector>

#include "launch/child_process.h"

namespace vitrail {

class NamespaceNodes {
 public:
  // Makes so many, named by a hash of `owner`; `rate` is what two of them send at most, as "1gbit", or empty.
  // Throws Error(kDevice) where they cannot be made.
  NamespaceNodes(const std::string& owner, int64_t count, const std::string& rate);
  ~NamespaceNodes();
  NamespaceNodes(const NamespaceNodes&) = delete;
  NamespaceNodes& operator=(const NamespaceNodes&) = delete;

  const std::vector<std::string>& names() const { return names_; }
  // Returns what mpirun must be told to start ranks on them.
  const Assignments& environment() const { return environment_; }

 private:
  std::string call(const std::vector<std::string>& words) const;

  std::string script_, name_;
  std::vector<std::string> names_;
  Assignments environment_;
};

}  // namespace vitrail
