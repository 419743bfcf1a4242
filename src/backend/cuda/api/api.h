// Everything the CUDA plugin offers, as one table of functions behind a single exported symbol, so that the
// program starts without the plugin and looks for it at run time. Every function throws Error(kDevice) when
// CUDA reports a failure.
#pragma once

#include "backend/cuda/api/attention.h"
#include "backend/cuda/api/fp8.h"
#include "backend/cuda/api/gemms.h"
#include "backend/cuda/api/images.h"
#include "backend/cuda/api/losses.h"
#include "backend/cuda/api/moves.h"
#include "backend/cuda/api/norms.h"
#include "backend/cuda/api/rows.h"
#include "backend/cuda/api/session.h"
#include "backend/cuda/api/streams.h"
#include "backend/cuda/api/tokens.h"
#include "backend/cuda/api/updates.h"

namespace vitrail::cuda {

struct Api {
  uint64_t version;  // a hash of these headers (cmake/cuda.cmake): a plugin of others is refused
  SessionApi session;
  StreamsApi streams;
  GemmApi gemms;
  Fp8Api fp8;
  AttentionApi attention;
  NormsApi norms;
  RowsApi rows;
  TokensApi tokens;
  ImagesApi images;
  LossesApi losses;
  UpdatesApi updates;
  MovesApi moves;
};

// The name of the plugin's exported symbol.
inline constexpr const char* kApiSymbol = "vitrail_cuda_api";

}  // namespace vitrail::cuda
