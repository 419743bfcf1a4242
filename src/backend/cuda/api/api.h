// Everything the CUDA plugin offers, as one table of functions: it has a single exported symbol, so that the
// program starts without it and finds out at run time. Every function throws Error(kDevice) when CUDA reports
// a failure.
#pragma once

#include "backend/cuda/api/attention.h"
#include "backend/cuda/api/losses.h"
#include "backend/cuda/api/norms.h"
#include "backend/cuda/api/products.h"
#include "backend/cuda/api/rows.h"
#include "backend/cuda/api/session.h"
#include "backend/cuda/api/tokens.h"
#include "backend/cuda/api/updates.h"

namespace vitrail::cuda {

// Changes whenever a struct of these headers does: a plugin of another build is refused.
inline constexpr int kApiVersion = 4;

struct Api {
  int version = kApiVersion;
  SessionApi session;
  ProductsApi products;
  AttentionApi attention;
  NormsApi norms;
  RowsApi rows;
  TokensApi tokens;
  LossesApi losses;
  UpdatesApi updates;
};

// The plugin's symbol.
inline constexpr const char* kApiSymbol = "vitrail_cuda_api";
using GetApi = const Api* (*)();

}  // namespace vitrail::cuda
