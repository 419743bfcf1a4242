// The table of tuned kernels as a file: which one holds for this machine, reading it, writing it. Used by
// every command that computes. The only reader of the table's place in the environment.
#pragma once

#include <memory>
#include <string>

#include "backend/kernel_table.h"
#include "cli/options.h"

namespace vitrail::cli {

// Where `bench tune` writes and everyone looks: below $XDG_CONFIG_HOME or ~/.config, named by the processor.
// Empty when there is no such place.
std::string default_kernels_path();

struct KernelsFile {
  std::shared_ptr<const KernelTable> table;  // null: none is used
  std::string note;                          // what was decided, for -v; empty: there is nothing to say
};

// A table made for another processor, other libraries or another version of Vitrail, or a broken file, is not
// used; the note says why.
KernelsFile read_kernels(const std::string& path);
void write_kernels(const std::string& path, const KernelTable& table);

// What --kernels says: a FILE, none, or auto, the default place. A FILE that cannot be used is refused
// (kData): it was asked for.
KernelsFile chosen_kernels(const Options& options);

}  // namespace vitrail::cli
