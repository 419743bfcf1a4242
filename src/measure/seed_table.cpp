#include "measure/seed_table.h"

#include <algorithm>

#include "base/json.h"
#include "io/cards/card_text.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {

struct Published {
  const char* name;
  double seconds;
};
constexpr Published kTableOne[] = {{"embeddings", 1.190}, {"layer norm 1", 0.024},    {"attention", 21.220},
                                   {"residual 1", 0.001}, {"layer norm 2", 0.024},    {"MLP", 9.602},
                                   {"residual 2", 0.002}, {"last layer norm", 0.0231}};

// The published times as ratios to the embeddings'.
constexpr double kPublishedAttention = 21.220 / 1.190, kPublishedMlp = 9.602 / 1.190;

const ProfileRow* part_named(const std::vector<ProfileRow>& parts, const std::string& name) {
  const auto found = std::find_if(parts.begin(), parts.end(), [&](const auto& p) { return p.name == name; });
  return found == parts.end() ? nullptr : &*found;
}

double seconds_of(const ProfileRow& part) {
  return part.layers() > 0 ? part.seconds_per_layer() : part.seconds;
}

}  // namespace

void require_like_seed(const VitConfig& model, int64_t batch) {
  const bool alike = model.width == 768 && model.heads == 12 && model.mlp == 3072 && batch == 1 &&
                     model.grid_height() * model.grid_width() == 196;
  if (!alike)
    throw Error(ErrorKind::kUsage,
                strf("seed-000 is ViT-Base at 224 px with batch 1; this is %s with batch %lld",
                     architecture_text(model).c_str(), static_cast<long long>(batch)),
                "vitrail profile -m vit_base_patch16_224 --no-fuse --beside seed-000");
}

const SeedTimes::Row& SeedTimes::at(const std::string& name) const {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  VT_REQUIRE(found != rows.end() && found->seconds > 0, ErrorKind::kData, "seed-000 told no time of its %s",
             name.c_str());
  return *found;
}

double SeedTimes::rate() const {
  return at("MLP").macs / at("MLP").seconds;
}

// Twelve threads on fewer cores take turns, so that all cores are busy until the end.
double SeedTimes::predicted_attention() const {
  const double busy = static_cast<double>(std::min(cores, heads));
  return (static_cast<double>(heads) * head_macs / busy + output_macs) / rate();
}

SeedTimes read_seed_times(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  VT_REQUIRE(!json.is_discarded() && json.is_object(), ErrorKind::kData, "seed-000 did not print its times");
  SeedTimes seed;
  try {
    seed.cores = json.at("cores");
    seed.layers = json.at("layers");
    seed.heads = json.at("heads");
    seed.head_macs = json.at("head_macs");
    seed.output_macs = json.at("output_macs");
    for (const Json& row : json.at("rows"))
      seed.rows.push_back({row.at("name"), row.at("seconds"), row.at("macs")});
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::kData, strf("seed-000 printed something else than its times: %s", error.what()));
  }
  for (const Published& row : kTableOne) (void)seed.at(row.name);
  return seed;
}

std::string seed_table(const SeedTimes& seed, const std::vector<ProfileRow>& parts) {
  Table table({{"one layer"},
               {"published", Align::kRight},
               {"seed-000 here", Align::kRight},
               {"GMAC", Align::kRight},
               {"MMAC/s", Align::kRight},
               {"Vitrail", Align::kRight},
               {"GMAC", Align::kRight},
               {"faster", Align::kRight}});
  for (const Published& published : kTableOne) {
    const SeedTimes::Row& row = seed.at(published.name);
    const ProfileRow* part = part_named(parts, published.name);
    const double own = part ? seconds_of(*part) : 0;
    const double repeats = part && part->layers() > 0 ? static_cast<double>(part->layers()) : 1;
    const bool multiplies = row.macs > 0;
    table.row({row.name, strf("%.4g s", published.seconds), format_seconds(row.seconds),
               multiplies ? strf("%.3f", row.macs / 1e9) : "",
               multiplies ? strf("%.0f", row.macs / row.seconds / 1e6) : "",
               own > 0 ? format_seconds(own) : "-",
               multiplies && part ? strf("%.3f", part->flops / 2e9 / repeats) : "",
               own > 0 ? strf("%.0f x", row.seconds / own) : ""});
  }
  return table.text();
}

std::string seed_explanation(const SeedTimes& seed) {
  const double rate = seed.rate(), embeddings = seed.at("embeddings").seconds;
  const double attention = seed.at("attention").seconds, mlp = seed.at("MLP").seconds;
  const double busy = static_cast<double>(std::min(seed.cores, seed.heads));
  std::string text =
      strf("One thread of its unoptimised build multiplies at %.0f MMAC/s (by its MLP).\n", rate / 1e6);
  text += strf(
      "Each of %lld heads projects 768 columns to 768 where a ViT's projects to 64: %.3f GMAC a head, %.1f s "
      "for "
      "all on %.0f cores.\n",
      static_cast<long long>(seed.heads), seed.head_macs / 1e9,
      static_cast<double>(seed.heads) * seed.head_macs / busy / rate, busy);
  text += strf("The output projection reads 9,216 columns on one thread: %.3f GMAC, %.1f s.\n",
               seed.output_macs / 1e9, seed.output_macs / rate);
  text += strf("Together %.1f s of attention predicted, %.1f s measured.\n", seed.predicted_attention(),
               attention);
  text += strf(
      "attention : MLP : embeddings = %.1f : %.2f : 1; by the arithmetic on %.0f cores %.1f : %.2f : 1; "
      "published "
      "(8 cores) %.1f : %.2f : 1.\n",
      attention / embeddings, mlp / embeddings, busy,
      seed.predicted_attention() * rate / seed.at("embeddings").macs,
      seed.at("MLP").macs / seed.at("embeddings").macs, kPublishedAttention, kPublishedMlp);
  return text;
}

nlohmann::ordered_json to_json(const SeedTimes& seed) {
  nlohmann::ordered_json json = {{"cores", seed.cores},
                                 {"layers", seed.layers},
                                 {"mmacs_per_s", seed.rate() / 1e6},
                                 {"predicted_attention_s", seed.predicted_attention()}};
  for (const Published& published : kTableOne) {
    const SeedTimes::Row& row = seed.at(published.name);
    json["rows"].push_back({{"name", row.name},
                            {"seconds", row.seconds},
                            {"macs", row.macs},
                            {"published_s", published.seconds}});
  }
  return json;
}

}  // namespace vitrail
