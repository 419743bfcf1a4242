// Says which images a run reads, as data. Knows no format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vitrail {

struct DataConfig {
  std::string train;                     // FORMAT:PLACE, see docs/datasets.md
  std::string val;                       // empty: the data's own validation part, or one split off `train`
  double val_fraction = 0.1;             // for a set without a validation part, by hash of the sample's name
  double fraction = 1;                   // share of the training part that is used, the same of every class
  std::vector<std::string> classes;      // keep only these; empty: all
  std::vector<std::string> class_names;  // shown instead of the data's own, in its order; empty: its own

  template <typename Self, typename V>
  static void fields(Self& c, V&& v) {
    v("train", c.train, "training data, FORMAT:PLACE (folder:DIR, cifar10:DIR, tar:GLOB...)");
    v("val", c.val,
      "validation data; empty: the data's own validation part, or a split of the training data");
    v("val_fraction", c.val_fraction, "share split off for validation when the data has no such part");
    v("fraction", c.fraction, "share of the training data to use, equal for every class");
    v("classes", c.classes, "names of the classes to keep; empty: all");
    v("class_names", c.class_names, "names given to the classes, in the data's order; empty: its own");
  }
};

// Throws Error(kConfig) naming key, value and rule.
void validate(const DataConfig& config);

}  // namespace vitrail
