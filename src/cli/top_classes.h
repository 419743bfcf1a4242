// The likeliest classes of an image as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/classify.h"

namespace vitrail::cli {

std::string top_classes_text(const std::vector<TopClass>& top, size_t indent);
// Returns [{"class", "label", "prob"}].
nlohmann::ordered_json top_classes_json(const std::vector<TopClass>& top);

}  // namespace vitrail::cli
