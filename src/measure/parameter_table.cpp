#include "measure/parameter_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/vit_params.h"
#include "models/zoo.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

constexpr const char* kParts[] = {"patch embedding", "positions and tokens", "attention", "MLP",
                                  "norms",           "layer scale",          "head"};
enum Part { kPatches, kPositions, kAttention, kMlp, kNorms, kLayerScale, kHead };

// The row of the table that a parameter belongs to. Attention pooling is part of the head.
Part row_of(const ParamSpec& param) {
  if (param.pools) return kHead;
  switch (param.part) {
    case ParamPart::kPatches:
      return kPatches;
    case ParamPart::kTokens:
      return kPositions;
    case ParamPart::kAttention:
      return kAttention;
    case ParamPart::kMlp:
      return kMlp;
    case ParamPart::kNorm:
      return kNorms;
    case ParamPart::kLayerScale:
      return kLayerScale;
    case ParamPart::kUnlisted:
    case ParamPart::kPreLogits:
    case ParamPart::kHead:
      break;
  }
  return kHead;
}

// Counts a network of convolutions without biases, each with a batch norm behind it.
struct ConvolutionCounter {
  ResnetCount& count;
  void add(int64_t side, int64_t inputs, int64_t outputs) {
    count.convolutions += side * side * inputs * outputs;
    count.norms += 2 * outputs;
  }
};

struct ResnetShape {
  int layers;
  int blocks[4];
  bool bottleneck;
};
constexpr ResnetShape kResnets[] = {{18, {2, 2, 2, 2}, false},
                                    {34, {3, 4, 6, 3}, false},
                                    {50, {3, 4, 6, 3}, true},
                                    {101, {3, 4, 23, 3}, true},
                                    {152, {3, 8, 36, 3}, true}};

std::string millions(double count) {
  return strf("%.2f M", count / 1e6);
}

std::string wrong_by(const TableOneRow& row) {
  return strf("%+.1f %%", 100 * (row.printed * 1e6 / static_cast<double>(row.exact) - 1));
}

constexpr const char* kErrata =
    "\nErrors of the document:\n"
    "- its ResNet rows are the sizes of no ResNet; the exact ones count every convolution (f f d k, no "
    "bias),\n"
    "  the batch norms behind them (2 k) and the last layer;\n"
    "- a fully connected layer has (p + 1) c parameters, not ((c p) + 1) c;\n"
    "- a convolution's output has (n - f + 2 pad) / stride + 1 rows, not n - f;\n"
    "- most parameters are not in the last layer: see the column of the head;\n"
    "- n [1, d] counts the values of embedded patches; the embedding has p p c d + d parameters;\n"
    "- its formula for the encoder leaves out biases, norms, positions, embedding and head.\n";
}  // namespace

int64_t ParameterTable::exact() const {
  int64_t sum = 0;
  for (const ParameterRow& row : rows) sum += row.exact;
  return sum;
}

int64_t ParameterTable::document() const {
  int64_t sum = 0;
  for (const ParameterRow& row : rows) sum += row.document.value_or(0);
  return sum;
}

ParameterTable parameter_table(const VitConfig& config) {
  ParameterTable table{config.arch, {}};
  for (const char* part : kParts) table.rows.push_back({part, 0, std::nullopt, ""});
  for (const ParamSpec& param : vit_params(config)) table.rows[row_of(param)].exact += param.shape.elems();
  const int64_t d = config.width;
  ParameterRow &attention = table.rows[kAttention], &mlp = table.rows[kMlp];
  attention.document = config.depth * (config.heads * d * 3 * config.head_size() + d * d);
  attention.formula = "L (k d 3 d_h + d d)";
  mlp.document = config.depth * 2 * d * config.mlp;
  mlp.formula = "L (2 d d_mlp)";
  std::erase_if(table.rows, [](const ParameterRow& row) { return row.exact == 0; });
  return table;
}

ResnetCount count_resnet(int layers, int64_t classes) {
  const auto shape = std::find_if(std::begin(kResnets), std::end(kResnets),
                                  [&](const ResnetShape& s) { return s.layers == layers; });
  VT_REQUIRE(shape != std::end(kResnets), ErrorKind::kUsage,
             "there is no ResNet-%d; there are 18, 34, 50, 101 and 152", layers);
  ResnetCount count{.layers = layers};
  ConvolutionCounter network{count};
  network.add(7, 3, 64);
  int64_t inputs = 64;
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t width = int64_t{64} << stage, outputs = shape->bottleneck ? 4 * width : width;
    for (int block = 0; block < shape->blocks[stage]; ++block, inputs = outputs) {
      if (inputs != outputs) network.add(1, inputs, outputs);  // the shortcut's projection
      network.add(shape->bottleneck ? 1 : 3, inputs, width);
      network.add(3, width, width);
      if (shape->bottleneck) network.add(1, width, outputs);
    }
  }
  count.head = (inputs + 1) * classes;
  return count;
}

TableOne table_one() {
  TableOne table;
  struct Printed {
    int layers;
    double total, calculated;
  };
  for (const Printed& p : {Printed{18, 31.7, 33.3}, {34, 60.5, 63.6}, {50, 45.8, 46.4}, {101, 84.8, 85.5}}) {
    const ResnetCount count = count_resnet(p.layers);
    table.rows.push_back(
        {strf("ResNet-%d", p.layers), count.total(), p.total, p.calculated * 1e6, count.head});
  }
  for (const auto& [arch, total] : {std::pair{"vit_base_patch16_224", 86.0},
                                    {"vit_large_patch16_224", 307.0},
                                    {"vit_huge_patch14_224", 632.0}}) {
    VitConfig config = find_architecture(arch).config;
    config.classes = 1000;
    const ParameterTable parts = parameter_table(config);
    table.rows.push_back(
        {arch, parts.exact(), total, static_cast<double>(parts.document()), parts.rows.back().exact});
  }
  return table;
}

ordered_json to_json(const ParameterTable& table) {
  ordered_json json = {{"model", table.model}, {"params", table.exact()}, {"document", table.document()}};
  for (const ParameterRow& row : table.rows) {
    json["parts"].push_back({{"part", row.part}, {"params", row.exact}});
    if (row.document) json["parts"].back().update({{"document", *row.document}, {"formula", row.formula}});
  }
  return json;
}

std::string to_text(const ParameterTable& table) {
  Table text({{"part"},
              {"parameters", Align::kRight},
              {"share", Align::kRight},
              {"by formula", Align::kRight},
              {"the study's formula"}});
  const auto all = static_cast<double>(table.exact());
  for (const ParameterRow& row : table.rows)
    text.row({row.part, format_integer(row.exact), format_percent(static_cast<double>(row.exact) / all),
              row.document ? format_integer(*row.document) : "", row.formula});
  text.rule();
  text.row({"in all", format_integer(table.exact()), "", format_integer(table.document()),
            "L (k d 3 d_h + d d + 2 d d_mlp)"});
  return table.model + "\n" + text.text() +
         "\nThe formula counts the weights of the encoder's GEMMs and leaves out everything else.\n";
}

ordered_json to_json(const TableOne& table) {
  ordered_json json = ordered_json::array();
  for (const TableOneRow& row : table.rows)
    json.push_back({{"model", row.model},
                    {"params", row.exact},
                    {"head", row.head},
                    {"printed", row.printed * 1e6},
                    {"calculated", row.calculated}});
  return json;
}

std::string to_text(const TableOne& table) {
  Table text({{"model"},
              {"exact", Align::kRight},
              {"of it head", Align::kRight},
              {"printed total", Align::kRight},
              {"off", Align::kRight},
              {"calculated there, or by its formula", Align::kRight}});
  for (const TableOneRow& row : table.rows)
    text.row({row.model, format_integer(row.exact),
              format_percent(static_cast<double>(row.head) / static_cast<double>(row.exact)),
              strf("%.1f M", row.printed), wrong_by(row), millions(row.calculated)});
  return "Table 1 of \"Exploring the Computational Power of ViTs\", 1,000 classes\n" + text.text() + kErrata;
}

}  // namespace vitrail
