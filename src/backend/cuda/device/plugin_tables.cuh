// The tables of the plugin's functions, each made in the file that defines them; plugin.cu joins them.
#pragma once

#include "backend/cuda/api/api.h"

namespace vitrail::cuda {

SessionApi session_api();
StreamsApi streams_api();
GemmApi gemm_api();
Fp8Api fp8_api();
AttentionApi attention_api();
NormsApi norms_api();
RowsApi rows_api();
TokensApi tokens_api();
ImagesApi images_api();
LossesApi losses_api();
UpdatesApi updates_api();
MovesApi moves_api();

}  // namespace vitrail::cuda
