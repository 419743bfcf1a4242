// The passes, each from a program to a program, one a file. Their order stands in passes/pipeline.cpp alone;
// the pass to low precision has a header of its own.
#pragma once

#include <functional>
#include <string>

#include "base/enum_names.h"
#include "graph/grad.h"
#include "graph/program.h"
#include "graph/rewrite_traits.h"
#include "ops/linear.h"

namespace vitrail {

// Lets the GEMMs of the encoder blocks (qkv, proj, fc1, fc2) compute in another arithmetic, which is where
// the time of a ViT goes. The patch embedding, pooling, the head and adapters stay exact: they cost little
// and the answer hangs on them. Before fuse; of training, before differentiate, which hands it to the
// gradients. Smaller GEMMs stay exact, too.
struct LeastGemm {
  int64_t rows = 0;
  int64_t width = 0;  // inputs, and outputs
};
Program gemm_precision(Program program, Arithmetic arithmetic, const LeastGemm& least = {});

// Adds the backward half of a step: from the gradient of the loss back to a sum for every trained parameter
// (state "grad/<name>"). Each op records its own gradient; nothing is recorded for what no trained parameter
// reaches or needs. Runs first but for gemm_precision.
struct DifferentiateOptions {
  std::string loss = "loss";  // the output to descend
  ValueId seed = -1;          // its gradient: an input or a value computed before the loss
  std::function<bool(const std::string& parameter)> trained;  // null: all
};

Program differentiate(Program program, const DifferentiateOptions& options);

// Trades time for memory: what a segment of the forward half computes is computed again when the backward
// half needs it, instead of being kept. Clones keep their node's name and op, so they give the same bits,
// masks included. kNorms computes norms again, kCheap also activations and masks, which all read and write
// memory and little else, where what they read is kept anyway. Runs after differentiate and precision.
enum class Recompute { kNone, kNorms, kCheap, kMlp, kBlock };
template <>
struct EnumNames<Recompute> {
  static constexpr const char* names[] = {"none", "norms", "cheap", "mlp", "block"};
};

struct RecomputeOptions {
  Recompute level = Recompute::kNone;
  int64_t every = 1;  // blocks in a segment of kBlock
};

Program recompute(Program program, const RecomputeOptions& options);

// Makes one node of a layernorm's gradient and the gradient that passed beside the norm, where the two are
// added: the sum costs no pass over memory of its own. Runs after recompute, before fuse.
Program join_residuals(Program program);

// Returns whether the backend has a kernel for such a node on the device that is planned for.
using KernelRule = std::function<bool(const Op& op, DescSpan ins)>;

// Lets the node that makes a layernorm's or gelu's gradient, or attention's where `has_kernel` knows one for
// it, also make the sums over its rows, where these are a bias' gradient: the value is not read again for
// them. Runs after join_residuals, for backends that have such kernels.
Program join_row_sums(Program program, const KernelRule& has_kernel = {});

// Lets attention keep the logarithms of its softmax's sums, and its gradient read them and the output instead
// of computing both again, where there are kernels for it and the output is kept anyway. Runs after
// recompute.
Program keep_attention_sums(Program program, const KernelRule& has_kernel);

// Lets a gelu that follows a GEMM keep its slope instead of what it is the gelu of, so that its gradient only
// multiplies, where there are kernels for both. Runs after join_row_sums.
Program keep_slopes(Program program, const KernelRule& has_kernel);

// Makes coarse nodes of neighbours: a GEMM with the layernorm before it and the bias, gelu, scale and
// residual after it, or the attention whose only query is the class token; a parameter's gradient with its
// sum; a GEMM's gradient with that of the gelu before it; tokens that are joined with their positions. Where
// `has_kernel` knows one for both, a GEMM also makes the gelu of a result that is kept, and in 16 bits the
// gelu's gradient follows a GEMM's. Runs late and alone makes fused nodes; a fused node keeps its members.
Program fuse(const Program& program, const RewriteTraits& options = {}, const KernelRule& has_kernel = {});

// A part of fuse, for backends that have the kernel: bias, scale, residual and layernorm behind a collective,
// whose result no GEMM's epilogue could take, are one pass over rows. `norms` says which GEMMs take the
// layernorm.
Program join_rows(const Program& program, GemmRule norms);

// Lets the node that makes a value write the type that it is cast to: a layernorm whose result nothing else
// reads in place of its own, a layernorm's gradient beside its own. The bits are those of the cast. Runs
// after fuse, so that it fuses the same nodes whatever the types, for backends that have such kernels.
Program join_casts(Program program);

// Drops nodes whose results nothing needs and that update nothing. The order recorded is kept. Runs last but
// for the grouping of updates.
Program schedule(const Program& program);

// Throws when a node touches memory that a collective or an upload, started and not waited for, still writes,
// or changes what one still reads. Values that lie in one container count as one. The last look at every
// program.
void check_exchanges(const Program& program);

// Makes one node of all nodes of a kind that update persistent values and have no outputs: the optimizer's
// steps of every parameter, or the small additions to gradient sums, become one launch. For backends that
// have such kernels.

// Says where a group stands among the nodes. First: what its members read must be there already, as in
// updates. Last: nothing may read what they write, as with gradient sums.
enum class GroupAt { kFirst, kLast };

// Says whether something holds for ops of a kind.
using KindRule = std::function<bool(std::string_view kind)>;

// `grouped` says for which kinds.
Program group_updates(const Program& program, const KindRule& grouped, GroupAt place = GroupAt::kFirst);

// Lets an optimizer's update write the low-precision copy of its parameter, which is read again for that
// otherwise. `has_kernel` says which kinds there are kernels for. Runs on an update program before
// group_updates.
Program join_copies(Program program, const KindRule& has_kernel);

}  // namespace vitrail
