// Fuzzes model configs: the first byte selects the kind of the rest, JSON text; the tensors are those of a
// tiny ViT. Any exception but Error of kind data or config is a finding, and so is an accepted model card
// that changes when it is written as Vitrail's own block and read again.
#include "base/json.h"
#include "io/cards/card.h"
#include "io/cards/written_json.h"
#include "io/dialects/express.h"
#include "io/dialects/layout.h"
#include "tensor_target.h"

using namespace vitrail;

namespace {

class TinyViT : public TensorSource {
 public:
  explicit TinyViT(Dialect dialect) {
    path_ = "tiny";
    VitConfig config;
    config.image_height = config.image_width = 32;
    config.patch = 8;
    config.width = 24;
    config.depth = 2;
    config.heads = 3;
    config.mlp = 48;
    config.classes = 5;
    const WrittenForm form = written_form(dialect, config);
    for (const ParamSpec& spec : vit_params(config))
      for (const auto& [name, row] : rows_for(form, spec))
        tensors_.push_back({.name = name, .shape = stored_shape(row->layout, spec.shape)});
  }
  void read(size_t, std::span<std::byte>) const override { std::abort(); }
};

struct Bound {
  explicit Bound(Dialect dialect) : source(dialect), binding(bind_tensors(source)) {}
  TinyViT source;
  Binding binding;
};

const Bound& bound(Dialect dialect) {
  static const Bound all[] = {Bound(Dialect::kTimm), Bound(Dialect::kHf), Bound(Dialect::kTorchvision),
                              Bound(Dialect::kGoogle)};
  return all[static_cast<size_t>(dialect)];
}

// Returns a Hugging Face config that agrees with the tensors, to be read together with
// preprocessor_config.json.
Json plain_config() {
  return {{"model_type", "vit"}, {"hidden_size", 24}, {"num_attention_heads", 3}, {"image_size", 32}};
}

void open_card(uint8_t choice, std::string_view text) {
  const JsonLimits limits{.max_bytes = 1 << 16, .max_depth = 16};
  Json json = parse_json(text, "config.json", limits);
  if (!json.is_object()) return;  // card_files.cpp refuses these
  CardFiles files{.config = std::nullopt, .preprocessor = std::nullopt, .config_name = "config.json"};
  Dialect dialect = choice % 2 ? Dialect::kHf : Dialect::kTimm;
  if (choice % 4 == 3) {
    files.config = plain_config();
    files.preprocessor = std::move(json);
  } else {
    files.config = std::move(json);
    if (choice % 4 == 2) dialect = static_cast<Dialect>(choice / 4 % 4);
  }
  const Bound& tiny = bound(dialect);
  std::optional<ImageSize> asked;
  const ModelCard card = make_card(files, tiny.source, tiny.binding, {}, &asked);
  check_complete(card.config, tiny.binding, tiny.source);
  const StatedConfig again = read_vitrail_config({{"vitrail", vitrail_block(card)}}, "again");
  if (again.preprocess != card.preprocess) std::abort();
  validate(at_size(card.preprocess, 64, 48), [&] {
    VitConfig other = card.config;
    other.image_height = 64;
    other.image_width = 48;
    return other;
  }());
  const Json images = hf_preprocessor_json(card.preprocess);
  read_hf_config(hf_config_json(card, DType::kF32), &images);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    open_card(data[0], fuzz::text_of(data + 1, size - 1));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData && error.kind() != ErrorKind::kConfig) std::abort();
  }
  return 0;
}
