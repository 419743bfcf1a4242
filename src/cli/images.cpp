#include "cli/images.h"

#include <nlohmann/json.hpp>

#include "api/classify.h"
#include "base/text.h"
#include "cli/run.h"
#include "data/image_list.h"

namespace vitrail::cli {

OptionSpec exif_option() {
  return {.name = "exif",
          .help =
              "turn images as their EXIF orientation says, as transformers' pipelines do; timm and "
              "torchvision do not",
          .kind = ValueKind::kFlag};
}

void say_not_turned(size_t count, Console& console) {
  if (count > 0)
    console.say(
        strf("%zu image%s an EXIF orientation that was not applied, as timm does; --exif applies it, as "
             "transformers' pipelines do",
             count, count == 1 ? " has" : "s have"));
}

void FailedImages::add(const std::string& path, const Error& error) {
  if (error.kind() != ErrorKind::kData && error.kind() != ErrorKind::kNumerics) throw error;
  ++failed_;
  const Error told = with_list_hint(path, error);
  if (!worst_ || worst_->kind() == ErrorKind::kData) worst_ = told;
  nlohmann::ordered_json json = image_json(path);
  json["error"] = error.message();
  console_.print_json(json);
  if (total_ > 1) console_.error(format_error(told, false, false));
}

void FailedImages::throw_if_any() const {
  if (!worst_) return;
  if (total_ == 1) throw Error(*worst_);
  throw Error(worst_->kind(), strf("%zu of %zu images failed", failed_, total_));
}

}  // namespace vitrail::cli
