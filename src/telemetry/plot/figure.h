// A drawing with its title and legend, as part of a page or as an SVG file of its own. Both follow the
// reader's light or dark theme, load nothing and need no script. What a figure shows is made by plot.h.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail {

// Series take the palette's colours in turn (classes c0 to c7). They stay apart for eyes that lack one of the
// three cones, and stand out from the background.
inline constexpr int kColours = 8;
struct Palette {
  const char *back, *ink, *soft, *line, *grid, *on;  // background, text, labels, axes, grid, text on a colour
  std::array<const char*, kColours> colours;
};
extern const Palette kLightPalette, kDarkPalette;

enum class KeyKind { kLine, kDashed, kArea, kMark };
struct LegendKey {
  std::string name;
  KeyKind kind = KeyKind::kLine;
  int colour = 0, shape = 0;  // a shape below 0: a line without markers
};

struct Figure {
  std::string title, note;  // the note says the unit, smaller
  std::vector<LegendKey> legend;
  double width = 0, height = 0;  // of the drawing, in its own units
  std::string body;              // SVG elements
  bool wide = false;             // on a page: has a row of its own
  double page_width = 0;         // on a page, in pixels; 0: as wide as there is room
};

// Returns a <figure> with caption, legend and <svg>, for a page with plot_style().
std::string to_html(const Figure& figure);
// Returns a complete SVG document.
std::string to_svg(const Figure& figure);
// Returns the style rules of figures in both themes.
std::string plot_style();

// These are for those who draw. A marker is one of several shapes, so that colour is not all that tells
// series apart.
std::string marker(int shape, int colour, double x, double y, double size);
double text_width(std::string_view text);  // about, at the labels' size
// Returns the beginning of a name that has no more letters than `most`; a cut one ends in an ellipsis.
std::string shortened(const std::string& name, size_t most);

}  // namespace vitrail
