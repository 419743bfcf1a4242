// Checks that nothing touches memory which a started collective or an upload still uses.
#include <map>
#include <set>

#include "ops/collective.h"
#include "ops/flat.h"
#include "passes/passes.h"

namespace vitrail {

namespace {

// Follows a program and knows which memory a started collective or an upload still reads or writes.
class ExchangeCheck {
 public:
  explicit ExchangeCheck(const Program& program) : program_(program) {
    for (const Value& value : program.values) {
      const std::string place = value.container.empty() ? value.name : value.container;
      places_.push_back(value.persistent() ? place : "%" + std::to_string(places_.size()));
    }
  }

  void run() {
    for (const Node& node : program_.nodes) visit(node);
    VT_CHECK(flights_.empty(), "%s is never waited for", flights_.begin()->second.node->name.c_str());
  }

 private:
  struct Flight {
    const Node* node;
    std::string read, written;
  };

  void visit(const Node& node) {
    if (is<WaitOp>(*node.op)) {
      VT_CHECK(flights_.erase(node.ins[0]) == 1, "%s waits for nothing", node.name.c_str());
      return;
    }
    for (const ValueId id : node.ins) require_not_written(node, id);
    for (const int input : node.op->updates()) require_not_read(node, node.ins[static_cast<size_t>(input)]);
    if (is<ViewOp>(*node.op)) place(node.outs[0]) = place(node.ins[0]);
    const CollectiveOp* op = as_collective(*node.op);
    if (!is<UploadOp>(*node.op) && (!op || !op->form().started)) return;
    const bool in_place = op && op->form().in_place;
    const std::string written = in_place ? place(node.ins[0]) : node.outs.empty() ? "" : place(node.outs[0]);
    flights_[node.ins[0]] = {&node, in_place ? "" : place(node.ins[0]), written};
  }

  std::string& place(ValueId id) { return places_[static_cast<size_t>(id)]; }

  void require_not_written(const Node& node, ValueId id) {
    for (const auto& [key, flight] : flights_)
      VT_CHECK(flight.written != place(id), "%s touches %s, which %s is still writing", node.name.c_str(),
               program_.values[id].name.c_str(), flight.node->name.c_str());
  }
  void require_not_read(const Node& node, ValueId id) {
    for (const auto& [key, flight] : flights_)
      VT_CHECK(flight.read != place(id), "%s writes %s, which %s is still reading", node.name.c_str(),
               program_.values[id].name.c_str(), flight.node->name.c_str());
  }

  const Program& program_;
  std::vector<std::string> places_;    // by value: the memory that it lies in
  std::map<ValueId, Flight> flights_;  // by the first input of what was started
};

}  // namespace

void check_exchanges(const Program& program) {
  ExchangeCheck(program).run();
}

}  // namespace vitrail
