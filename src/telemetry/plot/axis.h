// A chart's axis: the range the values need, round tick marks in it, and where a value lies. Knows no SVG.
#pragma once

#include <string>
#include <vector>

namespace vitrail {

struct Tick {
  double value;
  std::string label;
};

class ChartAxis {
 public:
  // Makes an axis that covers every finite value added (positive, when logarithmic).
  explicit ChartAxis(bool logarithmic = false) : logarithmic_(logarithmic) {}
  void include(double value);

  // Ends the axis at round values when `round`, with about `wanted` ticks. Without values it is 0 to 1 (or 1
  // to 10).
  void finish(int wanted, bool round);

  // Marks these values instead of round ones; those outside the axis are left out.
  void mark(const std::vector<double>& values);

  bool holds(double value) const;       // whether it can be shown on this axis
  double position(double value) const;  // 0 at the low end, 1 at the high end
  double value_at(double position) const;
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  double scaled(double value) const;
  void linear_ticks(int wanted, bool round);
  void logarithmic_ticks(int wanted, bool round);

  bool logarithmic_, empty_ = true;
  double low_ = 0, high_ = 1;
  std::vector<Tick> ticks_;
};

}  // namespace vitrail
