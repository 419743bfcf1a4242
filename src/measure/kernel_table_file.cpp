#include "measure/kernel_table_file.h"

#include <cctype>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "io/find_model.h"
#include "measure/host.h"
#include "plan/devices.h"

namespace vitrail {

namespace {
namespace fs = std::filesystem;
using nlohmann::ordered_json;
constexpr size_t kMaxTableBytes = 4 << 20;
constexpr const char* kFormat = "vitrail kernels 1";

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorKind::kData, why);
}

Json field(const Json& object, const char* name, bool (Json::*is)() const noexcept) {
  Json value = object.is_object() ? object.value(name, Json()) : Json();
  if (!(value.*is)()) refuse(strf("'%s' is missing or of the wrong kind", name));
  return value;
}

int64_t count_field(const Json& object, const char* name) {
  const Json value = field(object, name, &Json::is_number_integer);
  if (value < 1 || value > (int64_t{1} << 40)) refuse(strf("'%s' is out of range", name));
  return value.get<int64_t>();
}

// Reads threads and instruction set, which only a processor has; false: this processor lacks the set.
bool read_processor(const Json& json, TuneKey& key) {
  key.threads = static_cast<int>(std::min<int64_t>(count_field(json, "threads"), 1 << 20));
  const auto isa = isa_here(field(json, "isa", &Json::is_string).get<std::string>());
  key.level = isa.value_or(0);
  return isa.has_value();
}

std::optional<KernelTable::Row> row_from(const Json& json, const TunedDevice& device) {
  KernelTable::Row row;
  row.key.op = field(json, "op", &Json::is_string).get<std::string>();
  row.key.m = count_field(json, "m");
  row.key.n = count_field(json, "n");
  row.key.k = count_field(json, "k");
  for (const Json& name : field(json, "kernels", &Json::is_array)) {
    if (!name.is_string()) refuse("a kernel is no name");
    row.kernels.push_back(name.get<std::string>());
  }
  row.key.threads = 0;
  row.key.level = device.compute;
  if (device.tables().by_isa && !read_processor(json, row.key)) return std::nullopt;
  return row;
}

bool has_kernel(const Backend& backend, const std::string& name) {
  for (const OpKernels& row : backend.kernels())
    for (const Kernel& kernel : row.kernels)
      if (name == kernel.name) return true;
  return false;
}

// Refuses a table of a version with other kernels, since it ranked kernels that do not exist here.
void refuse_unknown_kernels(const KernelTable& table, const TunedDevice& device) {
  if (!device.tables().of_one_version) return;
  for (const KernelTable::Row& row : table.rows())
    for (const std::string& name : row.kernels)
      if (!has_kernel(device.backend->kernels(), name))
        refuse(strf("it names the kernel %s, which this version of Vitrail does not have; tune anew",
                    quoted(name).c_str()));
}

KernelTable table_from(const Json& json, const TunedDevice& device) {
  if (field(json, "format", &Json::is_string) != kFormat) refuse(strf("its format is not '%s'", kFormat));
  const auto same = [&](const char* name, const std::string& here) {
    const Json there = field(json, name, &Json::is_string);
    if (there != here)
      refuse(strf("it was made with %s '%s', this is '%s'", name, there.get<std::string>().c_str(),
                  here.c_str()));
  };
  if (device.tables().of_one_version) same("vitrail", VITRAIL_VERSION);
  same(device.tables().key, device.name);
  KernelTable table;
  for (const Json& json_row : field(json, "rows", &Json::is_array))
    if (auto row = row_from(json_row, device)) table.set(std::move(*row));
  refuse_unknown_kernels(table, device);
  const Json made_with = field(json, "libraries", &Json::is_object), here = device.libraries(table);
  if (made_with != here)
    refuse(strf("it was made with other versions of libraries, %s, here %s", made_with.dump().c_str(),
                here.dump().c_str()));
  return table;
}

KernelsFile usable_kernels(const std::string& path, const TunedDevice& device) {
  const Json json = parse_json(read_file(path, kMaxTableBytes), path);
  auto table = std::make_shared<KernelTable>(table_from(json, device));
  return {table, strf("kernels by %s, %zu rows", path.c_str(), table->rows().size())};
}

KernelsFile asked_for_kernels(const std::string& path, const TunedDevice& device) {
  try {
    return usable_kernels(path, device);
  } catch (const Error& error) {
    throw Error(error.kind(), strf("--kernels %s: %s", path.c_str(), error.message().c_str()),
                "vitrail bench tune --out FILE makes one for this machine; --kernels none does without");
  }
}

// Returns a name for files: letters, digits and single dashes.
std::string file_word(const std::string& name) {
  std::string word;
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain || (!word.empty() && word.back() != '-')) word += plain ? c : '-';
  }
  while (!word.empty() && word.back() == '-') word.pop_back();
  return word;
}

// Returns "nvidia-h200.json".
std::string file_of(const TunedDevice& device) {
  const std::string name = file_word(device.name);
  return (device.tables().shipped ? lowercase(name) : name) + ".json";
}
}  // namespace

TunedDevice this_processor() {
  return tuned_device(processor_here());
}

TunedDevice tuned_device(const DeviceInfo& device) {
  const BackendEntry& backend = find_entry(device.backend);
  return {&backend, name_of(device), device.compute, backend.tables.libraries};
}

std::string own_kernels_path(const std::string& config_home, const TunedDevice& device) {
  if (config_home.empty()) return {};
  return (fs::path(config_home) / "vitrail" / ("kernels-" + file_of(device))).string();
}

std::vector<fs::path> kernel_places() {
  return shipped_places("kernels", "configs/kernels");
}

std::string shipped_kernels_path(const TunedDevice& device, const std::vector<fs::path>& places) {
  std::error_code ignored;
  for (const fs::path& place : places)
    if (const fs::path path = place / file_of(device);
        device.tables().shipped && fs::is_regular_file(path, ignored))
      return path.string();
  return {};
}

KernelsFile read_kernels(const std::string& path, const TunedDevice& device) {
  try {
    return usable_kernels(path, device);
  } catch (const Error& error) {
    return {nullptr, strf("%s is not used: %s; vitrail bench tune makes a new one", path.c_str(),
                          error.message().c_str())};
  }
}

void write_kernels(const std::string& path, const KernelTable& table, const TunedDevice& device) {
  ordered_json json = {{"format", kFormat},
                       {"vitrail", VITRAIL_VERSION},
                       {device.tables().key, device.name},
                       {"libraries", device.libraries(table)},
                       {"rows", ordered_json::array()}};
  for (const auto& [key, kernels] : table.rows()) {
    ordered_json row = {{"op", key.op}};
    if (device.tables().by_isa) {
      row["isa"] = isa_name(key.level);
      row["threads"] = key.threads;
    }
    row.update({{"m", key.m}, {"n", key.n}, {"k", key.k}, {"kernels", kernels}});
    json["rows"].push_back(std::move(row));
  }
  std::string text = json.dump();
  // Each row is written on a line of its own.
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

KernelsFile usual_kernels(const std::string& config_home, const TunedDevice& device) {
  const std::string own = own_kernels_path(config_home, device), shipped = shipped_kernels_path(device);
  std::error_code ignored;
  if (!own.empty() && fs::exists(own, ignored)) return read_kernels(own, device);
  return shipped.empty() ? KernelsFile() : read_kernels(shipped, device);
}

namespace {
// Returns nothing for a GPU that cannot be used; computing on it reports why.
std::optional<TunedDevice> usable_device(const DeviceName& name) {
  try {
    return tuned_device(name.entry->find({.ordinal = name.ordinal}));
  } catch (const Error&) {
    return std::nullopt;
  }
}
}  // namespace

KernelsFile kernels_for(const std::string& device, const std::string& asked, const std::string& config_home) {
  if (asked == "none") return {};
  const std::optional<TunedDevice> tuned = usable_device(parse_device_name(device));
  if (!tuned) return {};
  return asked == "auto" ? usual_kernels(config_home, *tuned) : asked_for_kernels(asked, *tuned);
}

KernelTable kernels_to_extend(const std::string& path, const std::string& config_home,
                              const TunedDevice& device) {
  std::error_code ignored;
  KernelsFile before;
  if (std::filesystem::exists(path, ignored))
    before = read_kernels(path, device);
  else if (!config_home.empty())
    before = usual_kernels(config_home, device);
  return before.table ? *before.table : KernelTable();
}

}  // namespace vitrail
