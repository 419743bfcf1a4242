// The updates of a planned step: on the device alone, or with its state on the host; what they count.
#include "runtime/transfer.h"
#include "train/train_step.h"

namespace vitrail {

StepValues TrainStep::run_update(double lr) {
  double hyper[kHyperCount] = {};
  hyper[kHyperLr] = lr;
  hyper[kHyperDecay] = 1;
  hyper[kHyperEma] = plan_.config.optim.ema_decay;
  write_bytes(rank_, update_.input("hyper"), std::as_bytes(std::span(hyper)));
  update_.run();
  if (!offload_) clear_sums_of_others();
  double control[kControlCount];
  read_doubles(rank_, update_.output("control"), control);
  if (offload_) update_on_host(control, hyper);
  return StepValues::read(control);
}

// The device's program has decided; nothing of an update that is skipped needs to travel.
void TrainStep::update_on_host(std::span<const double> control, std::span<const double> hyper) {
  if (StepValues::read(control.data()).skip != 0) {
    offload_->skip();
  } else {
    offload_->update(control, hyper);
    if (gather_) gather_->run();
  }
  clear_sums_of_others();
}

// An update zeroes the sums it has used. With ZeRO and whole sums these are of a rank's own piece; what it
// has added up for the others is handed over by then.
void TrainStep::clear_sums_of_others() {
  const bool whole = plan_.config.zero == 1 || plan_.config.whole_sums;
  if (plan_.config.zero == 0 || !whole || !(last_micro_ || plan_.pipelined)) return;
  for (const PersistentValue& value : store_.layout().values())
    if (value.is_container && value.category == Category::kGradients)
      rank_.hardware->clear(store_.view(value).data(), value.desc.bytes());
}

// With an offload, evaluations of the averages take the place of the weights that the device computes with.
void TrainStep::compute_with(bool average) {
  if (!offload_ || average == averaged_) return;
  offload_->load(average);
  if (gather_) gather_->run();
  averaged_ = average;
}

std::array<double, kUpdateCounters> TrainStep::update_counters() const {
  std::array<double, kUpdateCounters> counters;
  read_doubles(rank_, store_.view(kUpdateCounterState), counters);
  return counters;
}

double TrainStep::loss_scale() const {
  double scale[1];
  read_doubles(rank_, store_.view(kLossScaleState), scale);
  return scale[0];
}

}  // namespace vitrail
