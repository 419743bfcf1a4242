// The figures of a study: time, speed-up and efficiency against ranks, shares of an update and accuracy
// against the batch, loss and accuracy by epoch, transports and devices side by side, all-reduces by size.
// Those without data are left out.
#pragma once

#include <string>
#include <vector>

#include "measure/study/study.h"
#include "telemetry/plot/figure.h"

namespace vitrail {

struct StudyFigure {
  std::string name;  // of its file, without ".svg"
  Figure figure;
};
std::vector<StudyFigure> figures_of(const Study& study);

// Those of one model on one device; figures_of() puts them together.
struct Side {
  const Study& study;
  std::string model, device;
  bool named;  // several sides: titles and files say which

  std::string title(const std::string& text) const;
  std::string file(const std::string& name) const;
};
void add_scaling_figures(const Side& side, std::vector<StudyFigure>& figures);
void add_batch_figures(const Side& side, std::vector<StudyFigure>& figures);

}  // namespace vitrail
