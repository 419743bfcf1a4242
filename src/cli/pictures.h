// The pictures a command was given: files, folders, lists; reading one, and what becomes of those that cannot
// be read. Used by predict and explain.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/console.h"
#include "cli/options.h"
#include "data/image.h"

namespace vitrail::cli {

// What IMAGE... means, for help pages.
inline constexpr const char* kPicturesHelp =
    "JPEG, PNG or WebP files, folders of them, @FILE for a list of paths, or - for a list on stdin";

// Files as they are, folders as every picture below them by byte order of the path (links to
// folders followed), "@FILE" as the paths in
// FILE and "-" as those in `list_text`, one a line. A name that does not exist or a folder without pictures
// stays in the list: reading it is that picture's error. Throws Error(kData) when nothing is left.
std::vector<std::string> list_pictures(const std::vector<std::string>& arguments,
                                       const std::string& list_text);
// The same for a command's arguments; "-" reads stdin.
std::vector<std::string> given_pictures(const Options& options);

// Whether its ending is one of jpg, jpeg, png, webp.
bool is_picture_name(const std::string& path);

// load_image with errors in terms of the command line: a path that is none, a list taken for a picture. An
// EXIF orientation is applied if `upright`, otherwise told in `note`, which stays empty when there is none.
Image load_picture(const std::string& path, bool upright, std::string& note);

// --exif, and what is said when images have an orientation and it was not given.
OptionSpec exif_option();
void say_not_turned(size_t count, Console& console);

// Error(kNumerics) when a model's numbers hold NaN or infinity; `what` names them ("logits").
void require_finite(std::span<const float> values, const char* what);

// Pictures that failed while the others go on. Each gets its JSON line and its text once; the end of the
// command is the error of the only picture, or the count of those that failed.
class FailedPictures {
 public:
  FailedPictures(Console& console, size_t total) : console_(console), total_(total) {}

  // Errors of the picture or of what the model made of it; any other kind is thrown on.
  void add(const std::string& path, const Error& error);
  void throw_if_any() const;

 private:
  Console& console_;
  size_t total_, failed_ = 0;
  std::optional<Error> worst_;
};

}  // namespace vitrail::cli
