// Opens a model: its tensors under Vitrail's names, in its layouts, resized where another size is asked for.
#include "base/checked.h"
#include "base/error.h"
#include "io/adapters.h"
#include "io/cards/card.h"
#include "io/dialects/find_dialect.h"
#include "io/dialects/layout.h"
#include "io/model_files.h"
#include "io/weight_resize.h"

namespace vitrail {

namespace {

using Floats = std::vector<float>;

PosGrid grid_of(const VitConfig& config) {
  return {config.grid_height(), config.grid_width()};
}

class DialectModel : public OpenedModel {
 public:
  DialectModel(const std::string& path, const OpenOptions& options) {
    as_the_files_fault([&] { open(path, options); });
    set_sizes(options);
  }

  void read_param(const ParamSpec& spec, std::span<float> target) const override {
    VT_CHECK(target.size() == static_cast<size_t>(spec.shape.elems()), "%s: %zu floats for %s",
             spec.name.c_str(), target.size(), to_string(spec.shape).c_str());
    if (spec.name == "pos_embed" && grid_of(stored_) != grid_of(card_.config))
      return read_resized(spec, target);
    if (spec.name == "patch_embed.proj.weight" && stored_.patch != card_.config.patch)
      return read_resampled(spec, target);
    read_stored(spec, target);
    if (adapters_) adapters_->merge(spec, target);
  }

 private:
  // Reports errors in a model's config like errors in its tensors: both are data.
  template <typename Body>
  static void as_the_files_fault(Body&& body) {
    try {
      body();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kConfig) throw;
      Error same(ErrorKind::kData, error.message(), error.hint());
      for (const std::string& place : error.context()) same.at(place);
      throw Error(same);
    }
  }

  void open(const std::string& path, const OpenOptions& options) {
    source_ = open_tensors(path);
    const CardFiles files = find_card_files(path);
    if (files.config) refuse_other_families(*files.config);
    // A config that is not understood says why better than the tensors do.
    const std::optional<StatedConfig> stated = read_card_config(files);
    if (stated) swaps_channels_ = stated->swaps_channels;
    binding_ = bind_tensors(*source_);
    if (stated && stated->drops_pre_logits) leave_out_pre_logits();
    card_ = make_card(files, *source_, binding_, options, &run_image_);
    card_.path = path;
    if (swaps_channels_) card_.notes.push_back("patches in the order of RGB: the file's are of BGR");
    check_complete(card_.config, binding_, *source_);
    if (options.pos_resize) card_.config.pos_resize = *options.pos_resize;
    stored_ = card_.config;
    if (!files.adapters.empty()) open_adapters(files.adapters);
  }

  void leave_out_pre_logits() {
    if (binding_.pieces.erase("pre_logits.fc.weight") + binding_.pieces.erase("pre_logits.fc.bias") > 0)
      binding_.notes.push_back("pre_logits left out: timm's ViTs have none any more");
  }

  void open_adapters(const std::string& path) {
    adapters_.emplace(path, stored_);
    card_.notes.push_back(strf("adapters of rank %lld merged", static_cast<long long>(adapters_->rank())));
  }

  void set_sizes(const OpenOptions& options) {
    VitConfig& c = card_.config;
    if (run_image_) {
      c.image_height = run_image_->height;
      c.image_width = run_image_->width;
    }
    if (options.image_height > 0) c.image_height = options.image_height;
    if (options.image_width > 0) c.image_width = options.image_width;
    if (options.patch > 0) c.patch = options.patch;
    const ImageSize crop{c.image_height, c.image_width};
    if (card_.pads_images) pad_to_patches(&c);
    if (c == stored_) return;
    validate(c);
    if (options.image_height > 0 || options.image_width > 0 || options.patch > 0)
      require_patches_cover(c, stored_);
    VT_REQUIRE(options.patch == 0 || c.patch_width == 0, ErrorKind::kUsage,
               "patches of %lld x %lld pixels cannot be resampled: they are not square",
               static_cast<long long>(stored_.patch), static_cast<long long>(c.patch_width));
    PreprocessConfig& p = card_.preprocess;
    p = at_size(p, crop.height, crop.width, card_.square_interpolation);
    p.height += p.pad_rows = c.image_height - crop.height;
    p.width += p.pad_columns = c.image_width - crop.width;
    note_sizes(c);
  }

  static void pad_to_patches(VitConfig* c) {
    c->image_height = round_up(c->image_height, c->patch);
    c->image_width = round_up(c->image_width, c->patch_columns());
  }

  void note_sizes(const VitConfig& c) {
    const auto n = [](int64_t v) { return static_cast<long long>(v); };
    std::string note;
    if (c.image_height != stored_.image_height || c.image_width != stored_.image_width)
      note = strf("image %lld x %lld instead of the file's %lld x %lld", n(c.image_height), n(c.image_width),
                  n(stored_.image_height), n(stored_.image_width));
    if (c.patch != stored_.patch)
      note += strf("%spatch %lld instead of the file's %lld: its weights resampled by FlexiViT's rule",
                   note.empty() ? "" : ", ", n(c.patch), n(stored_.patch));
    if (grid_of(c) != grid_of(stored_) && c.pos == PosKind::kLearned)
      note += strf("%s positions resized by %s's rule", c.patch == stored_.patch ? ":" : ",",
                   enum_name(c.pos_resize));
    card_.notes.push_back(note);
  }

  void read_resampled(const ParamSpec& spec, std::span<float> target) const {
    const int64_t patch = stored_.patch;
    const ParamSpec whole{spec.name, spec.shape.with('P', {'P', patch}).with('Q', {'Q', patch})};
    Floats weights(static_cast<size_t>(whole.shape.elems()));
    read_stored(whole, weights);
    resample_patches(weights, patch, target, card_.config.patch);
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
    if (binding_.zeros.contains(spec.name)) return std::fill(target.begin(), target.end(), 0.0f);
    VT_CHECK(at != binding_.pieces.end(), "the model has no parameter %s", spec.name.c_str());
    for (const Piece& piece : at->second)
      with_context(source_->tensors()[piece.tensor].name, [&] { read_piece(piece, spec, target); });
    if (swaps_channels_ && spec.name == "patch_embed.proj.weight") reverse_channels(spec.shape, target);
  }

  // Makes patches of RGB from those of a model that takes BGR.
  static void reverse_channels(const Shape& shape, std::span<float> weights) {
    const int64_t channels = shape.local('C'), plane = shape.local('P') * shape.local('Q');
    for (auto patch = weights.begin(); patch != weights.end(); patch += channels * plane)
      for (int64_t c = 0; c < channels / 2; ++c)
        std::swap_ranges(patch + c * plane, patch + (c + 1) * plane, patch + (channels - 1 - c) * plane);
  }

  void read_piece(const Piece& piece, const ParamSpec& spec, std::span<float> target) const {
    if (same_order(piece.row->layout, spec.shape)) return read_floats(piece, target);
    Floats values(elems_of(piece));
    read_floats(piece, values);
    from_stored(piece.row->layout, spec.shape, piece.row->part, values, target);
  }

  // Counts the elements of one block, where a tensor stacks all blocks.
  size_t elems_of(const Piece& piece) const {
    const TensorInfo& tensor = source_->tensors()[piece.tensor];
    const size_t blocks = piece.slice < 0 ? 1 : static_cast<size_t>(tensor.shape[0]);
    return tensor.bytes / size_of(tensor.dtype) / blocks;
  }

  void read_bytes(const Piece& piece, std::span<std::byte> target) const {
    if (piece.slice < 0) return source_->read(piece.tensor, target);
    source_->read_part(piece.tensor, static_cast<size_t>(piece.slice) * target.size(), target);
  }

  void read_floats(const Piece& piece, std::span<float> target) const {
    VT_CHECK(target.size() == elems_of(piece), "%zu floats for %zu elements", target.size(), elems_of(piece));
    const DType dtype = source_->tensors()[piece.tensor].dtype;
    if (dtype == DType::kF32) return read_bytes(piece, std::as_writable_bytes(target));
    const size_t bytes = target.size() * size_of(dtype);
    const auto raw = std::make_unique_for_overwrite<std::byte[]>(bytes);
    read_bytes(piece, {raw.get(), bytes});
    convert_floats(raw.get(), dtype, target.data(), DType::kF32, target.size());
  }

  Binding binding_;
  std::optional<Adapters> adapters_;
  std::optional<ImageSize>
      run_image_;                // the size the model runs at by its config, unless it is that of `stored_`
  VitConfig stored_;             // as in the file; the card's config may have another image or patch size
  bool swaps_channels_ = false;  // see StatedConfig
};

}  // namespace

std::unique_ptr<OpenedModel> open_model(const std::string& path, const OpenOptions& options) {
  return with_context(path, [&] { return std::make_unique<DialectModel>(path, options); });
}

}  // namespace vitrail
