#include "cli/kernels_file.h"

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "backend/cpu/cpu_isa.h"
#include "backend/cpu/gemm_library.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/machine.h"

namespace vitrail::cli {

namespace {
namespace fs = std::filesystem;
using nlohmann::ordered_json;
constexpr size_t kMaxTableBytes = 4 << 20;
constexpr const char* kFormat = "vitrail kernels 1";

struct LibraryRow {
  const char *name, *kernel;
  const GemmLibrary& (*open)();
};
constexpr LibraryRow kLibraries[] = {{"openblas", "openblas tiles", openblas},
                                     {"onednn", "onednn tiles", onednn}};

bool mentions(const KernelTable& table, const char* kernel) {
  for (const KernelTable::Row& row : table.rows())
    for (const std::string& name : row.kernels)
      if (name == kernel) return true;
  return false;
}

// Versions of the libraries whose kernels the table names: only these are opened.
Json versions_for(const KernelTable& table) {
  Json versions = Json::object();
  for (const LibraryRow& library : kLibraries)
    if (mentions(table, library.kernel))
      versions[library.name] = library.open().missing.empty() ? library.open().version : "missing";
  return versions;
}

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorKind::kData, why);
}

Json field(const Json& object, const char* name, bool (Json::*is)() const noexcept) {
  const Json value = object.is_object() ? object.value(name, Json()) : Json();
  if (!(value.*is)()) refuse(strf("'%s' is missing or of the wrong kind", name));
  return value;
}

int64_t count_field(const Json& object, const char* name) {
  const Json value = field(object, name, &Json::is_number_integer);
  if (value < 1 || value > (int64_t{1} << 40)) refuse(strf("'%s' is out of range", name));
  return value.get<int64_t>();
}

// Nothing for a level this processor lacks.
std::optional<int> isa_number(const std::string& name) {
  for (const IsaLevel level : available_isa_levels())
    if (name == to_string(level)) return static_cast<int>(level);
  return std::nullopt;
}

std::optional<KernelTable::Row> row_from(const Json& json) {
  KernelTable::Row row;
  row.key.op = field(json, "op", &Json::is_string).get<std::string>();
  row.key.m = count_field(json, "m"), row.key.n = count_field(json, "n"), row.key.k = count_field(json, "k");
  row.key.threads = static_cast<int>(std::min<int64_t>(count_field(json, "threads"), 1 << 20));
  const auto isa = isa_number(field(json, "isa", &Json::is_string).get<std::string>());
  for (const Json& name : field(json, "kernels", &Json::is_array)) {
    if (!name.is_string()) refuse("a kernel is no name");
    row.kernels.push_back(name.get<std::string>());
  }
  if (!isa) return std::nullopt;
  row.key.isa = *isa;
  return row;
}

KernelTable table_from(const Json& json) {
  if (field(json, "format", &Json::is_string) != kFormat) refuse(strf("its format is not '%s'", kFormat));
  const auto same = [&](const char* name, const std::string& here) {
    const Json there = field(json, name, &Json::is_string);
    if (there != here)
      refuse(strf("it was made with %s '%s', this is '%s'", name, there.get<std::string>().c_str(),
                  here.c_str()));
  };
  same("vitrail", VITRAIL_VERSION);
  same("processor", read_machine().processor);
  KernelTable table;
  for (const Json& json_row : field(json, "rows", &Json::is_array))
    if (auto row = row_from(json_row)) table.set(std::move(*row));
  if (field(json, "libraries", &Json::is_object) != versions_for(table))
    refuse("it was made with other versions of OpenBLAS or oneDNN");
  return table;
}

KernelsFile usable_kernels(const std::string& path) {
  const Json json = parse_json(read_file(path, kMaxTableBytes), path);
  auto table = std::make_shared<KernelTable>(table_from(json));
  return {table, strf("kernels by %s, %zu rows", path.c_str(), table->rows().size())};
}

KernelsFile asked_for_kernels(const std::string& path) {
  try {
    return usable_kernels(path);
  } catch (const Error& error) {
    throw Error(error.kind(), strf("--kernels %s: %s", path.c_str(), error.message().c_str()),
                "vitrail bench tune --out FILE makes one for this machine; --kernels none does without");
  }
}
}  // namespace

std::string default_kernels_path() {
  const char *config = std::getenv("XDG_CONFIG_HOME"), *home = std::getenv("HOME");
  const bool own = config && *config;
  if (!own && !(home && *home)) return {};
  std::string name = "kernels-";
  for (const char c : read_machine().processor) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain || name.back() != '-') name += plain ? c : '-';
  }
  while (name.back() == '-') name.pop_back();
  return (fs::path(own ? config : home) / (own ? "" : ".config") / "vitrail" / (name + ".json")).string();
}

KernelsFile read_kernels(const std::string& path) {
  try {
    return usable_kernels(path);
  } catch (const Error& error) {
    return {nullptr, strf("%s is not used: %s; vitrail bench tune makes a new one", path.c_str(),
                          error.message().c_str())};
  }
}

void write_kernels(const std::string& path, const KernelTable& table) {
  ordered_json json = {{"format", kFormat},
                       {"vitrail", VITRAIL_VERSION},
                       {"processor", read_machine().processor},
                       {"libraries", versions_for(table)},
                       {"rows", ordered_json::array()}};
  for (const auto& [key, kernels] : table.rows())
    json["rows"].push_back({{"op", key.op},
                            {"isa", to_string(static_cast<IsaLevel>(key.isa))},
                            {"threads", key.threads},
                            {"m", key.m},
                            {"n", key.n},
                            {"k", key.k},
                            {"kernels", kernels}});
  std::string text = json.dump();
  // One row a line.
  for (size_t at = 0; (at = text.find("{\"op\"", at)) != std::string::npos; at += 2) text.insert(at, "\n");
  std::error_code error;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) {
    fs::create_directories(folder, error);
    if (error)
      throw Error(ErrorKind::kWrite, strf("cannot make %s: %s", folder.c_str(), error.message().c_str()),
                  "--out FILE names another place");
  }
  write_file(path, text + "\n");
}

KernelsFile chosen_kernels(const Options& options) {
  const std::string& given = options.text("kernels");
  if (given == "none") return {};
  if (given != "auto") return asked_for_kernels(given);
  const std::string path = default_kernels_path();
  std::error_code ignored;
  if (path.empty() || !fs::exists(path, ignored)) return {};
  return read_kernels(path);
}

}  // namespace vitrail::cli
