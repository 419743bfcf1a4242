// The images that a list of arguments names: files, folders, lists of paths; and reading one of them, with
// errors that say what the path is instead. It must know no command line and no model.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "image/image.h"

namespace vitrail {

inline constexpr size_t kMaxImageListBytes = 64 << 20;

// Returns files as they are, folders as every image below them by byte order of the path (links to folders
// followed), "@FILE" as the paths in FILE and "-" as those in `list_text`, one a line. A name that does not
// exist or a folder without images stays in the list: reading it is that image's error. Throws Error(kData)
// when nothing is left.
std::vector<std::string> list_images(const std::vector<std::string>& arguments, const std::string& list_text);
// Does the same with the list on standard input, which is read where an argument is "-".
std::vector<std::string> list_images(const std::vector<std::string>& arguments);

// Returns whether it ends like an image that decode_image reads.
bool is_image_name(const std::string& path);

// load_image with errors in terms of the list: a path that is none. An EXIF orientation is applied if
// `upright`, otherwise told in `note`, which stays empty when there is none.
Image load_listed_image(const std::string& path, bool upright, std::string& note);

// Returns the error of an image that was listed by list_images(); where the file begins like text it says how
// a list of images is given.
Error with_list_hint(const std::string& path, const Error& error);

}  // namespace vitrail
