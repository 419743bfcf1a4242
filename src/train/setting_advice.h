// Says what to try when a setting is refused: an error of a config without a hint gets one here, from the
// list of fields that declares the settings. Knows no command line: it is told which settings were given.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fields.h"

namespace vitrail {

// Says whether a setting has a value that is not its default.
using SettingGiven = std::function<bool(const std::string& key)>;

// Returns the error with a hint added if it is about settings (kConfig) and has none. The hint is for the
// setting that the message names: a given one, by its full name, by the name it stands for or by the last
// part of its name; otherwise one that has a default.
Error with_advice(const Error& error, const std::vector<FieldSpec>& settings, const SettingGiven& given);

}  // namespace vitrail
