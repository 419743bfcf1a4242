// A page that stands alone: no network, no fonts, no other files, light or dark as the reader's theme is.
// Reports put it together section by section; a section without content is left out. Knows nothing of what is
// shown.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "telemetry/html.h"
#include "telemetry/plot/figure.h"

namespace vitrail {

using PagePairs = std::vector<std::pair<std::string, std::string>>;

class Page {
 public:
  explicit Page(std::string title) : title_(std::move(title)) {}

  // These stand between the title and the first section: what came out in a sentence, and the few numbers
  // that matter, label and value.
  void verdict(const std::string& text);
  void tiles(const PagePairs& figures);

  // What follows belongs to this section.
  void section(std::string id, std::string title);
  void heading(const std::string& text);
  void paragraph(const std::string& text);
  void note(const std::string& text);  // smaller; nothing, where it is empty
  void table(const HtmlTable& table);  // nothing, where it has no row
  void pairs(const PagePairs& list);   // a table of two columns
  void figure(const Figure& figure);
  void figures(const std::vector<Figure>& list);  // side by side where there is room
  void html(const std::string& markup);

  // Returns the whole document.
  std::string text(const std::string& footer) const;

 private:
  struct Section {
    std::string id, title, body;
  };
  std::string title_, head_;
  std::vector<Section> sections_;
};

}  // namespace vitrail
