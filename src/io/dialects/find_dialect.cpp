#include "io/dialects/find_dialect.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace vitrail {

namespace {

// Where a file holds several models, the one under these wrappers alone is chosen: the others are copies of
// it.
constexpr std::string_view kUsualWrappers[] = {"module.", "model.", "state_dict.", "_orig_mod.",
                                               "timm_model."};

constexpr IgnoredName kBesideTheModel[] = {
    {"optimizer*", "optimizer state"},
    {"model_ema*", "averaged weights"},
    {"ema*", "averaged weights"},
    {"lr_scheduler*", "training state"},
    {"scaler*", "training state"},
    {"amp*", "training state"},
    {"n_averaged", "how many weights were averaged"},
    {"criterion.*", "a part of the loss"},
    {"loss.*", "a part of the loss"},
    {"loss_fn.*", "a part of the loss"},
    {"head.mlp.*", "the projection head of self-supervised training"},
    {"head.last_layer.*", "the projection head of self-supervised training"},
};

bool is_usual(std::string_view wrapper) {
  for (bool again = true; again && !wrapper.empty();) {
    again = false;
    for (std::string_view usual : kUsualWrappers)
      if (wrapper.starts_with(usual)) {
        wrapper.remove_prefix(usual.size());
        again = true;
      }
  }
  return wrapper.empty();
}

std::optional<FoundDialect> recognise(const DialectTable& table, std::string_view name) {
  for (const char* prefix : table.prefixes) {
    const std::string key = prefix + std::string(table.key);
    if (!name.ends_with(key)) continue;
    const std::string_view wrapper = name.substr(0, name.size() - key.size());
    if (wrapper.empty() || wrapper.ends_with('.')) return FoundDialect{&table, std::string(wrapper), prefix};
  }
  return std::nullopt;
}

const FoundDialect& choose(const std::vector<FoundDialect>& models) {
  const auto usual = [](const FoundDialect& model) { return is_usual(model.wrapper); };
  if (models.size() == 1) return models[0];
  if (std::count_if(models.begin(), models.end(), usual) == 1)
    return *std::find_if(models.begin(), models.end(), usual);
  std::string wrappers;
  for (const FoundDialect& model : models) wrappers += (wrappers.empty() ? "" : ", ") + quoted(model.wrapper);
  throw Error(ErrorKind::kData,
              strf("the file holds %zu models, whose names begin with %s", models.size(), wrappers.c_str()),
              "in Python, save the one that is meant by itself");
}

}  // namespace

FoundDialect find_dialect(const TensorSource& source) {
  for (const DialectTable* table : dialect_tables()) {
    std::vector<FoundDialect> models;
    for (const TensorInfo& tensor : source.tensors())
      if (auto found = recognise(*table, tensor.name)) models.push_back(std::move(*found));
    if (!models.empty()) return choose(models);
  }
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(source.tensors().size(), 4); ++i)
    names += (i ? ", " : "") + quoted(source.tensors()[i].name);
  throw Error(ErrorKind::kData,
              "the tensors are not named as timm, Hugging Face, torchvision or google name a ViT's (found " +
                  (names.empty() ? "none" : names) + ")",
              "vitrail inspect shows all of them");
}

std::span<const IgnoredName> names_beside_the_model() {
  return kBesideTheModel;
}

}  // namespace vitrail
