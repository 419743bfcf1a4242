// Names what is in many images, on a GPU in bf16 where there is one and on the CPU otherwise:
// batch_gpu MODEL IMAGE...
#include <vitrail/vitrail.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

vitrail::Model load(const std::string& path) {
  try {
    return vitrail::Model::load(path, {.device = "cuda", .dtype = "bf16", .batch = 64});
  } catch (const vitrail::Error& error) {
    if (error.kind() != vitrail::ErrorKind::kDevice) throw;
    std::fprintf(stderr, "on the CPU: %s\n", error.message().c_str());
    return vitrail::Model::load(path, {.batch = 8});
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: batch_gpu MODEL IMAGE...\n");
    return 64;
  }
  try {
    const vitrail::Model model = load(argv[1]);
    const std::vector<std::string> paths(argv + 2, argv + argc);
    int failed = 0;
    // Files are decoded by threads while the model computes; answers come in the order of the list.
    model.classify_files(
        paths,
        [&](const vitrail::FileResult& file) {
          const char* answer = file.error ? file.error->what() : file.predictions[0].label.c_str();
          std::printf("%s: %s\n", paths[file.index].c_str(), answer);
          failed += file.error ? 1 : 0;
          return true;
        },
        1);
    return failed > 0 ? 65 : 0;
  } catch (const vitrail::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
