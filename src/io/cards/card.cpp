#include "io/cards/card.h"

#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "io/cards/merge_stated.h"
#include "models/zoo.h"

namespace vitrail {

namespace {

// Towers of two-tower models (params/img) share big_vision's names, not its classifiers' images.
ImageHints image_hints(const TensorSource& source, const Binding& binding) {
  ImageHints hints{.file_name = source.path().substr(source.path().find_last_of("/\\") + 1)};
  if (const auto at = binding.pieces.find("blocks.0.norm2.weight"); at != binding.pieces.end())
    hints.big_vision = binding.table->dialect == Dialect::kGoogle && binding.prefix != "params/img/" &&
                       at->second[0].row->form == Form::kSecond;
  return hints;
}

class CardMaker {
 public:
  CardMaker(const TensorSource& source, const Binding& binding, const OpenOptions& options)
      : source_(source), options_(options), facts_(infer_facts(binding, source)) {
    card_.dialect = binding.table->dialect;
    card_.config = facts_.config;
    card_.notes = binding.notes;
    hints_ = image_hints(source, binding);
  }

  std::optional<ImageSize> run_image() const { return run_image_; }

  ModelCard make(const CardFiles& files) {
    collect(files);
    require_stated();
    settle_architecture();
    settle_image();
    settle_name();
    settle_images();
    validate(card_.config);
    with_context(origins_["preprocess"], [&] { validate(card_.preprocess, card_.config); });
    VT_REQUIRE(card_.labels.empty() || static_cast<int64_t>(card_.labels.size()) == card_.config.classes,
               ErrorKind::kData, "%zu labels for %lld classes", card_.labels.size(),
               static_cast<long long>(card_.config.classes));
    note_origins();
    return std::move(card_);
  }

 private:
  void collect(const CardFiles& files) {
    apply(dialect_config(card_.dialect));
    if (!options_.arch.empty()) {
      asked_ = architecture_config(options_.arch, card_.dialect).model;
      apply(architecture_config(options_.arch, card_.dialect));
    }
    if (const auto stated = read_card_config(files)) apply_stated(*stated);
    if (const auto at = source_.metadata().find("vitrail"); at != source_.metadata().end())
      apply_stated(read_vitrail_config(parse_json(at->second, "metadata"), "metadata"));
    if (files.config && files.config->contains("vitrail"))
      apply_stated(read_vitrail_config(*files.config, files.config_name));
  }

  // A file's own config must not contradict the architecture that the user names: neither may win silently.
  void apply_stated(const StatedConfig& stated) {
    const std::string own = stated.model.value("arch", std::string());
    const std::string asked = asked_.value("arch", std::string());
    for (const auto& [field, value] : asked_.items()) {
      if (own == asked) break;  // variations of that architecture
      const auto at = stated.model.find(field);
      if (at == stated.model.end() || *at == value || (field == "arch" && own.empty())) continue;
      throw Error(ErrorKind::kUsage,
                  strf("--arch %s says %s is %s, but %s says %s", asked.c_str(), field.c_str(),
                       value.dump().c_str(), stated.origin.c_str(), at->dump().c_str()),
                  "leave out --arch: the model says what it is");
    }
    apply(stated);
  }

  void apply(StatedConfig stated) {
    // A base model's config still counts the labels of a head that it does not have.
    if (card_.config.classes == 0 && stated.model.contains("classes")) {
      stated.model.erase("classes");
      stated.labels.clear();
    }
    VitConfig claimed = card_.config;
    from_json(stated.model, stated.origin, &claimed);
    // The rules that hold for any ViT come first, because their message is clearer than that of a
    // contradiction.
    with_context(stated.origin, [&] { validate(claimed); });
    visit_fields(card_.config, MergeStated{stated.model, facts_, stated.origin, &origins_});
    if (stated.preprocess) {
      card_.preprocess = *stated.preprocess;
      origins_["preprocess"] = stated.images_origin.empty() ? stated.origin : stated.images_origin;
      images_warning_ = stated.images_warning;
    }
    if (!stated.labels.empty()) card_.labels = stated.labels;
    if (stated.scores && card_.config.classes > 0) {
      card_.scores = *stated.scores;
      origins_["scores"] = stated.origin;
    }
    if (stated.run_image) run_image_ = stated.run_image;
    card_.pads_images = card_.pads_images || stated.pads_images;
    if (stated.square_interpolation) card_.square_interpolation = stated.square_interpolation;
    for (std::string& note : stated.notes) card_.notes.push_back(std::move(note));
  }

  // Requires that the config states the features which would make the model another family.
  void require_stated() const {
    VT_REQUIRE(
        !card_.config.pre_norm || origins_.contains("pre_norm"), ErrorKind::kData,
        "this looks like a CLIP image tower (a norm before the blocks); only plain ViTs are supported");
    VT_REQUIRE(facts_.pos_rows > 0 || card_.config.pos != PosKind::kLearned, ErrorKind::kData,
               "the file has no table of positions (pos_embed): its positions are rotary (RoPE), or nothing "
               "says that there are none");
  }

  // Returns the zoo rows that have these tensors, whatever the number of classes.
  std::vector<const ZooEntry*> candidates() const {
    std::vector<const ZooEntry*> fitting;
    for (const ZooEntry& entry : zoo()) {
      VitConfig row = entry.config;
      const int64_t rows = row.pos_prefix_rows() + row.grid_height() * row.grid_width();
      if (row.pos == PosKind::kLearned && rows != facts_.pos_rows) continue;
      const Json mine = to_json(facts_.config), theirs = to_json(row);
      bool same = (facts_.config.pool == Pool::kMap) == (row.pool == Pool::kMap);
      for (const std::string& field : facts_.known)
        same = same && (field == "classes" || mine[field] == theirs[field]);
      if (same) fitting.push_back(&entry);
    }
    return fitting;
  }

  // A bare file's tensors do not determine the number of heads and the preprocessing; the zoo may know them.
  void settle_architecture() {
    const bool heads_open = !facts_.known.contains("heads") && !origins_.contains("heads");
    const bool images_open =
        !origins_.contains("preprocess") && !dialect_preprocess(card_.dialect, card_.config, hints_);
    if (!heads_open && !images_open) return;
    const std::vector<const ZooEntry*> fitting = candidates();
    if (images_open && fitting.size() != 1) refuse_bare(fitting);
    if (images_open) return apply(architecture_config(fitting[0]->config.arch, card_.dialect));
    guess_heads();
  }

  void guess_heads() {
    const VitConfig& c = card_.config;
    for (const ZooEntry& entry : zoo()) {
      const VitConfig& row = entry.config;
      if (row.width != c.width || row.depth != c.depth || row.mlp != c.mlp ||
          row.class_token != c.class_token || row.arch.starts_with("test_"))
        continue;
      card_.config.heads = row.heads;
      origins_["heads"] = "as " + row.arch;
      return;
    }
    throw Error(ErrorKind::kConfig,
                strf("nothing says how many attention heads the model has (width %lld, %lld blocks)",
                     static_cast<long long>(c.width), static_cast<long long>(c.depth)),
                "put a config.json with a \"vitrail\" block beside the file");
  }

  [[noreturn]] void refuse_bare(const std::vector<const ZooEntry*>& fitting) const {
    std::string names;
    for (const ZooEntry* entry : fitting) names += (names.empty() ? "" : ", ") + entry->config.arch;
    const VitConfig& c = facts_.config;
    const std::string what = strf("width %lld, %lld blocks, patch %lld, %lld positions",
                                  static_cast<long long>(c.width), static_cast<long long>(c.depth),
                                  static_cast<long long>(c.patch), static_cast<long long>(facts_.pos_rows));
    if (fitting.empty())
      throw Error(ErrorKind::kConfig,
                  "the file says nothing about preprocessing, and no known architecture has its tensors (" +
                      what + ")",
                  "put a config.json with a \"vitrail\" block beside it");
    throw Error(ErrorKind::kUsage,
                "the file's tensors fit several architectures with different preprocessing: " + names,
                "--arch NAME with the one of these it is; vitrail inspect --architectures describes them");
  }

  void settle_image() {
    VT_REQUIRE(facts_.square || origins_.contains("image_height"), ErrorKind::kConfig,
               "%lld positions are no square grid, and no config gives the image's size",
               static_cast<long long>(facts_.pos_rows));
    if (facts_.pos_rows == 0 && !origins_.contains("image_height"))
      warn(strf("the file holds no positions to tell the image size by: %lld is a guess",
                static_cast<long long>(card_.config.image_height)));
    if (card_.dialect == Dialect::kTimm) take_stored_positions();
    const bool claimed = card_.config.pos_for_prefix;
    const auto image = origins_.find("image_height"), rows = origins_.find("pos_for_prefix");
    settle_positions(facts_, image == origins_.end() ? "a guess" : image->second, &card_.config);
    VT_REQUIRE(rows == origins_.end() || claimed == card_.config.pos_for_prefix, ErrorKind::kData,
               "%s says the class token has %s position, but the file has %lld rows of positions",
               rows->second.c_str(), claimed ? "a" : "no", static_cast<long long>(facts_.pos_rows));
  }

  // timm resizes positions that do not fit the image size of its config, assuming a square grid.
  void take_stored_positions() {
    VitConfig& c = card_.config;
    const int64_t rows = facts_.pos_rows - c.pos_prefix_rows(), cells = c.grid_height() * c.grid_width();
    const auto side =
        static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(std::max<int64_t>(rows, 0)))));
    const auto image = origins_.find("image_height");
    if (facts_.pos_rows == 0 || rows == cells || side < 1 || side * side != rows || image == origins_.end() ||
        image->second != "config.json")
      return;
    if (!run_image_) run_image_ = ImageSize{c.image_height, c.image_width};
    c.image_height = side * c.patch;
    c.image_width = side * c.patch_columns();
    card_.preprocess = at_size(card_.preprocess, c.image_height, c.image_width, card_.square_interpolation);
  }

  // The architecture's name is kept only while the model matches it, apart from its head and image size.
  void settle_name() {
    VitConfig& c = card_.config;
    if (c.arch.empty()) return;
    for (const ZooEntry& entry : zoo()) {
      const VitConfig& row = entry.config;
      if (row.arch == c.arch && row.width == c.width && row.depth == c.depth && row.heads == c.heads &&
          row.mlp == c.mlp && row.patch == c.patch && row.registers == c.registers && row.pool == c.pool &&
          row.patch_width == c.patch_width && row.pool_prefix == c.pool_prefix && row.pos == c.pos &&
          row.norm == c.norm && row.pre_norm == c.pre_norm &&
          (row.norm_place == NormPlace::kNone) == (c.norm_place == NormPlace::kNone))
        return;
    }
    c.arch.clear();
    origins_.erase("arch");
  }

  void settle_images() {
    if (origins_.contains("preprocess")) return;
    DialectPreprocess found = dialect_preprocess(card_.dialect, card_.config, hints_).value();
    card_.preprocess = std::move(found.preprocess);
    origins_["preprocess"] = std::move(found.origin);
    images_warning_ = "nothing with the file says how images are prepared";
  }

  void warn(const std::string& line) {
    card_.notes.push_back(line);
    card_.warnings.push_back(line);
  }

  // Notes which of a training checkpoint's weights these are.
  void note_weights() {
    const auto& metadata = source_.metadata();
    const auto taken = metadata.find("state_dict"), others = metadata.find("state_dicts_passed_over");
    if (others == metadata.end()) return;
    warn(strf("the weights under %s are taken, as timm's loader does; the file has others under %s",
              quoted(taken->second).c_str(), others->second.c_str()));
  }

  void note_origins() {
    note_weights();
    const Json model = to_json(card_.config);
    for (const char* field : {"arch", "norm_eps", "norm", "activation", "gelu", "pos_resize", "heads",
                              "image_height", "image_width"})
      if (const auto at = origins_.find(field); at != origins_.end())
        card_.notes.push_back(strf("%s %s: %s", field, model[field].dump().c_str(), at->second.c_str()));
    if (const auto at = origins_.find("scores"); at != origins_.end())
      card_.notes.push_back(strf("scores %s: %s", enum_name(card_.scores), at->second.c_str()));
    const std::string images = "preprocessing: " + origins_["preprocess"];
    if (images_warning_.empty())
      card_.notes.push_back(images);
    else
      warn(images + "; " + images_warning_);
  }

  const TensorSource& source_;
  const OpenOptions& options_;
  Facts facts_;
  std::optional<ImageSize> run_image_;
  ImageHints hints_;
  ModelCard card_;
  std::map<std::string, std::string> origins_;  // the source of a field, "preprocess" and "scores"
  std::string images_warning_;                  // of the config that set "preprocess"
  Json asked_ = Json::object();                 // fields of the architecture that the user names
};

}  // namespace

std::optional<StatedConfig> read_card_config(const CardFiles& files) {
  if (!files.config) return std::nullopt;
  const Json& config = *files.config;
  if (config.contains("architecture") || config.contains("pretrained_cfg")) return read_timm_config(config);
  if (config.contains("hidden_size") || config.contains("model_type"))
    return read_hf_config(config, files.preprocessor ? &*files.preprocessor : nullptr);
  return std::nullopt;
}

ModelCard make_card(const CardFiles& files, const TensorSource& source, const Binding& binding,
                    const OpenOptions& options, std::optional<ImageSize>* run_image) {
  CardMaker maker(source, binding, options);
  ModelCard card = maker.make(files);
  *run_image = maker.run_image();
  return card;
}

}  // namespace vitrail
