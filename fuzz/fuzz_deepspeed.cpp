// Fuzzes DeepSpeed files: the first byte chooses the ranks and who gave the config's settings, the rest is
// the file. Any exception but Error of kind config is a finding, and so is a config that does not read back.
#include "tensor_target.h"
#include "train/config_io.h"
#include "train/deepspeed/deepspeed.h"

using namespace vitrail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  DeepSpeedBase base;
  base.ranks = data[0] % 9;
  if (data[0] & 16) base.config.train.batch = 48;
  base.given_by = [&](const std::string& key) {
    return static_cast<GivenBy>((data[0] / 32 + key.size()) % 3);
  };
  try {
    const Json file = parse_deepspeed(fuzz::text_of(data + 1, size - 1), "input");
    const DeepSpeedReading reading = translate_deepspeed(file, "input", base);
    if (to_json(train_config_from_json(changed_settings(reading.config), "again")) != to_json(reading.config))
      std::abort();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kConfig) std::abort();
  }
  return 0;
}
