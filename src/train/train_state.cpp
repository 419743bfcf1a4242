#include "train/train_state.h"

#include "io/adapters.h"
#include "io/config_json.h"
#include "models/vit_init.h"

namespace vitrail {

namespace {

constexpr const char* kProgress = "progress";

// Stored images and levels persist like the run's state but are not part of it.
bool is_data(const PersistentValue& value) {
  return value.category == Category::kStaging;
}

bool is_kept(const PersistentValue& value) {
  const bool copy = value.kind == ValueKind::kState && value.category == Category::kParameters;
  return value.category != Category::kGradients && !copy && !is_data(value) && !value.is_container;
}

TensorInfo info_of(const PersistentValue& value) {
  return {.name = value.name,
          .dtype = value.desc.dtype,
          .shape = WholeValues::shape_of(value),
          .bytes = WholeValues::bytes_of(value)};
}

TensorPart part_of(const PersistentValue& value) {
  const HeldPart held = held_of(value);
  TensorPart part{.shape = WholeValues::shape_of(value),
                  .offset = {},
                  .local = {},
                  .first = held.first,
                  .count = held.count};
  for (const Dim& dim : held.part) {
    part.offset.push_back(dim.offset);
    part.local.push_back(dim.local);
  }
  return part;
}

// Reads what this rank holds of a value, and nothing else.
void read_held(const TensorSource& source, size_t index, const PersistentValue& value,
               std::span<std::byte> target) {
  const size_t unit = size_of(value.desc.dtype);
  for (const ElementRun& run : runs_of(part_of(value)))
    source.read_part(
        index, static_cast<size_t>(run.from) * unit,
        target.subspan(static_cast<size_t>(run.at) * unit, static_cast<size_t>(run.count) * unit));
}

std::vector<float> floats_of(WholeValues& values, const std::string& name, bool average) {
  return values.read_floats(average && values.has(ema_name(name)) ? ema_name(name) : name);
}

// Adds positions that the step computes (fixed ones) and a stored model has as a parameter.
ParamReader with_positions(const VitConfig& config, ParamReader read) {
  if (config.pos != PosKind::kSinCos2d) return read;
  return [read = std::move(read), table = fixed_positions(config)](const ParamSpec& spec,
                                                                   std::span<float> target) {
    if (spec.name != "pos_embed") return read(spec, target);
    VT_CHECK(table.size() == target.size());
    std::copy(table.begin(), table.end(), target.begin());
  };
}

}  // namespace

Json to_json(const Progress& progress) {
  Json json = Json::object();
  Progress::fields(progress, [&](const char* name, const auto& field, const char*) { json[name] = field; });
  return json;
}

Progress progress_from(const Json& facts) {
  Progress progress;
  const Json* json = json_find(facts, kProgress);
  VT_REQUIRE(json && json->is_object(), ErrorKind::kData, "the checkpoint does not say how far the run was");
  Progress::fields(progress, [&](const char* name, auto& field, const char*) {
    if (const Json* value = json_find(*json, name)) json_assign(*value, "checkpoint", name, &field);
  });
  return progress;
}

std::vector<TensorToWrite> state_tensors(WholeValues& values) {
  std::vector<TensorToWrite> tensors;
  for (const PersistentValue& value : values.layout().values())
    if (is_kept(value))
      tensors.push_back(
          {info_of(value), [&values, value](std::span<std::byte> target) { values.read(value, target); }});
  return tensors;
}

std::vector<PartToWrite> state_parts(WholeValues& values, int rank) {
  std::vector<size_t> kept;
  const std::vector<PersistentValue>& all = values.table().values();
  for (size_t i = 0; i < all.size(); ++i)
    if (is_kept(all[i])) kept.push_back(i);
  std::vector<PartToWrite> parts;
  for (const size_t index : values.table().written_by(rank, kept)) {
    const PersistentValue& value = values.layout().at(all[index].name);
    parts.push_back(part_to_write(
        value.name, value.desc.dtype, part_of(value),
        [&store = values.store(), &value](std::span<std::byte> target) { store.read(value, target); }));
  }
  return parts;
}

void restore_state(const TensorSource& source, const PersistentStore& store) {
  for (const PersistentValue& value : store.layout().values()) {
    if (is_data(value)) continue;
    if (!is_kept(value) && value.contained) continue;  // cleared with what holds it
    if (!is_kept(value)) {
      store.clear(value);
      continue;
    }
    const auto index = source.find(value.name);
    VT_REQUIRE(index, ErrorKind::kData, "%s holds no %s: it belongs to another kind of run",
               source.path().c_str(), value.name.c_str());
    const TensorInfo wanted = info_of(value), &found = source.tensors()[*index];
    VT_REQUIRE(found.dtype == wanted.dtype && found.shape == wanted.shape, ErrorKind::kData,
               "%s: %s has another shape or type than this run's %s", source.path().c_str(),
               value.name.c_str(), to_string(value.desc).c_str());
    if (store.is_at_hand(value)) {
      const TensorView view = store.view(value);
      read_held(source, *index, value, {static_cast<std::byte*>(view.data()), value.desc.bytes()});
      continue;
    }
    std::vector<std::byte> bytes(value.desc.bytes());
    read_held(source, *index, value, bytes);
    store.write(value, bytes);
  }
}

namespace {
// Reads the weights as a published model has them: the moving average when `average`, with these adapters
// merged in.
ParamReader model_reader(WholeValues& values, const LoraConfig& lora, bool average,
                         std::map<std::string, LoraAdapter> merged) {
  return
      [&values, lora, average, merged = std::move(merged)](const ParamSpec& spec, std::span<float> target) {
        const std::vector<float> found = floats_of(values, spec.name, average);
        VT_CHECK(found.size() == target.size(), "%s: %zu floats for %zu", spec.name.c_str(), found.size(),
                 target.size());
        std::copy(found.begin(), found.end(), target.begin());
        const auto adapter = merged.find(spec.name);
        if (adapter == merged.end()) return;
        const std::vector<float> a = floats_of(values, adapter->second.a.name, average),
                                 b = floats_of(values, adapter->second.b.name, average);
        const auto inputs = static_cast<int64_t>(a.size()) / lora.rank,
                   outputs = static_cast<int64_t>(b.size()) / lora.rank;
        lora_merge(lora, a.data(), b.data(), outputs, inputs, target.data());
      };
}
}  // namespace

void write_model_folder(const std::string& folder, const ModelCard& card, WholeValues& values,
                        const LoraConfig& lora, bool average, bool adapters_apart) {
  ModelCard stored = card;
  stored.config = stored_config(card.config);
  std::map<std::string, LoraAdapter> merged;
  if (!adapters_apart) merged = lora_adapters(stored.config, lora);
  write_model(
      folder, stored,
      {.dialect = folder_dialect(stored.config), .storage = DType::kF32, .overwrite = true, .folder = true},
      with_positions(card.config, model_reader(values, lora, average, std::move(merged))));
  if (lora.rank == 0 || !adapters_apart) return;
  write_adapters(folder, stored.config, lora, model_reader(values, lora, average, {}));
}

VitConfig stored_config(const VitConfig& config) {
  return with_learned_positions(config);
}

}  // namespace vitrail
