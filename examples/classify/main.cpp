// Names what is on a picture: classify MODEL PICTURE
#include <vitrail/vitrail.h>

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: classify MODEL PICTURE\n");
    return 64;
  }
  try {
    const auto model = vitrail::Model::load(argv[1]);
    for (const auto& guess : model.classify(argv[2]))
      std::printf("%5.1f %%  %s\n", 100 * static_cast<double>(guess.probability), guess.label.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
