// States what Vitrail does with every key of a DeepSpeed JSON: one table, by which a file's keys are sorted
// and which docs/deepspeed.md lists.
#pragma once

#include <span>

#include "train/deepspeed/reader.h"

namespace vitrail::deepspeed {

enum class Rule {
  kRead,   // a section reads it
  kBlock,  // an object of keys that are in this table, too
  kNone,   // without effect on the result: named and passed over
  kOff     // refused where it is switched on
};

struct KeyRow {
  std::string_view key;  // "zero_optimization.stage"
  Rule rule;
  std::string_view text;  // what it becomes, why it has no effect, what it would do
};

std::span<const KeyRow> deepspeed_keys();

// Names what has no effect, refuses what is switched on and cannot be honoured, and what DeepSpeed itself
// does not know.
void sort_keys(Reader& reader);

// Returns whether a value switches something on: by any "enabled" within it, else by being there at all.
bool is_on(const Json& value);

// "did you mean x?" for a key of the file, or nothing.
std::string nearest_key(const std::string& wrong, std::span<const std::string_view> known);

// The sections, each of which reads the keys that are its own.
void read_mesh(Reader& reader);
void read_batch(Reader& reader);
void read_precision(Reader& reader);
void read_optimizer(Reader& reader);
void read_scheduler(Reader& reader);
void read_zero(Reader& reader);
void read_memory(Reader& reader);
void read_output(Reader& reader);

}  // namespace vitrail::deepspeed
