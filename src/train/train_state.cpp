#include "train/train_state.h"

#include "io/adapters.h"
#include "io/config_json.h"
#include "models/vit_init.h"
#include "runtime/transfer.h"

namespace vitrail {

namespace {

constexpr const char* kProgress = "progress";

// Stored images and levels persist like the run's state but are not part of it.
bool is_data(const PersistentValue& value) {
  return value.category == Category::kStaging;
}

bool is_kept(const PersistentValue& value) {
  const bool copy = value.kind == ValueKind::kState && value.category == Category::kParameters;
  return value.category != Category::kGradients && !copy && !is_data(value);
}

TensorInfo info_of(const PersistentValue& value) {
  TensorInfo info{.name = value.name, .dtype = value.desc.dtype, .shape = {}, .bytes = value.desc.bytes()};
  for (const Dim& dim : value.desc.shape) info.shape.push_back(dim.local);
  return info;
}

std::vector<float> floats_of(const PersistentStore& store, const std::string& name, bool average) {
  const std::string from = average && store.layout().has(ema_name(name)) ? ema_name(name) : name;
  const TensorView view = store.view(from);
  std::vector<float> values(static_cast<size_t>(view.desc().elems()));
  read_floats(store.rank(), view, values);
  return values;
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

std::vector<TensorToWrite> state_tensors(const PersistentStore& store) {
  std::vector<TensorToWrite> tensors;
  for (const PersistentValue& value : store.layout().values()) {
    if (!is_kept(value)) continue;
    const TensorView view = store.view(value);
    tensors.push_back({info_of(value), [view, &rank = store.rank()](std::span<std::byte> target) {
                         read_bytes(rank, view, target);
                       }});
  }
  return tensors;
}

void restore_state(const TensorSource& source, const PersistentStore& store) {
  for (const PersistentValue& value : store.layout().values()) {
    const TensorView view = store.view(value);
    if (is_data(value)) continue;
    if (!is_kept(value)) {
      store.rank().hardware->clear(view.data(), value.desc.bytes());
      continue;
    }
    const auto index = source.find(value.name);
    VT_REQUIRE(index, ErrorKind::kData, "%s holds no %s: it belongs to another kind of run",
               source.path().c_str(), value.name.c_str());
    const TensorInfo wanted = info_of(value), &found = source.tensors()[*index];
    VT_REQUIRE(found.dtype == wanted.dtype && found.shape == wanted.shape, ErrorKind::kData,
               "%s: %s has another shape or type than this run's %s", source.path().c_str(),
               value.name.c_str(), to_string(value.desc).c_str());
    if (store.rank().hardware->shares_host_memory()) {
      source.read(*index, {static_cast<std::byte*>(view.data()), wanted.bytes});
    } else {
      std::vector<std::byte> bytes(wanted.bytes);
      source.read(*index, bytes);
      write_bytes(store.rank(), view, bytes);
    }
  }
}

ParamReader model_reader(const PersistentStore& store, const LoraConfig& lora, bool average, bool apart) {
  return [&store, lora, average, apart](const ParamSpec& spec, std::span<float> target) {
    const std::vector<float> values = floats_of(store, spec.name, average);
    VT_CHECK(values.size() == target.size(), "%s: %zu floats for %zu", spec.name.c_str(), values.size(),
             target.size());
    std::copy(values.begin(), values.end(), target.begin());
    constexpr std::string_view kWeight = ".weight";
    if (apart || !spec.name.ends_with(kWeight)) return;
    const std::string product = spec.name.substr(0, spec.name.size() - kWeight.size());
    if (!lora_applies(lora, product)) return;
    const std::vector<float> a = floats_of(store, product + ".lora_a.weight", average),
                             b = floats_of(store, product + ".lora_b.weight", average);
    const auto inputs = static_cast<int64_t>(a.size()) / lora.rank,
               outputs = static_cast<int64_t>(b.size()) / lora.rank;
    lora_merge(lora, a.data(), b.data(), outputs, inputs, target.data());
  };
}

void write_model_folder(const std::string& folder, const ModelCard& card, const PersistentStore& store,
                        const LoraConfig& lora, bool average, bool adapters_apart) {
  ModelCard stored = card;
  stored.config = stored_config(card.config);
  write_model(
      folder, stored,
      {.dialect = folder_dialect(stored.config), .storage = DType::kF32, .overwrite = true, .folder = true},
      with_positions(card.config, model_reader(store, lora, average, adapters_apart)));
  if (lora.rank == 0 || !adapters_apart) return;
  write_adapters(folder, stored.config, lora, model_reader(store, lora, average, true));
}

VitConfig stored_config(const VitConfig& config) {
  return with_learned_positions(config);
}

}  // namespace vitrail
