#include "io/checkpoint/pieces.h"

#include <algorithm>

#include "base/json_text.h"
#include "base/text.h"
#include "io/safetensors.h"
#include "io/sealed_folder.h"

namespace vitrail {

namespace {

constexpr const char *kMarkKey = "vitrail_piece", *kPartsKey = "vitrail_parts";
constexpr JsonLimits kPieceLimits{.max_bytes = size_t{64} << 20};

Json metadata_json(const TensorSource& file, const char* key) {
  const auto found = file.metadata().find(key);
  VT_REQUIRE(found != file.metadata().end(), ErrorKind::kData, "it has no \"%s\": it is no piece of a save",
             key);
  Json json = parse_json(found->second, key, kPieceLimits);
  VT_REQUIRE(json.is_object(), ErrorKind::kData, "\"%s\" is not an object", key);
  return json;
}

void require_mark(const TensorSource& file, const PieceMark& wanted) {
  const Json found = metadata_json(file, kMarkKey);
  const auto is = [&](const char* key, const Json& value) {
    return found.contains(key) && found.at(key) == value;
  };
  VT_REQUIRE(is("save", wanted.save), ErrorKind::kData, "it is a piece of another save than its folder's %s",
             kManifestName);
  VT_REQUIRE(is("rank", static_cast<uint64_t>(wanted.rank)) && is("of", static_cast<uint64_t>(wanted.of)),
             ErrorKind::kData, "it is another piece than its name says: %s", shown(json_text(found)).c_str());
}

class PiecedSource : public TensorSource {
 public:
  PiecedSource(const std::string& folder, const std::string& save, int64_t of) {
    format_ = "safetensors";
    for (int64_t rank = 0; rank < of; ++rank) {
      const std::string path = folder + "/" + piece_name(rank, of);
      files_.push_back(open_safetensors(path));
      with_context(path, [&] {
        require_mark(*files_.back(), {save, rank, of});
        add_tensors(*files_.back());
      });
    }
    path_ = files_.front()->path();
    for (size_t i = 0; i < tensors_.size(); ++i) require_once_each(i);
  }

  std::vector<std::string> files() const override {
    std::vector<std::string> paths;
    for (const auto& file : files_) paths.push_back(file->path());
    return paths;
  }

  void read(size_t index, std::span<std::byte> target) const override {
    VT_CHECK(target.size() == tensors_.at(index).bytes);
    read_part(index, 0, target);
  }

  bool has_parts(size_t) const override { return true; }
  void read_part(size_t index, size_t offset, std::span<std::byte> target) const override {
    const size_t unit = size_of(tensors_.at(index).dtype);
    VT_CHECK(offset % unit == 0 && target.size() % unit == 0, "%s is read by whole elements",
             tensors_[index].name.c_str());
    const auto begin = static_cast<int64_t>(offset / unit),
               end = begin + static_cast<int64_t>(target.size() / unit);
    for (const Place& place : places_[index])
      for (const ElementRun& run : runs_in(place.part, begin, end))
        files_[place.file]->read_part(place.tensor, static_cast<size_t>(run.at) * unit,
                                      target.subspan(static_cast<size_t>(run.from - begin) * unit,
                                                     static_cast<size_t>(run.count) * unit));
  }

 private:
  struct Place {
    size_t file = 0, tensor = 0;  // the file, and the number of the tensor in it
    TensorPart part;
  };

  void add_tensors(const TensorSource& file) {
    const Json parts = metadata_json(file, kPartsKey);
    for (size_t i = 0; i < file.tensors().size(); ++i) {
      const TensorInfo& info = file.tensors()[i];
      VT_REQUIRE(parts.contains(info.name), ErrorKind::kData, "it does not say which part of %s it holds",
                 info.name.c_str());
      const TensorPart part = with_context(info.name, [&] { return part_from(parts.at(info.name)); });
      const size_t unit = size_of(info.dtype);
      VT_REQUIRE(static_cast<size_t>(part.count) == info.bytes / unit, ErrorKind::kData,
                 "%s has %zu elements, its part %lld", info.name.c_str(), info.bytes / unit,
                 static_cast<long long>(part.count));
      std::vector<Place>& places = places_of(info, part);
      places.push_back({files_.size() - 1, i, part});
    }
  }

  std::vector<Place>& places_of(const TensorInfo& info, const TensorPart& part) {
    const auto [known, is_new] = index_.try_emplace(info.name, tensors_.size());
    if (is_new) {
      const size_t bytes = static_cast<size_t>(part.whole_elems()) * size_of(info.dtype);
      tensors_.push_back({info.name, info.dtype, part.shape, bytes});
      places_.emplace_back();
    }
    const TensorInfo& whole = tensors_[known->second];
    VT_REQUIRE(whole.dtype == info.dtype && whole.shape == part.shape, ErrorKind::kData,
               "%s has another type or shape than in the pieces before", info.name.c_str());
    return places_[known->second];
  }

  // Every element of the tensor is in exactly one piece.
  void require_once_each(size_t index) const {
    struct Held {
      ElementRun run;
      size_t file;
    };
    std::vector<Held> all;
    for (const Place& place : places_[index])
      for (const ElementRun& run : runs_of(place.part)) all.push_back({run, place.file});
    std::sort(all.begin(), all.end(), [](const Held& a, const Held& b) { return a.run.from < b.run.from; });
    int64_t reached = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].run.from < reached)
        refuse(index, all[i].run.from,
               strf("are in %s and in %s", name_of(all[i - 1].file).c_str(), name_of(all[i].file).c_str()));
      if (all[i].run.from > reached) refuse(index, reached, "are in no piece");
      reached = all[i].run.from + all[i].run.count;
    }
    if (reached != TensorPart::whole(tensors_[index].shape).whole_elems())
      refuse(index, reached, "are in no piece");
  }

  [[noreturn]] void refuse(size_t index, int64_t element, const std::string& what) const {
    throw Error(ErrorKind::kData,
                strf("%s: elements of %s from %lld on %s", path_.c_str(), tensors_[index].name.c_str(),
                     static_cast<long long>(element), what.c_str()));
  }

  std::string name_of(size_t file) const {
    return piece_name(static_cast<int64_t>(file), static_cast<int64_t>(files_.size()));
  }

  std::vector<std::unique_ptr<TensorSource>> files_;
  std::vector<std::vector<Place>> places_;  // of every tensor
  std::map<std::string, size_t> index_;
};

}  // namespace

std::string piece_name(int64_t rank, int64_t of) {
  return strf("state-%05lld-of-%05lld.safetensors", static_cast<long long>(rank), static_cast<long long>(of));
}

PartToWrite part_to_write(std::string name, DType dtype, TensorPart part,
                          std::function<void(std::span<std::byte>)> fill) {
  const size_t bytes = static_cast<size_t>(part.count) * size_of(dtype);
  return {{{std::move(name), dtype, {part.count}, bytes}, std::move(fill)}, std::move(part)};
}

FileRecord write_piece(const std::string& folder, const PieceMark& mark,
                       const std::vector<PartToWrite>& parts) {
  std::vector<TensorToWrite> tensors;
  Json described = Json::object();
  for (const PartToWrite& part : parts) {
    tensors.push_back(part.tensor);
    described[part.tensor.info.name] = to_json(part.part);
  }
  const Json marked = {{"save", mark.save},
                       {"rank", static_cast<uint64_t>(mark.rank)},
                       {"of", static_cast<uint64_t>(mark.of)}};
  const std::string name = piece_name(mark.rank, mark.of);
  write_safetensors(folder + "/" + name, tensors,
                    {{kMarkKey, json_text(marked)}, {kPartsKey, json_text(described)}});
  return seal_files(folder, {name}).front();
}

std::unique_ptr<TensorSource> open_pieces(const std::string& folder, const std::string& save, int64_t of) {
  return std::make_unique<PiecedSource>(folder, save, of);
}

}  // namespace vitrail
