#include "train/picture_data.h"

#include "data/picture_form.h"
#include "runtime/transfer.h"

namespace vitrail {

void bring_pictures(const RunSetup& setup, const TrainStep& step) {
  const PictureForm form = setup.step.pictures;
  if (form == PictureForm::kFloats) return;
  const LoaderSettings settings = setup.loader_settings(Purpose::kTrain);
  const std::vector<float> levels = picture_levels(settings);
  write_bytes(step.rank(), step.store().view(kPictureLevels), std::as_bytes(std::span(levels)));
  if (form != PictureForm::kStored) return;
  const TensorView stored = step.store().view(kStoredPixels);
  read_stored_pixels(settings, *setup.data.train, [&](size_t offset, std::span<const uint8_t> pixels) {
    VT_CHECK(offset + pixels.size() <= stored.desc().bytes(), "%zu pixels for %s", offset + pixels.size(),
             to_string(stored.desc()).c_str());
    step.rank().hardware->upload(static_cast<std::byte*>(stored.data()) + offset, pixels.data(),
                                 pixels.size());
  });
}

}  // namespace vitrail
