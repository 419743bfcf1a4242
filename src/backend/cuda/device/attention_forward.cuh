// The plugin's attention kernels, as its table of functions lists them. AttentionApi says which operands each
// takes.
#pragma once

#include "backend/cuda/api/attention.h"

namespace vitrail::cuda {

void attention_one(Session& session, const AttentionCall& call);
void attention_short(Session& session, const AttentionCall& call);
// Attention by GEMMs of warp groups; returns false, with nothing done, where the GPU or the sizes do not
// suit.
bool attention_groups(Session& session, const AttentionCall& call);
void attention_long(Session& session, const AttentionCall& call);
void attention_stream(Session& session, const AttentionCall& call);
void attention_plain(Session& session, const AttentionCall& call);
void attention_weights(Session& session, const AttentionCall& call);

}  // namespace vitrail::cuda
