// The file while it is read: typed values by dotted keys, "auto" taken from the config, and the settings,
// notes and refusals that the sections leave. Knows no section.
#pragma once

#include <optional>

#include "train/deepspeed/deepspeed.h"

namespace vitrail::deepspeed {

struct Limits {
  double least = 0, most = 1e30;
};
inline constexpr Limits kCount{1, 2147483647};
inline constexpr double kExact = 9007199254740992;  // up to here a double holds every whole number

class Reader {
 public:
  Reader(const Json& file, std::string place, const DeepSpeedBase& base);

  const Json& file() const { return file_; }
  const std::string& place() const { return place_; }
  int ranks() const { return base_.ranks; }

  // The value under "fp16.loss_scale"; null where it is absent or null.
  const Json* find(std::string_view path) const;
  bool is_auto(std::string_view path) const;

  // Returns nothing where the key is absent. An "auto" is what the config has under `key`, and is told.
  std::optional<double> number(const std::string& path, const std::string& key, Limits limits);
  std::optional<int64_t> integer(const std::string& path, const std::string& key, Limits limits);
  std::optional<bool> flag(const std::string& path, const std::string& key);
  std::string word(const std::string& path);  // a text; empty where the key is absent

  // Reads into a setting; the second form has DeepSpeed's default for a key that its block leaves out.
  void take_number(const std::string& path, const std::string& key, Limits limits);
  void take_number(const std::string& path, const std::string& key, Limits limits, double otherwise);
  void take_integer(const std::string& path, const std::string& key, Limits limits);
  void take_flag(const std::string& path, const std::string& key);

  // Settings of the config: the present value with what was set so far, by whom it was given, whether there
  // is such a setting at all.
  Json value_of(const std::string& key) const;
  GivenBy given_by(const std::string& key) const;
  static bool has_setting(const std::string& key);
  // Keeps what the command line gave, and tells it; tells what replaces a value of the config.
  void set(const std::string& key, Json value, const std::string& path);
  TrainConfig config() const;  // as set so far

  void note(const std::string& path, std::string text);
  void refuse(const std::string& path, const std::string& why);
  [[noreturn]] void wrong(const std::string& path, const std::string& expected) const;

  DeepSpeedReading finish();

 private:
  std::optional<double> checked(const std::string& path, const std::string& key, Limits limits, bool whole);
  void note_auto(const std::string& path, const std::string& key);

  const Json& file_;
  std::string place_;
  const DeepSpeedBase& base_;
  Json settings_;  // those of the base, section by section
  Json changed_ = Json::object();
  DeepSpeedReading result_;
};

// A name from the file for messages: bounded, nothing that a terminal would obey.
std::string name_text(const std::string& name);
// A bound of a range for messages: whole numbers with all their digits.
std::string limit_text(double limit);

}  // namespace vitrail::deepspeed
