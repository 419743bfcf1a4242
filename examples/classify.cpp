// Names what is in an image: classify MODEL IMAGE
#include <vitrail/vitrail.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: classify MODEL IMAGE\n");
    return 64;
  }
  try {
    const auto model = vitrail::Model::load(argv[1]);
    for (const auto& guess : model.classify(argv[2]))
      std::printf("%5.1f %%  %s\n", 100 * static_cast<double>(guess.probability), guess.label.c_str());
  } catch (const vitrail::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.kind() == vitrail::ErrorKind::kData ? 65 : 1;
  }
}
