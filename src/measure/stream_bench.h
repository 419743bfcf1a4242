// Decoding alone, computing alone, and both overlapped over a list of image files, measured in alternation,
// so that a disturbance of the machine affects all three. Prints nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/engine.h"
#include "api/image_stream.h"

namespace vitrail {

class StreamBench {
 public:
  // `options.batch` images are computed at once; `threads_option` names the option of threads in errors.
  StreamBench(const OpenedModel& model, EngineOptions options, std::vector<std::string> paths,
              const std::string& threads_option);

  // Measures each of the three once more; an image that cannot be read throws its error.
  void round();

  nlohmann::ordered_json to_json() const;
  std::string to_text() const;

 private:
  void pass(bool decoding, bool computing);
  double seconds_of(bool decoding, bool computing);

  std::vector<std::string> paths_;
  StreamSettings stream_;
  EngineOptions options_;
  Engine engine_;
  std::vector<float> pixels_;  // the last decoded batch
  std::vector<double> decode_, compute_, both_;
};

}  // namespace vitrail
