// The names that each dialect has for activations, read from configs and written to them.
#include "io/cards/hf_processor.h"

#include "base/error.h"
#include "base/text.h"
#include "io/config_json.h"

namespace vitrail {

namespace {

struct Row {
  const char* name;
  ActKind act;
  GeluKind gelu = GeluKind::kErf;
  bool timm = true, hf = true;
};
// Where several names mean one activation, the first is written.
constexpr Row kRows[] = {
    {"gelu", ActKind::kGelu},
    {"gelu_tanh", ActKind::kGelu, GeluKind::kTanh, true, false},
    {"gelu_pytorch_tanh", ActKind::kGelu, GeluKind::kTanh, false},
    {"gelu_new", ActKind::kGelu, GeluKind::kTanh, false},
    {"gelu_fast", ActKind::kGelu, GeluKind::kTanh, false},
    {"gelu_accurate", ActKind::kGelu, GeluKind::kTanh, false},
    {"gelu_python_tanh", ActKind::kGelu, GeluKind::kTanh, false},
    {"gelu_python", ActKind::kGelu, GeluKind::kErf, false},
    {"quick_gelu", ActKind::kQuickGelu},
    {"relu", ActKind::kRelu},
    {"relu6", ActKind::kRelu6},
    {"leaky_relu", ActKind::kLeakyRelu},
    {"elu", ActKind::kElu, GeluKind::kErf, true, false},
    {"silu", ActKind::kSilu},
    {"swish", ActKind::kSilu},
    {"mish", ActKind::kMish},
    {"hardswish", ActKind::kHardSwish},
    {"hard_swish", ActKind::kHardSwish, GeluKind::kErf, true, false},
    {"tanh", ActKind::kTanh},
    {"sigmoid", ActKind::kSigmoid},
    {"celu", ActKind::kElu, GeluKind::kErf, true, false},
    {"selu", ActKind::kSelu, GeluKind::kErf, true, false},
    {"hard_sigmoid", ActKind::kHardSigmoid, GeluKind::kErf, true, false},
    {"hardsigmoid", ActKind::kHardSigmoid, GeluKind::kErf, true, false},
    {"hard_mish", ActKind::kHardMish, GeluKind::kErf, true, false},
    {"identity", ActKind::kIdentity, GeluKind::kErf, true, false},
    {"linear", ActKind::kIdentity, GeluKind::kErf, false},
    {"laplace", ActKind::kLaplace, GeluKind::kErf, false},
    {"relu2", ActKind::kRelu2, GeluKind::kErf, false},
    {"sqrtsoftplus", ActKind::kSqrtSoftplus, GeluKind::kErf, false},
    {"gelu_10", ActKind::kGelu10, GeluKind::kErf, false},
};

bool is_of(const Row& row, Dialect dialect) {
  return dialect == Dialect::kTimm ? row.timm : row.hf;
}

const Row& row_named(const Json& value, const char* key, Dialect dialect, const std::string& origin) {
  const std::string name = json_string(value, origin, key);
  const std::string sought =
      dialect == Dialect::kTimm ? lowercase(name) : name;  // as each library looks it up
  std::string known;
  for (const Row& row : kRows) {
    if (!is_of(row, dialect)) continue;
    if (sought == row.name) return row;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw Error(ErrorKind::kData, strf("%s: %s is %s; supported are %s", origin.c_str(), key,
                                     quoted(name).c_str(), known.c_str()));
}

}  // namespace

void set_activation(const Json& value, const char* key, Dialect dialect, StatedConfig* stated) {
  const Row& row = row_named(value, key, dialect, stated->origin);
  stated->model["activation"] = enum_name(row.act);
  stated->model["gelu"] = enum_name(row.gelu);
}

void set_pooler_activation(const Json& value, const char* key, StatedConfig* stated) {
  const Row& row = row_named(value, key, Dialect::kHf, stated->origin);
  stated->model["pre_logits_act"] = enum_name(row.act);
  stated->model["pre_logits_gelu"] = enum_name(row.gelu);
}

std::string activation_name(ActKind act, GeluKind gelu, Dialect dialect) {
  for (const Row& row : kRows)
    if (is_of(row, dialect) && row.act == act && (act != ActKind::kGelu || row.gelu == gelu)) return row.name;
  return {};
}

}  // namespace vitrail
