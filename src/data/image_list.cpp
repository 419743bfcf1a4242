#include "data/image_list.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/values.h"
#include "data/decode.h"

namespace vitrail {

namespace fs = std::filesystem;

namespace {

// Links to folders are followed, as datasets follow those to class folders, but not back into a folder that
// is being listed.
void add_below(const fs::path& folder, std::vector<fs::path>& above, std::vector<std::string>& found) {
  std::error_code error;
  const fs::path itself = fs::canonical(folder, error);
  if (error || std::find(above.begin(), above.end(), itself) != above.end()) return;
  above.push_back(itself);
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    std::error_code unknown;
    if (it->path().filename().string().starts_with('.')) continue;  // as datasets leave them out, too
    if (it->is_directory(unknown))
      add_below(it->path(), above, found);
    else if (is_image_name(it->path().string()) && it->is_regular_file(unknown))
      found.push_back(it->path().string());
  }
  above.pop_back();
}

void add_path(const std::string& path, std::vector<std::string>& paths) {
  std::vector<std::string> found;
  std::vector<fs::path> above;
  std::error_code error;
  if (fs::is_directory(path, error)) add_below(path, above, found);
  if (found.empty()) found.push_back(path);
  std::sort(found.begin(), found.end());
  paths.insert(paths.end(), found.begin(), found.end());
}

void add_lines(const std::string& text, std::vector<std::string>& paths) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) add_path(line, paths);
    at = end + 1;
  }
}

// Returns whether a file that is no image begins like text: it may be a list of images.
bool begins_as_text(const std::string& path) {
  constexpr size_t kLook = 256;
  try {
    const RandomAccessFile file(path);
    std::vector<uint8_t> start(std::min<size_t>(kLook, file.size()));
    file.read_at(0, std::as_writable_bytes(std::span(start)));
    return looks_like_text(start);
  } catch (const Error&) {
    return false;
  }
}
}  // namespace

bool is_image_name(const std::string& path) {
  const std::string ending = fs::path(path).extension().string();
  return !ending.empty() && is_image_ending(ending.substr(1));
}

std::vector<std::string> list_images(const std::vector<std::string>& arguments,
                                     const std::string& list_text) {
  std::vector<std::string> paths;
  for (const std::string& argument : arguments)
    if (argument == "-")
      add_lines(list_text, paths);
    else if (argument.starts_with('@'))
      add_lines(read_file(argument.substr(1), kMaxImageListBytes), paths);
    else
      add_path(argument, paths);
  VT_REQUIRE(!paths.empty(), ErrorKind::kData, "the list names no images");
  return paths;
}

std::vector<std::string> list_images(const std::vector<std::string>& arguments) {
  const bool listed = std::find(arguments.begin(), arguments.end(), "-") != arguments.end();
  return list_images(arguments, listed ? read_standard_input(kMaxImageListBytes) : "");
}

Image load_listed_image(const std::string& path, bool upright, std::string& note) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw Error(ErrorKind::kData, strf("there is no image %s", quoted(path).c_str()), "check the path");
  VT_REQUIRE(!fs::is_directory(path, ignored), ErrorKind::kData, "no images (%s) can be read under %s",
             join(image_endings(), ", ").c_str(), quoted(path).c_str());
  DecodeReport report;
  Image image = load_image(path, {}, &report);
  if (upright) return turned_upright(std::move(image), report.exif_orientation);
  if (report.exif_orientation > 1)
    note = strf("%s: EXIF orientation %d not applied", shown(path).c_str(), report.exif_orientation);
  return image;
}

Error with_list_hint(const std::string& path, const Error& error) {
  if (error.kind() != ErrorKind::kData || is_image_name(path) || !begins_as_text(path)) return error;
  Error better(error.kind(), error.message(), "if it lists images, one path a line: @" + shown(path));
  return better.at(shown(path));
}

}  // namespace vitrail
