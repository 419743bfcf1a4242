// Attention's gradient for any mixture of float types and any head size, in f32 without tensor cores. A block
// owns 32 rows of a head, queries with their outputs' gradients or keys with their values, and streams all
// rows of the other side through shared memory, 32 at a time, one per lane. There are three launches: the
// facts of each query, then dq, then dk and dv; a fourth one sums the dq of queries that all images share.
#include "backend/cuda/device/attention.cuh"
#include "backend/cuda/device/attention_plain.cuh"
#include "backend/cuda/device/reduce.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kRows = kPlainRows, kWarps = kPlainWarps, kRowsEach = kRows / kWarps;

// A query's largest score, the inverse of its softmax's sum relative to that, and the mean of its weights'
// gradients. The logarithm of the sum, in the range of 8 for thousands of keys, would round by more than the
// sum.
struct ExactFacts {
  float top, inverse, mean;
};

struct Scratch {
  ExactFacts* facts;
  float* dq;  // one per image, where queries are shared

  __host__ __device__ explicit Scratch(const AttentionGradCall& call)
      : facts(static_cast<ExactFacts*>(call.scratch)),
        dq(reinterpret_cast<float*>(facts + call.batch * call.heads * call.queries)) {}
};

// The rows of a head on one side, queries or keys: scores are dot products of the two sides' `left` rows, the
// gradients of weights those of their `right` rows.
struct Side {
  HeadRows left, right;
  int rows;

  __device__ Side(const AttentionGradCall& call, bool queries)
      : left(queries ? call.q : call.k),
        right(queries ? call.dout : call.v),
        rows(static_cast<int>(queries ? call.queries : call.keys)) {}
};

__device__ int padded(int size) {
  return (size + 3) / 4 * 4;
}

// A block's shared memory. The rows of the other side have a stride of a multiple of four floats plus one,
// against bank conflicts.
struct Board {
  int width, stride;
  float *own_left, *own_right, *left, *right, *dscores, *weights;

  __device__ Board(float* shared, int size) : width(padded(size)), stride(padded(size) + 1) {
    own_left = shared, own_right = own_left + kRows * width;
    left = own_right + kRows * width, right = left + kRows * stride;
    dscores = right + kRows * stride, weights = dscores + kRows * kRows;
  }
  static size_t bytes(int64_t size) {
    const int64_t width = (size + 3) / 4 * 4;
    return static_cast<size_t>(kRows * (2 * width + 2 * (width + 1) + 2 * kRows)) * sizeof(float);
  }

  // The score and the weight's gradient of own row `row` with this lane's row of the other side, for
  // kRowsEach rows.
  __device__ void dots(int row, float (&scores)[kRowsEach], float (&dweights)[kRowsEach]) const {
    const float *mine = left + threadIdx.x % 32 * stride, *mine_right = right + threadIdx.x % 32 * stride;
    for (int r = 0; r < kRowsEach; ++r) scores[r] = dweights[r] = 0;
    for (int e = 0; e < width; e += 4) {
#pragma unroll
      for (int r = 0; r < kRowsEach; ++r) {
        const float4 a = *reinterpret_cast<const float4*>(own_left + (row + r) * width + e);
        const float4 b = *reinterpret_cast<const float4*>(own_right + (row + r) * width + e);
        scores[r] += a.x * mine[e] + a.y * mine[e + 1] + a.z * mine[e + 2] + a.w * mine[e + 3];
        dweights[r] +=
            b.x * mine_right[e] + b.y * mine_right[e + 1] + b.z * mine_right[e + 2] + b.w * mine_right[e + 3];
      }
    }
  }
};

// The facts of kRowsEach queries, which each lane gathers over its own keys, relative to its largest score.
struct Survey {
  float top[kRowsEach], sum[kRowsEach], dot[kRowsEach];

  __device__ Survey() {
    for (int r = 0; r < kRowsEach; ++r) top[r] = -INFINITY, sum[r] = dot[r] = 0;
  }
  __device__ void see(const float (&scores)[kRowsEach], const float (&dweights)[kRowsEach], float scale) {
    for (int r = 0; r < kRowsEach; ++r) {
      const float score = scores[r] * scale, now = fmaxf(top[r], score);
      const float keep = expf(top[r] - now), weight = expf(score - now);
      top[r] = now;
      sum[r] = sum[r] * keep + weight;
      dot[r] = dot[r] * keep + weight * dweights[r];
    }
  }
  __device__ ExactFacts conclude(int r) const {
    const float all = lanes_max(top[r]), keep = expf(top[r] - all), total = lanes_sum(sum[r] * keep);
    return {all, 1 / total, lanes_sum(dot[r] * keep) / total};
  }
};

// sums[r][c] += the weights of own row `row + r` times column 32 c + lane of the other side's rows.
template <int kColumns>
__device__ void weigh(float (&sums)[kRowsEach][kColumns], const float* weights, const float* others,
                      int stride, int width, int row) {
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const int e = 32 * c + threadIdx.x % 32;
    if (e >= width) continue;
    for (int j = 0; j < kRows; ++j) {
      const float other = others[j * stride + e];
#pragma unroll
      for (int r = 0; r < kRowsEach; ++r) sums[r][c] += weights[(row + r) * kRows + j] * other;
    }
  }
}

// A block's head and its own rows there; those from `row` on, kRowsEach of them, are this warp's.
struct Place {
  const AttentionGradCall& call;
  Side own, others;
  int64_t index, image, head;
  int size, first, row;
  Board board;

  __device__ Place(const AttentionGradCall& of, float* shared, bool queries)
      : call(of),
        own(of, queries),
        others(of, !queries),
        size(static_cast<int>(of.head_size)),
        row(threadIdx.x / 32 * kRowsEach),
        board(shared, static_cast<int>(of.head_size)) {
    const int chunks = (own.rows + kRows - 1) / kRows;
    index = blockIdx.x / chunks, image = index / call.heads, head = index % call.heads;
    first = static_cast<int>(blockIdx.x % chunks) * kRows;
    fetch(board.own_left, board.width, own.left, first, own.rows);
    fetch(board.own_right, board.width, own.right, first, own.rows);
  }
  __device__ void fetch(float* target, int stride, const HeadRows& source, int from, int rows) const {
    PlainHead(source, image, head).fetch(target, stride, board.width, from, rows, size);
  }
  // Calls see(first other row) with kRows rows of the other side in shared memory.
  template <typename See>
  __device__ void each(const See& see) const {
    for (int at = 0; at < others.rows; at += kRows) {
      __syncthreads();
      fetch(board.left, board.stride, others.left, at, others.rows);
      fetch(board.right, board.stride, others.right, at, others.rows);
      __syncthreads();
      see(at);
    }
  }
};

__global__ void __launch_bounds__(32 * kWarps) query_facts(const __grid_constant__ AttentionGradCall call) {
  extern __shared__ __align__(16) float floats[];
  const Place place(call, floats, true);
  const int lane = threadIdx.x % 32;
  Survey survey;
  place.each([&](int at) {
    float scores[kRowsEach], dweights[kRowsEach];
    place.board.dots(place.row, scores, dweights);
    if (at + lane < place.others.rows) survey.see(scores, dweights, call.scale);
  });
  ExactFacts* facts = Scratch(call).facts + place.index * call.queries;
  for (int r = 0; r < kRowsEach; ++r) {
    const int query = place.first + place.row + r;
    const ExactFacts found = survey.conclude(r);
    if (lane == 0 && query < place.own.rows) facts[query] = found;
  }
}

// Writes the weights and the scores' gradients of this warp's rows, with the other side's rows from `at` on,
// to shared memory.
template <bool kKeys>
__device__ void differentiate(const Place& place, const ExactFacts* facts, int at) {
  const int lane = threadIdx.x % 32;
  float scores[kRowsEach], dweights[kRowsEach];
  place.board.dots(place.row, scores, dweights);
  for (int r = 0; r < kRowsEach; ++r) {
    const int query = kKeys ? at + lane : place.first + place.row + r;
    const bool known = at + lane < place.others.rows && query < place.call.queries;
    const ExactFacts fact = known ? facts[query] : ExactFacts{0, 0, 0};
    const float weight = known ? expf(scores[r] * place.call.scale - fact.top) * fact.inverse : 0;
    place.board.weights[(place.row + r) * kRows + lane] = weight;
    place.board.dscores[(place.row + r) * kRows + lane] =
        weight * (dweights[r] - fact.mean) * place.call.scale;
  }
  __syncwarp();
}

// Computes dk and dv of a block's keys, or dq of its queries.
template <bool kKeys, int kColumns>
__global__ void __launch_bounds__(32 * kWarps, 1) row_grads(const __grid_constant__ AttentionGradCall call) {
  extern __shared__ __align__(16) float floats[];
  const Place place(call, floats, !kKeys);
  const Board& board = place.board;
  const Scratch scratch(call);
  float of_left[kRowsEach][kColumns] = {}, of_right[kRowsEach][kColumns] = {};
  place.each([&](int at) {
    differentiate<kKeys>(place, scratch.facts + place.index * call.queries, at);
    weigh(of_left, board.dscores, board.left, board.stride, board.width, place.row);
    if (kKeys) weigh(of_right, board.weights, board.right, board.stride, board.width, place.row);
  });
#pragma unroll
  for (int i = 0; i < kRowsEach * kColumns; ++i) {
    const int r = i / kColumns, c = i % kColumns, e = 32 * c + threadIdx.x % 32;
    const int row = place.first + place.row + r;
    if (row >= place.own.rows || e >= place.size) continue;
    if (kKeys) {
      PlainHead(call.dk, place.image, place.head).put(row, e, of_left[r][c]);
      PlainHead(call.dv, place.image, place.head).put(row, e, of_right[r][c]);
    } else if (call.q.batch == 0) {
      scratch.dq[(place.index * call.queries + row) * place.size + e] = of_left[r][c];
    } else {
      PlainHead(call.dq, place.image, place.head).put(row, e, of_left[r][c]);
    }
  }
}

// Sums dq of shared queries over the images, in the order of the images.
__global__ void sum_over_images(const __grid_constant__ AttentionGradCall call) {
  const int64_t each = call.heads * call.queries * call.head_size;
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= each) return;
  const float* parts = Scratch(call).dq;
  float sum = 0;
  for (int64_t image = 0; image < call.batch; ++image) sum += parts[image * each + i];
  const int64_t row = i / call.head_size;
  PlainHead(call.dq, 0, row / call.queries).put(row % call.queries, i % call.head_size, sum);
}

template <int kColumns>
void launch(Session& session, const AttentionGradCall& call) {
  const size_t bytes = Board::bytes(call.head_size);
  const auto run = [&](auto* kernel, int64_t rows, const char* name) {
    allow_shared(kernel, bytes, name);
    const auto blocks = static_cast<unsigned>(call.batch * call.heads * blocks_for(rows, kRows));
    kernel<<<blocks, 32 * kWarps, bytes, session.stream>>>(call);
    check_launch(name);
  };
  run(query_facts, call.queries, "attention_backward_facts");
  run(row_grads<false, kColumns>, call.queries, "attention_backward_queries");
  run(row_grads<true, kColumns>, call.keys, "attention_backward_keys");
}

}  // namespace

void attention_backward_plain(Session& session, const AttentionGradCall& call) {
  VT_CHECK(call.head_size <= kPlainHeadSize,
           "attention_backward_plain: given longer rows than it has room for");
  call.head_size <= 64 ? launch<2>(session, call) : launch<kPlainHeadSize / 32>(session, call);
  if (call.q.batch != 0) return;
  const int64_t elements = call.heads * call.queries * call.head_size;
  sum_over_images<<<blocks_for(elements, 64), 64, 0, session.stream>>>(call);
  check_launch("attention_backward_sum");
}

}  // namespace vitrail::cuda
