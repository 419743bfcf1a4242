// Rows of a profile as tables, for the terminal and for a page: time, share, FLOPs, bytes, rates, arithmetic
// intensity, and how far each row is from the roofline. Measures nothing.
#pragma once

#include <string>
#include <vector>

#include "measure/profile.h"
#include "telemetry/html.h"

namespace vitrail {

// The tables of parts have a column for the time in one layer, the table of operations one for the kernel.
// Where rows are of several phases, there is a column for it.
enum class ProfileColumns { kParts, kKernels };
std::string profile_table(const std::vector<ProfileRow>& rows, const Peaks& peaks, ProfileColumns which);
HtmlTable profile_html(const std::vector<ProfileRow>& rows, const Peaks& peaks, ProfileColumns which);

// One model on two devices, compared row by row.
struct ProfileSide {
  std::string name;
  std::vector<ProfileRow> rows;
  Peaks peaks;
};
std::string beside_table(const ProfileSide& first, const ProfileSide& second);

}  // namespace vitrail
