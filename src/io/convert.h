// A model written in another dialect and held against its source: which dialect a file's ending stands for,
// how numbers are stored, what the new files keep. Prints nothing.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "io/model_files.h"

namespace vitrail {

struct ConvertRequest {
  std::string source, target;  // a model's path; a file or folder to write
  std::string dialect = {};    // empty: the one that the target's ending stands for
  std::string dtype = "same";  // or f32, f16, bf16
  std::string arch = {};       // when the source leaves a choice
  bool overwrite = false;
};

// Parameters of two models, number by number.
struct ParamComparison {
  int64_t params = 0, elems = 0, beyond = 0;  // beyond: changed by more than storing explains
  double max_difference = 0;
  std::string worst;  // the parameter of the largest difference
};
// "every number is the same", or what the largest difference is and whether storing explains it.
std::string verdict(const ParamComparison& comparison, DType storage);

class Conversion {
 public:
  // Opens the source and decides how it is written. Error(kUsage) for what cannot be written so.
  explicit Conversion(const ConvertRequest& request);

  using Advance = std::function<void()>;  // one parameter more
  void write(const Advance& advance);
  // Opens what was written and compares.
  ParamComparison compare(const Advance& advance);

  const OpenedModel& before() const { return *before_; }
  const OpenedModel& after() const { return *after_; }
  const WriteOptions& how() const { return how_; }
  const std::string& target() const { return target_; }
  // These list what is not as it was.
  const std::vector<std::string>& changed() const { return changed_; }    // as Vitrail reads the new model
  const std::vector<std::string>& not_kept() const { return not_kept_; }  // as the dialect's library does
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void look_as_library();

  std::string target_;
  std::unique_ptr<OpenedModel> before_, after_;
  WriteOptions how_;
  std::vector<std::string> changed_, not_kept_, notes_;
};

// Returns what was converted and how it compares, for scripts and for people.
nlohmann::ordered_json to_json(const Conversion& conversion, const ParamComparison& comparison);
std::string to_text(const Conversion& conversion, const ParamComparison& comparison);
// Throws Error(kCheck) where numbers changed by more than storing explains.
void require_close(const Conversion& conversion, const ParamComparison& comparison);

}  // namespace vitrail
