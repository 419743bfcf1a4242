#include "io/cards/library_view.h"

#include "base/error.h"
#include "io/cards/stated_config.h"
#include "io/cards/written_json.h"
#include "io/config_json.h"

namespace vitrail {

namespace {

const char* library_name(Dialect dialect) {
  switch (dialect) {
    case Dialect::kTimm:
      return "timm";
    case Dialect::kHf:
      return "transformers";
    case Dialect::kTorchvision:
      return "torchvision";
    case Dialect::kGoogle:
      return "vit_jax";
  }
  return "";
}

// Returns what timm reads from the config, or for a bare file from the architecture's name.
StatedConfig timm_view(const ModelCard& card, bool folder) {
  const Json config = timm_config_json(card);
  if (folder) return read_timm_config(config);
  StatedConfig stated = architecture_config(config.at("architecture").get<std::string>(), Dialect::kTimm);
  if (card.config.arch.empty())
    stated.preprocess.reset();
  else
    stated.preprocess = at_size(*stated.preprocess, card.config.image_height, card.config.image_width);
  return stated;
}

StatedConfig stated_in(const ModelCard& card, const WriteOptions& options) {
  if (options.dialect == Dialect::kTimm) return timm_view(card, options.folder);
  if (options.dialect != Dialect::kHf) return dialect_config(options.dialect);
  const Json images = hf_preprocessor_json(card.preprocess);
  return read_hf_config(hf_config_json(card, options.storage), &images);
}

// Makes configs with equal results equal: sides are spelled out, and fields that the mode ignores are reset.
PreprocessConfig in_effect(PreprocessConfig p) {
  const ResizeSides sides = resize_sides(p);
  const bool crops = p.mode != ResizeMode::kStretch, resizes = crops && p.mode != ResizeMode::kNone;
  p.resize = resizes ? std::min(sides.height, sides.width) : 0;
  p.resize_longer = resizes ? std::max(sides.height, sides.width) : 0;
  p.crop_pct = 0;
  if (!crops || p.resampler != Resampler::kPillow) p.odd_margin = OddMargin::kDown;
  return p;
}

struct Differences {
  const Json& there;
  const std::string& library;
  std::vector<std::string>* lines;

  template <typename T>
  void operator()(const char* name, const T& value, const char* help) {
    const Json here = json_value(value);
    if (there.at(name) != here)
      lines->push_back(strf("%s (%s): %s here, %s will use %s", name, help, here.dump().c_str(),
                            library.c_str(), there.at(name).dump().c_str()));
  }
};

}  // namespace

LibraryView library_view(const ModelCard& card, const WriteOptions& options) {
  LibraryView view{library_name(options.dialect), card.config, std::nullopt, card.scores};
  const StatedConfig stated = stated_in(card, options);
  for (const char* field : {"norm_eps", "activation", "gelu"})
    if (stated.model.contains(field)) from_json({{field, stated.model[field]}}, view.library, &view.config);
  view.preprocess = stated.preprocess;
  if (stated.scores) view.scores = *stated.scores;
  return view;
}

std::vector<std::string> not_kept(const ModelCard& card, const LibraryView& view) {
  std::vector<std::string> lines;
  const Json config = to_json(view.config);
  visit_fields(card.config, Differences{config, view.library, &lines});
  if (view.preprocess) {
    const PreprocessConfig here = in_effect(card.preprocess);
    const Json there = to_json(in_effect(*view.preprocess));
    visit_preprocess_fields(here, Differences{there, view.library, &lines});
  }
  if (view.scores != card.scores)
    lines.push_back(strf("scores: %s here, %s will use %s", enum_name(card.scores), view.library.c_str(),
                         enum_name(view.scores)));
  return lines;
}

std::string library_refuses(const ModelCard& card, const WriteOptions& options) {
  if (options.dialect == Dialect::kTimm && card.config.pre_logits)
    return "timm has no pre_logits layer any more: it refuses the file, or leaves the layer out";
  return {};
}

}  // namespace vitrail
