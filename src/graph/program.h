// A Program: a linear list of nodes over values, without control flow. Recorded through a Builder, rewritten
// by passes, laid out by plan, run by runtime. Prints one line a node. Executes nothing.
#pragma once

#include <string>
#include <vector>

#include "graph/op.h"
#include "tensor/buffer.h"

namespace vitrail {

using ValueId = int;

// Parameters and states persist from run to run under their names; a state is what training keeps beside the
// parameters: gradient sums, optimizer state, averages, counters.
enum class ValueKind { kInput, kParameter, kState, kComputed };

// Says which step of a model a node is, for reports that sum by it; kNone: pooling, the head, or no step.
enum class ModelStep : uint8_t {
  kNone,
  kEmbeddings,
  kNorm1,
  kQkv,
  kScores,  // the attention itself: scores, softmax and context
  kProjection,
  kAttention,  // the rest of that part: dropout, the class token's choice
  kResidual1,
  kNorm2,
  kFc1,
  kGelu,
  kFc2,
  kMlp,  // the rest of that part: dropout, other activations
  kResidual2,
  kLastNorm,
  kLoss
};

struct Value {
  std::string name;
  TensorDesc desc;
  ValueKind kind = ValueKind::kComputed;
  Category category = Category::kTransient;  // of a persistent value: its line in memory tables
  // A persistent value may lie inside another one, flat, from this element of the container on.
  std::string container = {};
  int64_t container_offset = 0;
  // The whole shape of a value whose desc is a flat range of its elements; empty otherwise.
  Shape logical = {};
  std::string owner = {};             // the parameter that a persistent value belongs to, or is; may be none
  ModelStep step = ModelStep::kNone;  // of the node that computes it

  bool persistent() const { return kind == ValueKind::kParameter || kind == ValueKind::kState; }
};

// Says which part of a step a node belongs to: recompute depends on it, and reports sum by it.
enum class Phase : uint8_t { kForward, kBackward, kUpdate };

// Says which part of a model a node computes, where a pass or a report treats that part differently.
enum class ModelPart : uint8_t {
  kNone,
  kTokens,  // joins patches, prefix tokens and positions: the start of the residual stream
  kAttention,
  kMlp,
  kAdapter  // a LoRA branch beside a linear
};

// A line of model code. (clang 14 lacks std::source_location.)
struct SourceLine {
  const char* file = "";
  int line = 0;
  static constexpr SourceLine here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

struct Node {
  OpPtr op;
  std::vector<ValueId> ins, outs;
  std::string name;  // path in the model: "blocks.3.attn.qkv"
  Phase phase = Phase::kForward;
  int block = -1;  // of the encoder, counted from 0; -1: outside the blocks
  ModelPart part = ModelPart::kNone;
  ModelStep step = ModelStep::kNone;
  SourceLine where;  // the line of model code that recorded it
};

// Returns the step of a node that a pass puts between a value and its reader, such as a cast: it belongs to
// what made the value. What the program is given has no step, so it belongs to the reader then.
inline ModelStep step_between(const Value& value, ModelStep reader) {
  return value.kind == ValueKind::kComputed ? value.step : reader;
}

struct Output {
  std::string name;
  ValueId value = -1;
};

class Program {
 public:
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<Output> outputs;

  // Appends a node and its outputs, the values that its op infers from the inputs: of the node's name and
  // step. Returns them.
  std::vector<ValueId> append(Node node);

  std::vector<TensorDesc> descs(const std::vector<ValueId>& ids) const;
  ValueId output(std::string_view name) const;  // throws if there is none
  bool is_output(ValueId id) const;
  std::vector<int> use_counts() const;  // readers per value; an output counts as one more
  Cost cost() const;

  // Checks that every value is defined once and before use, that shapes agree with what the ops infer, and
  // that only persistent values are updated.
  void validate() const;
};

std::string to_string(const Node& node, const Program& program);
std::string to_string(const Program& program);

}  // namespace vitrail
