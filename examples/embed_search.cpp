// Finds the images most similar to the first one, by the angle between their features:
// embed_search MODEL QUERY IMAGE...
#include <vitrail/vitrail.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace {

double cosine(std::span<const float> a, std::span<const float> b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  return ab / std::sqrt(aa * bb);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: embed_search MODEL QUERY IMAGE...\n");
    return 64;
  }
  try {
    const auto model = vitrail::Model::load(argv[1], {.batch = 8});
    const std::vector<float> query = model.embed(argv[2]);
    const std::vector<vitrail::ImageView> images(argv + 3, argv + argc);
    const vitrail::RowsOfFloats features = model.embed(images);
    std::vector<std::pair<double, const char*>> found;
    for (int64_t i = 0; i < features.count; ++i) found.emplace_back(cosine(query, features[i]), argv[3 + i]);
    std::sort(found.rbegin(), found.rend());
    for (const auto& [likeness, path] : found) std::printf("%.3f  %s\n", likeness, path);
  } catch (const vitrail::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
