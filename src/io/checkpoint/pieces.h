// The state of a checkpoint in pieces, a safetensors file from each rank that wrote it. The file's metadata
// names the save and says of every tensor which part of what it holds. Read as one source of whole tensors,
// whatever ranks wrote them. Knows no communication.
#pragma once

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/part.h"
#include "io/tensor_source.h"

namespace vitrail {

std::string piece_name(int64_t rank, int64_t of);  // "state-00001-of-00004.safetensors"

// A part of a tensor to be written: `tensor` has the tensor's own name and the part's elements, flat.
struct PartToWrite {
  TensorToWrite tensor;
  TensorPart part;
};
PartToWrite part_to_write(std::string name, DType dtype, TensorPart part,
                          std::function<void(std::span<std::byte>)> fill);

struct PieceMark {
  std::string save;  // the same in all pieces of a save, and in no other save
  int64_t rank = 0, of = 1;
};

// Writes a rank's piece into the folder, durable on return, and returns its record as it was read back.
FileRecord write_piece(const std::string& folder, const PieceMark& mark,
                       const std::vector<PartToWrite>& parts);

// Opens the pieces of a save as one source of whole tensors. Throws Error(kData) naming a piece that is
// missing, of another save or not what its name says, or elements that are in no piece or in two.
std::unique_ptr<TensorSource> open_pieces(const std::string& folder, const std::string& save, int64_t of);

}  // namespace vitrail
