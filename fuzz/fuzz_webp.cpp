#include "image_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vitrail::fuzz::decode_and_preprocess({data, size});
  return 0;
}
