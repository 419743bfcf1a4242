#include "api/packed_cache.h"

#include <filesystem>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/json_text.h"
#include "io/cache_file.h"
#include "io/config_json.h"
#include "io/source_identity.h"

namespace vitrail {

namespace {
namespace fs = std::filesystem;

// Describes the layout of the bytes: the program's version, the backend, and every parameter with its storage
// order and offset.
std::string layout_text(const ModelCard& card, const ExecutionPlan& plan) {
  std::string text = strf("vitrail %s, %s, instruction set %d\n%s\n", VITRAIL_VERSION, plan.backend->name(),
                          plan.device.isa, json_text(to_json(card.config)).c_str());
  for (const PersistentValue& value : plan.memory.persistent->values())
    text += strf("%s %s %zu at %zu\n", value.name.c_str(), to_string(value.desc).c_str(), value.desc.bytes(),
                 value.offset);
  return text;
}

// Returns the arena of the parameters; inference keeps no other persistent values.
std::span<std::byte> arena_of(const PersistentStore& store) {
  const PersistentLayout& layout = store.layout();
  VT_CHECK(!layout.values().empty() && layout.bytes() == layout.bytes(Category::kParameters),
           "a cache of more than parameters");
  const PersistentValue& first = layout.values()[0];
  return {static_cast<std::byte*>(store.view(first).data()) - first.offset, layout.bytes()};
}

}  // namespace

PackedCache::PackedCache(const OpenedModel& model, const ExecutionPlan& plan,
                         std::vector<std::string> folders)
    : folders_(std::move(folders)) {
  const std::string layout = layout_text(model.card(), plan);
  identity_ = layout + source_identity(model.source());
  // The weights are not part of the file name: when they change, the new file replaces the old one.
  const std::string place = fs::absolute(model.source().path()).lexically_normal().string();
  name_ = strf("%08x%08x.bin", crc32c(as_byte_span(layout)), crc32c(as_byte_span(place)));
}

bool PackedCache::load(const PersistentStore& store, ThreadPool& pool) {
  for (const std::string& folder : folders_) {
    const std::string path = folder + "/" + name_;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) continue;
    const std::string why = read_cache_file(path, identity_, arena_of(store), pool);
    note_ = why.empty() ? "packed weights from " + path : path + " is not used: " + why;
    if (why.empty()) return true;
  }
  return false;
}

bool PackedCache::save_into(const std::string& folder, const PersistentStore& store, ThreadPool& pool) {
  std::string happened;
  bool written = false;
  try {
    std::error_code ignored;
    fs::create_directories(folder, ignored);
    write_cache_file(folder + "/" + name_, identity_, arena_of(store), pool);
    happened = "packed weights written to " + folder + "/" + name_;
    written = true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kWrite) throw;
    happened = error.what();
  }
  note_ += (note_.empty() ? "" : "; ") + happened;
  return written;
}

void PackedCache::save(const PersistentStore& store, ThreadPool& pool) {
  for (const std::string& folder : folders_)
    if (save_into(folder, store, pool)) return;
}

std::vector<std::string> packed_cache_places(const std::string& model_path, const std::string& xdg_cache,
                                             const std::string& home) {
  std::error_code ignored;
  const fs::path model(model_path);
  const fs::path folder = fs::is_directory(model, ignored) ? model : model.parent_path();
  std::vector<std::string> places = {(folder / ".vitrail-cache").string()};
  // The XDG specification says that relative paths are ignored.
  if (fs::path(xdg_cache).is_absolute())
    places.push_back((fs::path(xdg_cache) / "vitrail").string());
  else if (fs::path(home).is_absolute())
    places.push_back((fs::path(home) / ".cache/vitrail").string());
  return places;
}

}  // namespace vitrail
