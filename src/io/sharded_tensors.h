// An index (model.safetensors.index.json, pytorch_model.bin.index.json) and the shards beside it, as one
// source. Shards are plain file names in the index's folder, and every tensor lies in exactly the shard the
// index names.
#pragma once

#include <memory>
#include <string>

#include "io/tensor_source.h"

namespace vitrail {

using ShardOpener = std::unique_ptr<TensorSource> (*)(const std::string& path);

std::unique_ptr<TensorSource> open_sharded(const std::string& index_json_path, ShardOpener open_shard);

}  // namespace vitrail
