// The page around a report: document head, style and script.
#pragma once

#include <string>
#include <vector>

namespace vitrail {

struct PageSection {
  std::string id, title;
  std::string body;  // HTML
};

// `heading`: HTML between the title and the sections. Sections without a body are left out.
std::string report_page(const std::string& title, const std::string& heading,
                        const std::vector<PageSection>& sections, const std::string& footer);

}  // namespace vitrail
