// The one function that the plugin exports: the table of all its functions.
#include "backend/cuda/device/plugin_tables.cuh"

extern "C" __attribute__((visibility("default"))) const vitrail::cuda::Api* vitrail_cuda_api() {
  using namespace vitrail::cuda;
  static const Api api = {.version = VITRAIL_CUDA_API,
                          .session = session_api(),
                          .streams = streams_api(),
                          .gemms = gemm_api(),
                          .fp8 = fp8_api(),
                          .attention = attention_api(),
                          .norms = norms_api(),
                          .rows = rows_api(),
                          .tokens = tokens_api(),
                          .images = images_api(),
                          .losses = losses_api(),
                          .updates = updates_api(),
                          .moves = moves_api()};
  return &api;
}
