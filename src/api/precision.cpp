#include "api/precision.h"

#include "plan/devices.h"

namespace vitrail {

namespace {
Arithmetic arithmetic_for(const std::string& dtype) {
  return enum_from_name<Arithmetic>(dtype).value_or(Arithmetic::kExact);
}
}  // namespace

void check_precision(const std::string& dtype, const std::string& device, const std::string& backend,
                     const char* dash) {
  const bool cuda = parse_cuda(device, dash).has_value();
  if (cuda && dtype == "int8")
    throw Error(ErrorKind::kUsage, "int8 runs on the CPU alone so far", strf("%sdtype bf16 on a GPU", dash));
  const bool rounds = dtype == "fp8" || dtype == "tf32";  // types that the reference backend can round to
  if (!cuda && (dtype == "f16" || (rounds && backend != "ref")))
    throw Error(ErrorKind::kUsage, strf("%sdtype %s needs %sdevice cuda", dash, dtype.c_str(), dash),
                strf("%sdtype bf16 or int8 on the CPU; ", dash) +
                    (rounds ? strf("%sbackend ref computes it anywhere, slowly", dash)
                            : "weights stored as f16 are read as they are"));
}

void set_precision(const std::string& dtype, const std::string& device, EngineOptions& engine,
                   const char* dash) {
  check_precision(dtype, device, engine.backend, dash);
  const Arithmetic arithmetic = arithmetic_for(dtype);
  engine.compute = DType::kF32;
  if (!parse_cuda(device, dash)) {
    engine.arithmetic = arithmetic;
    return;
  }
  const bool apart = arithmetic == Arithmetic::kFp8 || arithmetic == Arithmetic::kTF32;
  engine.arithmetic = apart ? arithmetic : Arithmetic::kExact;
  if (arithmetic != Arithmetic::kTF32) engine.compute = parse_dtype(dtype).value_or(DType::kBF16);
}

}  // namespace vitrail
