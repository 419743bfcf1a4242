#include "cli/pictures.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "data/decode.h"
#include "data/preprocess.h"

namespace vitrail::cli {

namespace fs = std::filesystem;

namespace {
void add_folder(const std::string& folder, std::vector<std::string>& paths) {
  std::vector<std::string> found;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error))
    if (is_picture_name(it->path().string()) && it->is_regular_file(error))
      found.push_back(it->path().string());
  VT_REQUIRE(!error, ErrorKind::kData, "cannot read the folder %s: %s", folder.c_str(),
             error.message().c_str());
  VT_REQUIRE(!found.empty(), ErrorKind::kData, "no pictures (jpg, jpeg, png, webp) under %s", folder.c_str());
  std::sort(found.begin(), found.end());
  paths.insert(paths.end(), found.begin(), found.end());
}

void add_path(const std::string& path, std::vector<std::string>& paths) {
  std::error_code error;
  if (fs::is_directory(path, error)) return add_folder(path, paths);
  if (!fs::exists(path, error))
    throw Error(ErrorKind::kData, strf("there is no picture %s", quoted(path).c_str()), "check the path");
  paths.push_back(path);
}
}  // namespace

bool is_picture_name(const std::string& path) {
  std::string ending = fs::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png" || ending == ".webp";
}

std::vector<std::string> list_pictures(const std::vector<std::string>& arguments,
                                       const std::string& list_text) {
  std::vector<std::string> paths;
  for (const std::string& argument : arguments) {
    if (argument != "-") {
      add_path(argument, paths);
      continue;
    }
    for (size_t at = 0; at < list_text.size();) {
      const size_t end = std::min(list_text.find('\n', at), list_text.size());
      std::string line = list_text.substr(at, end - at);
      if (line.ends_with('\r')) line.pop_back();
      if (!line.empty()) add_path(line, paths);
      at = end + 1;
    }
  }
  VT_REQUIRE(!paths.empty(), ErrorKind::kData, "the list names no pictures");
  return paths;
}

LoadedBatch load_batch(const std::vector<std::string>& paths, size_t first, size_t count,
                       const PreprocessConfig& config, size_t picture_elems, ThreadPool& pool) {
  std::vector<std::vector<float>> inputs(count);
  std::vector<std::optional<Error>> errors(count);
  pool.run(static_cast<int64_t>(count), [&](int64_t task, int) {
    const auto i = static_cast<size_t>(task);
    try {
      inputs[i].resize(picture_elems);
      preprocess(load_image(paths[first + i]), config, inputs[i]);
    } catch (const Error& error) {
      errors[i] = error;
    }
  });
  LoadedBatch batch;
  for (size_t i = 0; i < count; ++i) {
    if (errors[i]) {
      batch.failures.emplace_back(first + i, *errors[i]);
      continue;
    }
    batch.pixels.insert(batch.pixels.end(), inputs[i].begin(), inputs[i].end());
    batch.indices.push_back(first + i);
  }
  return batch;
}

}  // namespace vitrail::cli
