#include "api/option_words.h"

#include <algorithm>
#include <cctype>

namespace vitrail {

namespace {

struct Word {
  std::string_view option, api;
  bool of_owner = false;
  std::string_view of_config = {};  // for TrainOptions, whose config has it
};

// Phrases before the words in them.
constexpr Word kWords[] = {
    {"as in: -m model.safetensors --arch", "with ModelOptions::arch", false, "with model.arch"},
    {" (VITRAIL_MODELS names the folder that holds them)", ""},  // the library reads no environment
    {"--resume without =strict", "Resume::kNewest"},
    {"--resume", "Resume::kNewest"},
    {"--out", "TrainOptions::folder"},
    {"--arch NAME", "ModelOptions::arch", false, "model.arch"},
    {"--arch", "ModelOptions::arch", false, "model.arch"},
    {"--set ", "in the config, "},
    {"--config FILE", "a config that has it"},
    {"--classes gives", "model.classes gives"},
    {"--ranks", "TrainOptions::ranks"},
    {"--target", "target"},
    {"--threads", "threads", true},
    {"--dtype", "dtype", true},
    {"--device", "device", true},
};

// Whether an option may begin at this place: what stands within a path is none.
bool begins(const std::string& text, size_t at) {
  return at == 0 || std::isspace(static_cast<unsigned char>(text[at - 1])) || text[at - 1] == '(';
}

bool goes_on(const std::string& text, size_t at) {
  return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '-');
}

// Whether the option at this place is one of a command that is named: vitrail bench calibrate --out FILE.
bool is_of_command(const std::string& text, size_t at) {
  const size_t command = text.rfind("vitrail ", at);
  return command != std::string::npos && text.find_first_of(",;:", command) >= at;
}

}  // namespace

std::string in_words_of(const std::string& owner, std::string text) {
  for (const Word& word : kWords) {
    const bool in_config = owner == "TrainOptions" && !word.of_config.empty();
    const std::string api =
        (word.of_owner ? owner + "::" : "") + std::string(in_config ? word.of_config : word.api);
    for (size_t at = text.find(word.option); at != std::string::npos; at = text.find(word.option, at)) {
      const bool other = (word.option.back() != ' ' && goes_on(text, at + word.option.size())) ||
                         (word.option.front() == '-' && !begins(text, at));
      if (!other && !is_of_command(text, at)) text.replace(at, word.option.size(), api);
      at += std::min(word.option.size(), api.size());
    }
  }
  return text;
}

Error in_words_of(const std::string& owner, const Error& error) {
  Error own(error.kind(), in_words_of(owner, error.message()), in_words_of(owner, error.hint()));
  const std::vector<std::string>& places = error.context();
  for (auto place = places.rbegin(); place != places.rend(); ++place) own.at(in_words_of(owner, *place));
  return own;
}

}  // namespace vitrail
