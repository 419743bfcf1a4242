// One list of op examples; the generic tests run over it: every backend and dtype against the reference, and
// the dims rule. A new op joins by adding a row.
#pragma once

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "graph/op.h"

namespace vitrail {

// The role of an input, which decides its type and its values when the op runs in some type.
enum class Role {
  kPlain,        // of the type: activations and the weights of GEMMs
  kNonNegative,  // the same in [0, 1): targets, averages of squares
  kSmall,        // a quarter of the plain ones: weights of queries and keys, so that no score stands alone
  kVector,       // biases, norms, tokens, positions: of the type, or f32 where vectors stay so
  kSum,          // of the accumulator's type: gradient sums, master weights, a wide residual stream
  kFull,         // f32 whatever the type
  kCounters,     // i64
  kScalars,      // f64
  kWords,        // i32
  kPixels,       // u8
};

struct OpCase {
  std::string name;
  OpPtr op;
  std::vector<Shape> ins;
  std::vector<bool> is_parameter;                    // which inputs are parameters, and so may be packed
  std::vector<Role> roles = {};                      // kPlain where it ends
  std::map<size_t, std::vector<double>> given = {};  // inputs whose values are no random draw

  Role role(size_t input) const { return input < roles.size() ? roles[input] : Role::kPlain; }
};

inline void PrintTo(const OpCase& c, std::ostream* os) {
  *os << c.name;
}

// All cases, made once: every test is a process of its own, which should not make and copy them for each
// suite.
const std::vector<OpCase>& op_cases();
// The parameter of suites over the cases.
using OpCaseRef = std::reference_wrapper<const OpCase>;
inline void PrintTo(const OpCaseRef& c, std::ostream* os) {
  *os << c.get().name;
}
std::vector<OpCaseRef> op_case_refs();
// The case of this name, made anew: it shares no op with the others.
OpCase case_again(const std::string& name);

// Returns whether a case is one that CPUs alone run: activations and norms that no GPU has been seen to
// compute.
bool on_cpus_alone(const OpCase& c);

// The lists that op_cases() joins.
void add_forward_cases(std::vector<OpCase>& cases);
void add_gradient_cases(std::vector<OpCase>& cases);
void add_long_cases(std::vector<OpCase>& cases);
void add_loss_cases(std::vector<OpCase>& cases);
void add_update_cases(std::vector<OpCase>& cases);
void add_fused_cases(std::vector<OpCase>& cases);
void add_image_cases(std::vector<OpCase>& cases);
void add_flat_cases(std::vector<OpCase>& cases);
void add_norm_cases(std::vector<OpCase>& cases);

template <typename T, typename... Args>
OpPtr make_op(Args... args) {
  return std::make_shared<T>(args...);
}

}  // namespace vitrail
