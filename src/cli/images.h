// The images a command was given (data/image_list.h says what an argument means), and what becomes of
// those that cannot be read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/console.h"
#include "cli/options.h"

namespace vitrail::cli {

// What IMAGE... means, for help pages.
inline constexpr const char* kImagesHelp =
    "JPEG, PNG or WebP files, folders of them, @FILE for a list of paths, or - for a list on stdin";

// The images that a command's arguments name; "-" reads stdin.
std::vector<std::string> given_images(const Options& options);

// --exif, and what is said when images have an orientation and it was not given.
OptionSpec exif_option();
void say_not_turned(size_t count, Console& console);

// Images that failed while the others go on. Each gets its JSON line and its text once; the end of the
// command is the error of the only image, or the count of those that failed.
class FailedImages {
 public:
  FailedImages(Console& console, size_t total) : console_(console), total_(total) {}

  // Errors of the image or of what the model made of it; any other kind is thrown on.
  void add(const std::string& path, const Error& error);
  void throw_if_any() const;

 private:
  Console& console_;
  size_t total_, failed_ = 0;
  std::optional<Error> worst_;
};

}  // namespace vitrail::cli
