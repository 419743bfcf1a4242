#include "train/deepspeed/deepspeed.h"

#include "base/file.h"
#include "train/deepspeed/keys.h"

namespace vitrail {

namespace {
constexpr size_t kMostFileBytes = 1 << 20;

// They are read in this order: the batch depends on the mesh, the schedule on the optimizer's rate.
constexpr void (*kSections[])(deepspeed::Reader&) = {
    deepspeed::sort_keys,      deepspeed::read_mesh,      deepspeed::read_batch,
    deepspeed::read_precision, deepspeed::read_optimizer, deepspeed::read_scheduler,
    deepspeed::read_zero,      deepspeed::read_memory,    deepspeed::read_output};
}  // namespace

Json parse_deepspeed(std::string_view text, const std::string& place) {
  return parse_json(text, place, {.max_bytes = kMostFileBytes, .comments = true, .kind = ErrorKind::kConfig});
}

DeepSpeedReading translate_deepspeed(const Json& file, const std::string& place, const DeepSpeedBase& base) {
  if (!file.is_object())
    throw Error(
        ErrorKind::kConfig,
        strf("%s holds %s; expected a DeepSpeed JSON, which is one object", place.c_str(), file.type_name()),
        R"({ "train_batch_size": 32 })");
  deepspeed::Reader reader(file, place, base);
  for (const auto section : kSections) section(reader);
  return reader.finish();
}

DeepSpeedReading read_deepspeed(const std::string& path, const DeepSpeedBase& base) {
  std::string text;
  try {
    text = read_file(path, kMostFileBytes);
  } catch (const Error& error) {
    throw Error(ErrorKind::kConfig, error.message(), "check what is given to --deepspeed");
  }
  DeepSpeedReading reading = translate_deepspeed(parse_deepspeed(text, path), path, base);
  if (reading.refused.empty()) return reading;
  std::string list;
  for (const DeepSpeedNote& one : reading.refused) list += "\n" + one.text;
  throw Error(ErrorKind::kConfig,
              strf("%s would give another result: what cannot be honoured is%s", path.c_str(), list.c_str()),
              "leave these keys out, or change them as said; docs/deepspeed.md lists all keys");
}

}  // namespace vitrail
