// The parameters of a ViT by part, beside the formula of the study "Exploring the Computational Power of
// ViTs" (004 in docs/experiments/claims.md), and its Table 1 counted again, ResNets included. Prints nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "models/vit_config.h"

namespace vitrail {

struct ParameterRow {
  std::string part;
  int64_t exact = 0;
  std::optional<int64_t> document;  // what the document's formula gives; it has none for some parts
  std::string formula;
};

struct ParameterTable {
  std::string model;
  std::vector<ParameterRow> rows;

  int64_t exact() const;     // of all parts
  int64_t document() const;  // of those that the document counts
};
ParameterTable parameter_table(const VitConfig& config);

// A ResNet as He et al. built it, counted convolution by convolution.
struct ResnetCount {
  int layers = 0;
  int64_t convolutions = 0, norms = 0, head = 0;

  int64_t total() const { return convolutions + norms + head; }
};
// Throws Error(kUsage) for a number of layers other than 18, 34, 50, 101 and 152.
ResnetCount count_resnet(int layers, int64_t classes = 1000);

// The document's Table 1: what it printed, in millions, beside exact counts with 1,000 classes.
struct TableOneRow {
  std::string model;
  int64_t exact = 0;
  double printed = 0;     // its column of totals
  double calculated = 0;  // its column of calculated parameters, or its formula's
  int64_t head = 0;       // exact, of the fully connected layer
};
struct TableOne {
  std::vector<TableOneRow> rows;
};
TableOne table_one();

nlohmann::ordered_json to_json(const ParameterTable& table);
std::string to_text(const ParameterTable& table);
nlohmann::ordered_json to_json(const TableOne& table);
std::string to_text(const TableOne& table);

}  // namespace vitrail
