// The clock of this test program. While a HurriedClock lives, every look of its thread at the time is twenty
// seconds after the one before, so that what is shown from time to time is shown whenever it may be.
#pragma once

namespace vitrail::cli {

class HurriedClock {
 public:
  HurriedClock();
  ~HurriedClock();
  HurriedClock(const HurriedClock&) = delete;
  HurriedClock& operator=(const HurriedClock&) = delete;
};

}  // namespace vitrail::cli
