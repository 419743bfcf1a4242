#include "io/dialects/infer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "io/dialects/layout.h"

namespace vitrail {

namespace {

long long ll(int64_t value) {
  return static_cast<long long>(value);
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

// Returns the tensor's shape without the leading block dim of a stacked one.
std::vector<int64_t> own_shape(const Piece& piece, const TensorSource& source) {
  std::vector<int64_t> shape = source.tensors()[piece.tensor].shape;
  if (piece.slice >= 0) shape.erase(shape.begin());
  return shape;
}

struct Extent {
  int64_t value;
  size_t tensor;  // where it was first seen
};

// The extents of the named dims, each seen in many tensors and the same in all.
class Extents {
 public:
  explicit Extents(const TensorSource& source) : source_(source) {}

  // `representation` is the input width of a head after pre_logits, which the layouts call D like any input
  // of a head.
  void see(const Piece& piece, bool representation) {
    const TensorInfo& tensor = source_.tensors()[piece.tensor];
    const std::vector<int64_t> shape = own_shape(piece, source_);
    const std::vector<std::string> groups = layout_groups(piece.row->layout);
    VT_REQUIRE(shape.size() == groups.size(), ErrorKind::kData, "%s has shape %s; expected %zu dims",
               quoted(tensor.name).c_str(), shape_text(shape).c_str(), groups.size());
    for (size_t i = 0; i < groups.size(); ++i)
      if (groups[i].size() == 1 && groups[i] != "1" && groups[i] != "S")
        note(representation && groups[i] == "D" ? 'O' : groups[i][0], shape[i], piece.tensor);
  }

  int64_t get(char letter) const {
    const auto at = seen_.find(letter);
    return at == seen_.end() ? 0 : at->second.value;
  }

 private:
  void note(char letter, int64_t value, size_t tensor) {
    const auto [at, fresh] = seen_.insert({letter, {value, tensor}});
    VT_REQUIRE(fresh || at->second.value == value, ErrorKind::kData,
               "tensors contradict each other: %s %s and %s %s",
               quoted(source_.tensors()[at->second.tensor].name).c_str(),
               shape_text(source_.tensors()[at->second.tensor].shape).c_str(),
               quoted(source_.tensors()[tensor].name).c_str(),
               shape_text(source_.tensors()[tensor].shape).c_str());
  }

  const TensorSource& source_;
  std::map<char, Extent> seen_;
};

std::optional<int64_t> square_side(int64_t cells) {
  if (cells < 1) return std::nullopt;
  const auto side = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(cells))));
  return side * side == cells ? std::optional(side) : std::nullopt;
}

// Larger sizes are refused with the config; here they would overflow what is computed from them.
void require_sane(const Facts& facts) {
  constexpr int64_t kMostPatch = 1024, kMostRegisters = 1024, kMostPositions = (1 << 16) + kMostRegisters;
  const struct {
    const char* what;
    int64_t value, least, most;
  } sizes[] = {{"pixels on a side of a patch", facts.config.patch, 1, kMostPatch},
               {"pixels on a side of a patch", facts.config.patch_columns(), 1, kMostPatch},
               {"registers", facts.config.registers, 0, kMostRegisters},
               {"positions", facts.pos_rows, 0, kMostPositions}};
  for (const auto& size : sizes)
    VT_REQUIRE(size.value >= size.least && size.value <= size.most, ErrorKind::kData,
               "the tensors have %lld %s; between %lld and %lld are supported", ll(size.value), size.what,
               ll(size.least), ll(size.most));
}

// Assumes a square grid until a config states otherwise.
void guess_image(Facts* facts) {
  VitConfig& c = facts->config;
  c.pos_for_prefix = c.registers == 0 && (c.pos == PosKind::kLearned || !c.class_token);
  if (facts->pos_rows == 0) {
    c.image_height = std::max<int64_t>(224 / c.patch, 1) * c.patch;
    c.image_width = std::max<int64_t>(224 / c.patch_columns(), 1) * c.patch_columns();
    return;
  }
  const int64_t prefix = c.prefix_tokens();
  for (int64_t rows : {prefix, int64_t{0}})
    if (const auto side = square_side(facts->pos_rows - rows)) {
      c.image_height = *side * c.patch;
      c.image_width = *side * c.patch_columns();
      if (prefix > 0) c.pos_for_prefix = rows > 0;
      return;
    }
  facts->square = false;
  c.image_height = c.patch;
  c.image_width = c.patch_columns();
}

void infer_parts(const Binding& b, const TensorSource& source, Facts* facts) {
  VitConfig& c = facts->config;
  c.depth = b.depth;
  c.class_token = b.has("cls_token");
  c.distilled = b.has("dist_token");
  if (const auto reg = b.pieces.find("reg_token"); reg != b.pieces.end()) {
    const auto shape = own_shape(reg->second[0], source);
    c.registers = shape.size() == 3 ? shape[1] : 0;
  }
  const bool fixed = b.table->dialect == Dialect::kGoogle && !b.has("pos_embed");
  c.pos = fixed ? PosKind::kSinCos2d : PosKind::kLearned;
  c.qkv_bias = b.has("blocks.0.attn.qkv.bias");
  c.qk_norm = b.has("blocks.0.attn.q_norm.weight");
  c.attn_norm = b.has("blocks.0.attn.norm.weight");
  c.mlp_norm = b.has("blocks.0.mlp.norm.weight");
  c.layer_scale = b.has("blocks.0.ls1.gamma");
  c.pre_logits = b.has("pre_logits.fc.weight");
  c.pre_norm = b.has("norm_pre.weight");
  c.norm_place = b.has("fc_norm.weight") ? NormPlace::kAfterPool : NormPlace::kBeforePool;
  // timm has fc_norm where it pools the mean, unless configured otherwise.
  const bool mean = !c.class_token || c.norm_place == NormPlace::kAfterPool;
  c.pool = b.has("attn_pool.latent") ? Pool::kMap : mean ? Pool::kMean : Pool::kCls;
  VT_REQUIRE(!(b.has("fc_norm.weight") && b.has("norm.weight")), ErrorKind::kData,
             "the model has a layernorm both before and after pooling; only one of them is supported");
  VT_REQUIRE(!c.distilled || !b.has("head.weight") || b.has("head_dist.weight"), ErrorKind::kData,
             "the model has a distillation token but no head for it; only DeiT with both heads is supported");
  facts->known = {"width",    "depth",       "mlp",        "patch",          "patch_width", "channels",
                  "classes",  "class_token", "distilled",  "registers",      "qkv_bias",    "qk_norm",
                  "pre_norm", "layer_scale", "pre_logits", "representation", "attn_norm",   "mlp_norm"};
  if (b.has("pos_embed")) facts->known.insert("pos");
  if (b.has("norm.weight") || b.has("fc_norm.weight")) facts->known.insert("norm_place");
  if (c.pool == Pool::kMap) facts->known.insert("pool");
}

// Without a block the tensors do not tell what blocks would have; a config may, and MAP heads have an MLP.
void leave_blocks_open(Facts* facts) {
  for (const char* field : {"qkv_bias", "qk_norm", "layer_scale", "attn_norm", "mlp_norm"})
    facts->known.erase(field);
  if (facts->config.mlp > 0) return;
  facts->known.erase("mlp");
  facts->config.mlp = VitConfig().mlp;
}

std::string first_few(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 5); ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > 5) text += strf(" and %zu more", names.size() - 5);
  return text;
}

// Checks the pieces' shapes; true when together they are the whole parameter.
bool is_whole(const ParamSpec& spec, const std::vector<Piece>& pieces, const TensorSource& source) {
  const int64_t wanted = spec.shape.has('T') ? spec.shape.local('T') : 1;
  int64_t parts = 0;
  for (const Piece& piece : pieces) {
    const TensorInfo& tensor = source.tensors()[piece.tensor];
    const std::vector<int64_t> expected = stored_shape(piece.row->layout, spec.shape);
    const std::vector<int64_t> found = own_shape(piece, source);
    VT_REQUIRE(expected == found, ErrorKind::kData, "%s has shape %s; %s needs %s",
               quoted(tensor.name).c_str(), shape_text(found).c_str(), spec.name.c_str(),
               shape_text(expected).c_str());
    VT_REQUIRE(is_float(tensor.dtype), ErrorKind::kData, "%s holds %s; expected floating point numbers",
               quoted(tensor.name).c_str(), to_string(tensor.dtype));
    const bool one_part = std::string_view(piece.row->layout).find('T') == std::string_view::npos;
    parts += one_part ? 1 : wanted;
  }
  return parts == wanted;
}

}  // namespace

Facts infer_facts(const Binding& binding, const TensorSource& source) {
  Extents extents(source);
  for (const auto& [param, pieces] : binding.pieces)
    for (const Piece& piece : pieces)
      extents.see(piece, param.starts_with("head") && binding.has("pre_logits.fc.weight"));
  Facts facts;
  VitConfig& c = facts.config;
  infer_parts(binding, source, &facts);
  c.width = extents.get('D');
  c.channels = extents.get('C');
  c.patch = extents.get('P');
  c.mlp = extents.get('F');
  c.classes = extents.get('K');
  facts.pos_rows = extents.get('N');
  if (extents.get('Q') != c.patch) c.patch_width = extents.get('Q');
  if (c.pre_logits && extents.get('O') != c.width) c.representation = extents.get('O');
  require_sane(facts);
  if (c.depth == 0) leave_blocks_open(&facts);
  VT_REQUIRE(c.mlp >= 1, ErrorKind::kData, "the blocks of the file hold no MLP");
  const int64_t heads = extents.get('H'), head_size = extents.get('E');  // qk-norm reveals the latter
  if (heads > 0) {
    c.heads = heads;
    facts.known.insert("heads");
  } else if (head_size > 0 && c.width % head_size == 0) {
    c.heads = c.width / head_size;
    facts.known.insert("heads");
  } else {
    c.heads = c.width % 64 == 0 ? c.width / 64 : 1;
  }
  guess_image(&facts);
  return facts;
}

void settle_positions(const Facts& facts, const std::string& origin, VitConfig* config) {
  if (facts.pos_rows == 0) return;
  const int64_t cells = config->grid_height() * config->grid_width();
  const int64_t prefix = config->prefix_tokens();
  VT_REQUIRE(facts.pos_rows == cells || facts.pos_rows == cells + prefix, ErrorKind::kData,
             "an image of %lld x %lld (%s) in patches of %lld needs %lld positions, or %lld with those of "
             "the tokens before the patches; the file has %lld",
             ll(config->image_height), ll(config->image_width), origin.c_str(), ll(config->patch), ll(cells),
             ll(cells + prefix), ll(facts.pos_rows));
  if (prefix > 0) config->pos_for_prefix = facts.pos_rows == cells + prefix;
}

void check_complete(const VitConfig& config, const Binding& binding, const TensorSource& source) {
  std::vector<std::string> missing;
  std::set<std::string> wanted;
  for (const ParamSpec& spec : vit_params(config)) {
    wanted.insert(spec.name);
    const auto at = binding.pieces.find(spec.name);
    if (at == binding.pieces.end() && binding.zeros.contains(spec.name)) continue;
    if (at == binding.pieces.end())
      missing.push_back(spec.name);
    else if (!is_whole(spec, at->second, source))
      missing.push_back("a part of " + spec.name);
  }
  if (!missing.empty())
    throw Error(ErrorKind::kData, "the file lacks " + first_few(missing),
                "vitrail inspect shows what it holds");
  for (const auto& [param, pieces] : binding.pieces)
    VT_REQUIRE(wanted.contains(param), ErrorKind::kData,
               "%s (%s) is not part of the architecture the config describes",
               quoted(source.tensors()[pieces[0].tensor].name).c_str(), param.c_str());
}

}  // namespace vitrail
