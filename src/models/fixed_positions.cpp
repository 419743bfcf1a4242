#include "models/fixed_positions.h"

#include "ops/sincos_positions.h"

namespace vitrail {

VitConfig with_learned_positions(VitConfig config) {
  if (config.pos == PosKind::kSinCos2d) config.pos = PosKind::kLearned;
  return config;
}

std::vector<float> fixed_positions(const VitConfig& config) {
  const std::vector<double> table =
      SincosPositionsOp(config.grid_height(), config.grid_width(), config.width, DType::kF32).table();
  return {table.begin(), table.end()};
}

}  // namespace vitrail
