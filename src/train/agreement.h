// Passes on what ranks of a job tell each other beside their values: texts and numbers from one to all, texts
// from all to all, and that they run the same program on the same config and data. Knows no trainer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "dist/communicator.h"

namespace vitrail {

// The text, or the number, that the first rank has.
std::string from_first(Communicator& ranks, const std::string& text);
double from_first(Communicator& ranks, double number);
int64_t from_first(Communicator& ranks, int64_t number);
// The texts of all ranks, by rank.
std::vector<std::string> from_all(Communicator& ranks, const std::string& text);

// Throws Error(kConfig) on a rank whose facts are not those of the first one, naming the first key that
// differs and the rank. `facts` are flat: a key and a value each. Only ranks that give the same `group` are
// compared.
void require_same_facts(Communicator& ranks, const Json& facts, const std::string& group = {});
// A config as facts: "train.steps" and its value, for every setting but those that hosts may differ in, as
// paths and workers.
Json config_facts(const Json& config);

}  // namespace vitrail
