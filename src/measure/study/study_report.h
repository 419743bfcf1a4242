// The files of a finished study: study.json, study.csv, a figure each as SVG, and report.html with all of
// them. Knows no terminal.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "measure/study/study.h"

namespace vitrail {

// Writes all files into the folder, each whole or not at all.
void write_study(const Study& study, const std::string& folder);

// Throws Error(kCheck) where a case has failed.
void require_no_failure(const Study& study);

}  // namespace vitrail
