#include "api/precision.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "backend/registry.h"
#include "base/error.h"

namespace vitrail {

namespace {
// The order in which types are listed, whatever the order of the backends that have them.
constexpr std::string_view kListed[] = {"f32", "bf16", "f16", "int8", "fp8", "tf32"};

Arithmetic arithmetic_for(const std::string& dtype) {
  return enum_from_name<Arithmetic>(dtype).value_or(Arithmetic::kExact);
}

const BackendEntry& row_for(const std::string& device, const std::string& backend, const char* dash) {
  return entry_on(parse_device_name(device, (std::string(dash) + "device").c_str()), backend);
}
}  // namespace

const std::vector<std::string>& model_types() {
  static const std::vector<std::string> types = [] {
    std::vector<std::string> all;
    for (const BackendEntry& row : backend_registry())
      for (const std::string& type : row.types)
        if (std::find(all.begin(), all.end(), type) == all.end()) all.push_back(type);
    const auto place = [](auto& type) { return std::find(std::begin(kListed), std::end(kListed), type); };
    std::stable_sort(all.begin(), all.end(), [&](auto& a, auto& b) { return place(a) < place(b); });
    return all;
  }();
  return types;
}

void check_precision(const std::string& dtype, const std::string& device, const std::string& backend,
                     const char* dash) {
  const BackendEntry& row = row_for(device, backend, dash);
  if (std::find(row.types.begin(), row.types.end(), dtype) != row.types.end()) return;
  const auto& [message, hint] = row.unsupported(dtype, dash);
  throw Error(ErrorKind::kUsage, message, hint);
}

void set_precision(const std::string& dtype, const std::string& device, EngineOptions& engine,
                   const char* dash) {
  check_precision(dtype, device, engine.backend, dash);
  const Arithmetic arithmetic = arithmetic_for(dtype);
  engine.compute = DType::kF32;
  if (!row_for(device, engine.backend, dash).rounds_activations) {
    engine.arithmetic = arithmetic;
    return;
  }
  const bool apart = arithmetic == Arithmetic::kFp8 || arithmetic == Arithmetic::kTF32;
  engine.arithmetic = apart ? arithmetic : Arithmetic::kExact;
  if (arithmetic != Arithmetic::kTF32) engine.compute = parse_dtype(dtype).value_or(DType::kBF16);
}

}  // namespace vitrail
