#include <filesystem>
#include <unordered_set>

#include "base/json.h"
#include "io/sealed_folder.h"
#include "io/sharded_tensors.h"
#include "io/tensor_limits.h"

namespace vitrail {

namespace {

constexpr size_t kMaxIndexBytes = size_t{64} << 20;
constexpr size_t kMaxShards = 1000;

// Requires a name, never a path, so that the index cannot reach outside its folder. (Links placed in the
// folder by its owner are followed, since download caches consist of them.)
void require_plain_file_name(const std::string& name) {
  const bool plain = !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
                     name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
  VT_REQUIRE(plain, ErrorKind::kData, "the shard %s must be a plain file name in the index's folder",
             quoted(name).c_str());
}

class ShardedTensors : public TensorSource {
 public:
  ShardedTensors(const std::string& index_path, ShardOpener open_shard) : open_shard_(open_shard) {
    path_ = index_path;
    const Json index =
        parse_json(read_sealed(index_path, kMaxIndexBytes), index_path, {.max_bytes = kMaxIndexBytes});
    with_context(index_path, [&] { open(index); });
  }

  std::vector<std::string> files() const override {
    std::vector<std::string> files = {path_};
    for (const auto& shard : shards_) files.push_back(shard->path());
    return files;
  }

  void read(size_t index, std::span<std::byte> target) const override {
    const Place& place = places_.at(index);
    shards_[place.shard]->read(place.index, target);
  }

  bool has_parts(size_t index) const override {
    const Place& place = places_.at(index);
    return shards_[place.shard]->has_parts(place.index);
  }
  void read_part(size_t index, size_t offset, std::span<std::byte> target) const override {
    const Place& place = places_.at(index);
    shards_[place.shard]->read_part(place.index, offset, target);
  }

 private:
  struct Place {
    size_t shard, index;
  };

  void open(const Json& index) {
    const bool usable = index.is_object() && index.contains("weight_map") && index["weight_map"].is_object();
    VT_REQUIRE(usable, ErrorKind::kData, "expected an object \"weight_map\" of tensor names and shard names");
    std::map<std::string, std::unordered_set<std::string>> wanted;  // shard -> tensors
    for (const auto& [tensor, shard] : index["weight_map"].items()) {
      VT_REQUIRE(shard.is_string(), ErrorKind::kData, "weight_map: the shard of %s is not a string",
                 quoted(tensor).c_str());
      wanted[shard.get<std::string>()].insert(tensor);
    }
    VT_REQUIRE(wanted.size() <= kMaxShards, ErrorKind::kData, "%zu shards, at most %zu are read",
               wanted.size(), kMaxShards);
    for (const auto& [shard, names] : wanted) require_plain_file_name(shard);
    for (const auto& [shard, names] : wanted) add_shard(shard, names);
  }

  void add_shard(const std::string& name, const std::unordered_set<std::string>& wanted) {
    const auto file = std::filesystem::path(path_).parent_path() / name;
    auto shard = open_shard_(file.string());
    if (format_.empty()) format_ = shard->format();
    size_t found = 0;
    for (size_t i = 0; i < shard->tensors().size(); ++i) {
      const TensorInfo& info = shard->tensors()[i];
      VT_REQUIRE(wanted.contains(info.name), ErrorKind::kData,
                 "the shard %s holds tensor %s, which the index does not place there", quoted(name).c_str(),
                 quoted(info.name).c_str());
      ++found;
      tensors_.push_back(info);
      places_.push_back({shards_.size(), i});
    }
    VT_REQUIRE(found == wanted.size(), ErrorKind::kData,
               "the shard %s holds %zu tensors, the index places %zu there", quoted(name).c_str(), found,
               wanted.size());
    VT_REQUIRE(tensors_.size() <= kMaxTensors, ErrorKind::kData, "more than %zu tensors", kMaxTensors);
    metadata_.insert(shard->metadata().begin(), shard->metadata().end());
    shards_.push_back(std::move(shard));
  }

  ShardOpener open_shard_;
  std::vector<std::unique_ptr<TensorSource>> shards_;
  std::vector<Place> places_;
};

}  // namespace

std::unique_ptr<TensorSource> open_sharded(const std::string& index_json_path, ShardOpener open_shard) {
  return std::make_unique<ShardedTensors>(index_json_path, open_shard);
}

}  // namespace vitrail
