// The files of one checkpoint in its folder: written and sealed, compared with their checksums, opened. Knows
// nothing of the folder's name and of other checkpoints.
#pragma once

#include "io/checkpoint/checkpoint.h"

namespace vitrail {

class SharedSave;

// Writes everything into the empty folder, the manifest last. `together` has the other ranks write their
// pieces; null: there are none.
void write_checkpoint_files(const CheckpointContent& content, const std::string& folder,
                            SharedSave* together);

// Reads the folder's manifest, which must be of this step, and compares the files with it: all of them, or
// this rank's share. Throws Error(kData) naming what is wrong, NewerFormat for a later format.
Manifest verified_manifest(const std::string& folder, int64_t step, const Partners* partners);

std::unique_ptr<TensorSource> open_state(const std::string& folder, const Manifest& manifest);

}  // namespace vitrail
