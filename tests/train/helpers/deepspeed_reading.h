// A DeepSpeed JSON as it is read, for tests: its settings, its notes, its errors.
#pragma once

#include <set>

#include "train/config_io.h"
#include "train/deepspeed/deepspeed.h"

namespace vitrail::testing {

inline DeepSpeedReading translated(const std::string& text, const DeepSpeedBase& base = {}) {
  return translate_deepspeed(parse_deepspeed(text, "ds.json"), "ds.json", base);
}

inline Error error_of(const std::string& text, const DeepSpeedBase& base = {}) {
  try {
    translated(text, base);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::kInternal, "nothing was thrown");
}

inline std::set<std::string> keys_of(const std::vector<DeepSpeedNote>& notes) {
  std::set<std::string> keys;
  for (const DeepSpeedNote& note : notes) keys.insert(note.key);
  return keys;
}

inline std::string text_of(const DeepSpeedReading& reading, const std::string& key) {
  std::string text;
  for (const DeepSpeedNote& note : reading.notes)
    if (note.key == key) text += note.text + "\n";
  return text;
}

inline DeepSpeedBase with_batch(int64_t batch, int ranks) {
  DeepSpeedBase base;
  base.config.train.batch = batch;
  base.config.data.train = "synthetic:3x8x8x4x64";
  base.ranks = ranks;
  return base;
}

// The setting "optim.lr" of what was read.
inline Json setting_of(const DeepSpeedReading& reading, const std::string& key) {
  const size_t dot = key.find('.');
  return to_json(reading.config)[key.substr(0, dot)][key.substr(dot + 1)];
}

}  // namespace vitrail::testing
