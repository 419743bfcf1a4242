// The plugin's attention kernels, as its table of functions takes them. AttentionApi says who takes what.
#pragma once

#include "backend/cuda/api/attention.h"

namespace vitrail::cuda {

void attention_one(Session& session, const AttentionCall& call);
void attention_short(Session& session, const AttentionCall& call);
// The same by GEMMs of warp groups; false, and nothing done, where it does not suit the GPU or the sizes.
bool attention_groups(Session& session, const AttentionCall& call);
void attention_long(Session& session, const AttentionCall& call);
void attention_plain(Session& session, const AttentionCall& call);
void attention_weights(Session& session, const AttentionCall& call);

}  // namespace vitrail::cuda
