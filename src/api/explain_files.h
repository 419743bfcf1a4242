// What an explanation of images leaves on disk: a folder for each image, an overlay for each map, a sheet of
// all of them. Knows no options and prints nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/explain.h"
#include "image/image.h"
#include "io/cards/card.h"

namespace vitrail {

// Returns one folder for each image below `out`, or `out` itself for a single one. Where images share a name
// their folders are numbered, and a line of `notes` says so.
std::vector<std::string> output_folders(const std::vector<std::string>& paths, const std::string& out,
                                        std::vector<std::string>& notes);

// Writes the overlays and, last, the sheet; returns their paths in this order.
std::vector<std::string> write_maps(const Image& image, const ModelCard& card,
                                    const std::vector<NamedMap>& maps, const std::string& folder);

// Returns the settings of the maps, with every default spelled out.
nlohmann::ordered_json explain_settings(const ModelCard& card, const AttentionRequest& request,
                                        const std::string& method, const std::string& device);
// Returns "3 overlays of block 11 and the rollout".
std::string maps_text(const AttentionRequest& request, size_t count);

}  // namespace vitrail
