// Attention with the first token as the only query, computed from the tokens themselves: q . (W x) = (W^T q)
// . x, and the weighted sum of the values W x is W times the weighted sum of the x. So no token but the first
// is multiplied by a weight. All heads of a group lie side by side in the vectors of one panel, and every
// step is a GEMM with that panel.
#include "backend/cpu/attention/first_token.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/tiles.h"

namespace vitrail::cpu {
namespace {

constexpr int64_t kChunk = 48;  // rows of a task

// The scratch layout. A group's heads fill the first vector of a panel, which is nr wide; the rest of the
// panel is not read. Each image has, in this order, for each of its groups: the queries as a matrix with a
// block of rows and a column per head, W^T q, the scores (later the weights), and the weighted sum of the
// tokens.
struct Layout {
  int64_t lanes, nr, groups, token, queries, asked, weights, sums, row, image, normed;

  Layout(const IsaKernels& isa, const FirstAttentionArgs& a, bool norm)
      : lanes(isa.lanes), nr(isa.nr), groups(ceil_div(a.heads, lanes)) {
    int64_t next = 0;
    const auto take = [&](int64_t floats) {
      next += round_up(floats, 16);
      return next - round_up(floats, 16);
    };
    token = take(a.width * nr);
    queries = take(a.heads * a.head_size * nr);
    asked = take(groups * a.width * nr);
    weights = take(groups * a.tokens * nr);
    sums = take(groups * a.width * nr);
    row = take(a.heads * a.tokens);
    image = next;
    normed = norm ? round_up(a.batch * a.tokens * a.width, 16) : 0;
  }
};

class FirstAttention {
 public:
  FirstAttention(const CpuContext& context, const FirstAttentionArgs& args)
      : context_(context),
        a_(args),
        at_(context.isa, args, args.norm.gamma != nullptr),
        scratch_(context, first_attention_scratch(context.isa, args, args.norm.gamma != nullptr)),
        x_(args.x) {}

  void run() {
    if (a_.norm.gamma) norm();
    spread(context_, context_.parallel.heads, a_.batch, [&](int64_t b, int) { place_token(b); });
    over_head_rows(
        [&](int64_t b, int64_t, int64_t row, int64_t rows, float* out) { ask(b, row, rows, out); });
    over_groups(a_.width, [&](int64_t b, int64_t g, int64_t row, int64_t rows) {
      const int64_t first = g * at_.lanes * a_.head_size;
      gemm({a_.weight + (outputs() + first) * a_.width + row, a_.width, rows,
            part(b, at_.queries) + first * at_.nr, heads_of(g), heads_of(g) * a_.head_size, true,
            part(b, at_.asked) + (g * a_.width + row) * at_.nr});
    });
    over_groups(a_.tokens, [&](int64_t b, int64_t g, int64_t row, int64_t rows) {
      gemm({tokens(b) + row * a_.width, a_.width, rows, part(b, at_.asked) + g * a_.width * at_.nr,
            heads_of(g), a_.width, false, weights(b, g) + row * at_.nr});
    });
    spread(context_, context_.parallel.softmax, a_.batch * at_.groups,
           [&](int64_t task, int) { softmax(task / at_.groups, task % at_.groups); });
    over_groups(a_.width, [&](int64_t b, int64_t g, int64_t row, int64_t rows) {
      gemm({tokens(b) + row, a_.width, rows, weights(b, g), heads_of(g), a_.tokens, true,
            part(b, at_.sums) + (g * a_.width + row) * at_.nr});
    });
    over_head_rows(
        [&](int64_t b, int64_t g, int64_t row, int64_t rows, float* out) { answer(b, g, row, rows, out); });
  }

 private:
  int64_t outputs() const { return a_.heads * a_.head_size; }
  int64_t heads_of(int64_t group) const { return std::min(at_.lanes, a_.heads - group * at_.lanes); }
  float* part(int64_t b, int64_t where) const {
    return scratch_.shared() + at_.normed + b * at_.image + where;
  }
  float* weights(int64_t b, int64_t g) const { return part(b, at_.weights) + g * a_.tokens * at_.nr; }
  const float* tokens(int64_t b) const { return x_ + b * a_.tokens * a_.width; }
  void gemm(const PanelGemm& p) const { context_.isa.panel_gemm(p); }

  void norm() {
    parallel_layernorm(context_, {a_.x, a_.width, scratch_.shared(), a_.width, a_.batch * a_.tokens, a_.width,
                                  a_.norm.gamma, a_.norm.beta, a_.norm.eps});
    x_ = scratch_.shared();
  }

  // Calls body(image, group, row, rows, worker) for chunks of `rows` rows of every group. Consecutive tasks
  // are of different images, so that the rows of a weight in cache serve all images.
  template <typename Body>
  void over_chunks(int64_t rows, const Body& body) const {
    const int64_t chunks = ceil_div(rows, kChunk);
    spread(context_, context_.parallel.heads, a_.batch * at_.groups * chunks, [&](int64_t task, int worker) {
      const int64_t row = task / a_.batch % chunks * kChunk;
      body(task % a_.batch, task / a_.batch / chunks, row, std::min(kChunk, rows - row), worker);
    });
  }
  template <typename Body>
  void over_groups(int64_t rows, const Body& body) const {
    over_chunks(rows, [&](int64_t b, int64_t g, int64_t row, int64_t count, int) { body(b, g, row, count); });
  }
  // Calls body(image, group, row, rows, scratch for a GEMM) for chunks of the rows of a weight that belong to
  // a group.
  template <typename Body>
  void over_head_rows(const Body& body) const {
    over_chunks(heads_of(0) * a_.head_size, [&](int64_t b, int64_t g, int64_t row, int64_t rows, int worker) {
      const int64_t count = std::min(rows, heads_of(g) * a_.head_size - row);
      if (count > 0) body(b, g, g * at_.lanes * a_.head_size + row, count, scratch_.of(worker));
    });
  }

  void place_token(int64_t b) const {
    float* panel = part(b, at_.token);
    std::memset(panel, 0, static_cast<size_t>(a_.width * at_.nr) * sizeof(float));
    for (int64_t i = 0; i < a_.width; ++i) panel[i * at_.nr] = tokens(b)[i];
  }

  // Writes the scaled queries, each in the column of its head. The keys' bias adds the same value to all
  // scores of a head and is left out. A NaN in the key weight makes the results of all heads of its group
  // NaN.
  void ask(int64_t b, int64_t row, int64_t rows, float* out) const {
    gemm({a_.weight + row * a_.width, a_.width, rows, part(b, at_.token), 1, a_.width, false, out});
    float* queries = part(b, at_.queries) + row * at_.nr;
    std::memset(queries, 0, static_cast<size_t>(rows * at_.nr) * sizeof(float));
    for (int64_t r = 0; r < rows; ++r) {
      const float q = out[r * at_.nr] + (a_.bias ? a_.bias[row + r] : 0.0f);
      queries[r * at_.nr + (row + r) / a_.head_size % at_.lanes] = a_.scale * q;
    }
  }

  void softmax(int64_t b, int64_t g) const {
    float* columns = weights(b, g);
    for (int64_t h = 0; h < heads_of(g); ++h) {
      float* row = part(b, at_.row) + (g * at_.lanes + h) * a_.tokens;
      for (int64_t t = 0; t < a_.tokens; ++t) row[t] = columns[t * at_.nr + h];
      context_.isa.softmax_rows(row, 1, a_.tokens, row);
      for (int64_t t = 0; t < a_.tokens; ++t) columns[t * at_.nr + h] = row[t];
    }
  }

  void answer(int64_t b, int64_t g, int64_t row, int64_t rows, float* out) const {
    gemm({a_.weight + (2 * outputs() + row) * a_.width, a_.width, rows,
          part(b, at_.sums) + g * a_.width * at_.nr, heads_of(g), a_.width, false, out});
    for (int64_t r = 0; r < rows; ++r)
      a_.out[b * outputs() + row + r] = out[r * at_.nr + (row + r) / a_.head_size % at_.lanes] +
                                        (a_.bias ? a_.bias[2 * outputs() + row + r] : 0.0f);
  }

  const CpuContext& context_;
  const FirstAttentionArgs& a_;
  const Layout at_;
  const Scratch scratch_;
  const float* x_;
};

}  // namespace

ScratchNeed first_attention_scratch(const IsaKernels& isa, const FirstAttentionArgs& sizes, bool norm) {
  const Layout at(isa, sizes, norm);
  return {padded_bytes(at.normed + sizes.batch * at.image), padded_bytes(kChunk * isa.nr)};
}

void parallel_first_attention(const CpuContext& context, const FirstAttentionArgs& args) {
  FirstAttention(context, args).run();
}

}  // namespace vitrail::cpu
