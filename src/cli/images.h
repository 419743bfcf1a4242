// The options of commands that read images (data/image_list.h defines what an IMAGE argument means), and the
// report of images that cannot be read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/console.h"
#include "cli/options.h"

namespace vitrail::cli {

// The help text of IMAGE... arguments.
inline constexpr const char* kImagesHelp =
    "JPEG, PNG or WebP files, folders of them, @FILE for a list of paths, or - for a list on stdin";

// The option --exif, and the notice for images with an orientation when the option was not given.
OptionSpec exif_option();
void say_not_turned(size_t count, Console& console);

// Collects images that failed while the others go on. Each gets one JSON line and one message; the command
// ends with the error of the only image, or with the number of images that failed.
class FailedImages {
 public:
  FailedImages(Console& console, size_t total) : console_(console), total_(total) {}

  // Records an error of the image or of the model's results for it; any other kind is rethrown.
  void add(const std::string& path, const Error& error);
  void throw_if_any() const;

 private:
  Console& console_;
  size_t total_, failed_ = 0;
  std::optional<Error> worst_;
};

}  // namespace vitrail::cli
