#include <mutex>

#include "base/error.h"
#include "io/cards/card.h"
#include "io/dialects/layout.h"
#include "io/model_files.h"
#include "io/pos_resize.h"

namespace vitrail {

namespace {

using Floats = std::vector<float>;

PosGrid grid_of(const VitConfig& config) {
  return {config.grid_height(), config.grid_width()};
}

class DialectModel : public OpenedModel {
 public:
  DialectModel(const std::string& path, const OpenOptions& options) {
    source_ = open_tensors(path);
    binding_ = bind_tensors(*source_);
    card_ = make_card(path, *source_, binding_, options);
    check_complete(card_.config, binding_, *source_);
    stored_ = card_.config;
    set_image_size(options);
  }

  void read_param(const ParamSpec& spec, std::span<float> target) const override {
    VT_CHECK(target.size() == static_cast<size_t>(spec.shape.elems()), "%s: %zu floats for %s",
             spec.name.c_str(), target.size(), to_string(spec.shape).c_str());
    if (spec.name == "pos_embed" && grid_of(stored_) != grid_of(card_.config))
      return read_resized(spec, target);
    read_stored(spec, target);
  }

 private:
  void set_image_size(const OpenOptions& options) {
    VitConfig& c = card_.config;
    if (options.image_height > 0) c.image_height = options.image_height;
    if (options.image_width > 0) c.image_width = options.image_width;
    if (c == stored_) return;
    validate(c);
    card_.preprocess = at_size(card_.preprocess, c.image_height, c.image_width);
    card_.notes.push_back(
        strf("image %lld x %lld instead of the file's %lld x %lld: positions resized by %s's rule",
             static_cast<long long>(c.image_height), static_cast<long long>(c.image_width),
             static_cast<long long>(stored_.image_height), static_cast<long long>(stored_.image_width),
             enum_name(c.pos_resize)));
  }

  void read_resized(const ParamSpec& spec, std::span<float> target) const {
    const int64_t prefix = stored_.pos_prefix_rows();
    const ParamSpec whole{spec.name, {{'N', prefix + grid_of(stored_).cells()}, {'D', stored_.width}}};
    Floats table(static_cast<size_t>(whole.shape.elems()));
    read_stored(whole, table);
    resize_positions(card_.config.pos_resize, table, grid_of(stored_), target, grid_of(card_.config), prefix,
                     stored_.width);
  }

  void read_stored(const ParamSpec& spec, std::span<float> target) const {
    const auto at = binding_.pieces.find(spec.name);
    VT_CHECK(at != binding_.pieces.end(), "the model has no parameter %s", spec.name.c_str());
    for (const Piece& piece : at->second)
      with_context(source_->tensors()[piece.tensor].name, [&] { read_piece(piece, spec, target); });
  }

  void read_piece(const Piece& piece, const ParamSpec& spec, std::span<float> target) const {
    if (piece.slice < 0 && same_order(piece.row->layout, spec.shape))
      return read_floats(piece.tensor, target);
    if (piece.slice >= 0) {
      const Floats& all = stacked(piece.tensor);
      const size_t each = all.size() / static_cast<size_t>(source_->tensors()[piece.tensor].shape[0]);
      const auto slice = std::span(all).subspan(each * static_cast<size_t>(piece.slice), each);
      return from_stored(piece.row->layout, spec.shape, piece.row->part, slice, target);
    }
    Floats values(source_->tensors()[piece.tensor].bytes / size_of(source_->tensors()[piece.tensor].dtype));
    read_floats(piece.tensor, values);
    from_stored(piece.row->layout, spec.shape, piece.row->part, values, target);
  }

  void read_floats(size_t index, std::span<float> target) const {
    const TensorInfo& tensor = source_->tensors()[index];
    VT_CHECK(tensor.bytes == target.size() * size_of(tensor.dtype), "%zu floats for %zu bytes", target.size(),
             tensor.bytes);
    if (tensor.dtype == DType::kF32) return source_->read(index, std::as_writable_bytes(target));
    std::vector<std::byte> raw(tensor.bytes);
    source_->read(index, raw);
    convert_floats(raw.data(), tensor.dtype, target.data(), DType::kF32, target.size());
  }

  // A tensor that stacks all blocks is kept once read: blocks are asked for one by one.
  const Floats& stacked(size_t index) const {
    const std::lock_guard lock(mutex_);
    Floats& values = stacked_[index];
    if (values.empty()) {
      values.resize(source_->tensors()[index].bytes / size_of(source_->tensors()[index].dtype));
      read_floats(index, values);
    }
    return values;
  }

  Binding binding_;
  VitConfig stored_;  // as the file has it; the card's config may have another image size
  mutable std::mutex mutex_;
  mutable std::map<size_t, Floats> stacked_;
};

}  // namespace

std::unique_ptr<OpenedModel> open_model(const std::string& path, const OpenOptions& options) {
  return with_context(path, [&] { return std::make_unique<DialectModel>(path, options); });
}

}  // namespace vitrail
