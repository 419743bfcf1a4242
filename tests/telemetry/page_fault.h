// Whether a page or an SVG document is well formed, for tests that make them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace vitrail {

// Checks the tags of a page: every element closed in order, attributes quoted, no stray "<" or "&". Returns
// what is wrong, nothing when all is well. Scripts and styles are skipped.
inline std::string page_fault(const std::string& html) {
  std::vector<std::string> open;
  const std::string alone = " meta img br !DOCTYPE ";
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at)) {
    const size_t end = html.find('>', at);
    if (end == std::string::npos) return "unclosed tag at " + html.substr(at, 40);
    const std::string tag = html.substr(at + 1, end - at - 1);
    at = end;
    if (tag.find('<') != std::string::npos) return "stray < in " + tag;
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "odd quotes in " + tag;
    const std::string name =
        tag.substr(tag.starts_with('/') ? 1 : 0, tag.find_first_of(" /", 1) - (tag.starts_with('/') ? 1 : 0));
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return "unexpected <" + tag + ">";
      open.pop_back();
      continue;
    }
    if (tag.ends_with('/') || alone.find(" " + name + " ") != std::string::npos) continue;
    open.push_back(name);
    if (name == "script" || name == "style") at = html.find("</" + name, at);
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

}  // namespace vitrail
