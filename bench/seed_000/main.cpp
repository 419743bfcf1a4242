// vitrail-seed-000 [--layers L] [--cores C] [--out FILE]: runs the encoder on one image and prints, as JSON,
// the seconds of each row of the paper's Table I, averaged over the layers. Twelve threads share the C first
// cores that it may use.
#include <sched.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "encoder.h"

namespace {

using seed_000::MatrixXd;
using Clock = std::chrono::steady_clock;

template <typename F>
MatrixXd timed(double& seconds, F&& compute) {
  const auto start = Clock::now();
  MatrixXd result = compute();
  seconds += std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

// Returns how many cores are left to it.
int keep_cores(int wanted) {
  cpu_set_t allowed, kept;
  sched_getaffinity(0, sizeof allowed, &allowed);
  CPU_ZERO(&kept);
  for (int core = 0; core < CPU_SETSIZE && (wanted <= 0 || CPU_COUNT(&kept) < wanted); ++core)
    if (CPU_ISSET(core, &allowed)) CPU_SET(core, &kept);
  sched_setaffinity(0, sizeof kept, &kept);
  return CPU_COUNT(&kept);
}

void print_row(std::FILE* out, const char* name, double seconds, double macs, bool last = false) {
  std::fprintf(out, "  {\"name\": \"%s\", \"seconds\": %.6g, \"macs\": %.6g}%s\n", name, seconds, macs,
               last ? "" : ",");
}

const char* after(int argc, char** argv, const char* option, const char* fallback) {
  for (int i = 1; i + 1 < argc; ++i)
    if (!std::strcmp(argv[i], option)) return argv[i + 1];
  return fallback;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace seed_000;
  const int layers = std::atoi(after(argc, argv, "--layers", "1"));
  const int cores = keep_cores(std::atoi(after(argc, argv, "--cores", "0")));
  std::FILE* const out = std::fopen(after(argc, argv, "--out", "/dev/stdout"), "w");
  if (!out) return std::fprintf(stderr, "vitrail-seed-000: --out cannot be written\n"), 73;
  if (layers < 1) return std::fprintf(stderr, "vitrail-seed-000: --layers must be at least 1\n"), 64;
  double embeddings = 0, norm1 = 0, attention = 0, residual1 = 0, norm2 = 0, mlp = 0, residual2 = 0, last = 0;
  const MatrixXd patches = MatrixXd::Random(kPatches, kWidth);
  const Embeddings embedding;
  MatrixXd x = timed(embeddings, [&] { return embedding.embed(patches); });
  for (int i = 0; i < layers; ++i) {
    const Layer layer;
    const MatrixXd normal = timed(norm1, [&] { return layer_norm(x); });
    const MatrixXd attended = timed(attention, [&] { return layer.self_attention(normal); });
    x = timed(residual1, [&] { return MatrixXd(x + attended); });
    const MatrixXd again = timed(norm2, [&] { return layer_norm(x); });
    const MatrixXd mixed = timed(mlp, [&] { return layer.mlp(again); });
    x = timed(residual2, [&] { return MatrixXd(x + mixed); });
  }
  x = timed(last, [&] { return layer_norm(x); });
  if (!x.allFinite()) return std::fprintf(stderr, "vitrail-seed-000: the result is not finite\n"), 66;
  std::fprintf(out, "{\"cores\": %d, \"layers\": %d, \"rows\": [\n", cores, layers);
  print_row(out, "embeddings", embeddings, kEmbeddingMacs);
  print_row(out, "layer norm 1", norm1 / layers, 0);
  print_row(out, "attention", attention / layers, kHeads * kHeadMacs + kOutputMacs);
  print_row(out, "residual 1", residual1 / layers, 0);
  print_row(out, "layer norm 2", norm2 / layers, 0);
  print_row(out, "MLP", mlp / layers, kMlpMacs);
  print_row(out, "residual 2", residual2 / layers, 0);
  print_row(out, "last layer norm", last, 0, true);
  std::fprintf(out, "], \"head_macs\": %.6g, \"output_macs\": %.6g, \"heads\": %d}\n", kHeadMacs, kOutputMacs,
               kHeads);
  return std::fclose(out) == 0 ? 0 : 73;
}
