#include "train/loop.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/timing.h"
#include "telemetry/format.h"

namespace vitrail {

bool StopRule::out_of_time() const {
  return max_minutes > 0 && seconds_since(place.started) >= max_minutes * 60;
}

Loop::Loop(const Parts& parts, Progress& progress)
    : parts_(parts), progress_(progress), times_(parts.team.size()), speeds_(parts.team.size()) {}

void Loop::run() {
  const int64_t first = progress_.step;
  meter_ = RateMeter();
  parts_.feed.seek(first);
  if (first > 0 && progress_.eval_due) conclude_step();
  double no_loss = 0;
  if (!parts_.team.alone()) agree(no_loss, false, nullptr);
  times_.start();
  while (!done() && !is_stopped()) one_update();
  if (patience_exhausted()) require_learned(true);
}

// A run that passes over every image would otherwise end like one that has learned. Broken images among
// others are no reason to end before a whole pass has found nothing else, nor are those of the last updates
// of a run that was resumed: it had learned before.
void Loop::require_learned(bool ends) const {
  const bool passed = updates_ >= parts_.setup.steps_per_epoch, whole_run = updates_ >= progress_.step;
  if (has_learned() || !(passed || (ends && whole_run))) return;
  throw Error(
      ErrorKind::kData,
      strf("none of the images of %s could be read: the run has learned nothing",
           format_count(updates_, "update").c_str()),
      strf("vitrail data check lists what is wrong with them; loader.max_bad_fraction, now %g, lets a "
           "run pass over so many",
           parts_.setup.config.loader.max_bad_fraction));
}

// A time limit ends a run after this process's first update at the earliest.
bool Loop::is_stopped() const {
  if (!parts_.team.alone()) return votes_.asked || (started_ && votes_.out_of_time);
  return parts_.stop.asked() || time_is_over();
}

// Sums the loss over ranks and, in the same exchange, finds what any of them asks for, so that all act alike
// whatever their own clocks and signals say, and where each one's time went: a slot of the sum is one rank's.
void Loop::agree(double& loss, bool skipped, const StepTimes::Numbers* mine) {
  const auto start = Clock::now();
  const Mesh& mesh = parts_.setup.step.distribution.mesh;
  const bool counts = mesh.coordinate(Axis::kTensor) == 0 && mesh.coordinate(Axis::kSequence) == 0;
  Pulse* const pulse = parts_.step.rank().pulse;
  const ReductionScope reducing(pulse);
  if (pulse) pulse->at_node("loss and votes");
  constexpr size_t kVotes = 7;
  std::vector<double> numbers = {counts ? loss : 0.0,
                                 parts_.stop.asked() ? 1.0 : 0.0,
                                 parts_.stop.out_of_time() ? 1.0 : 0.0,
                                 parts_.saves.time_is_over() ? 1.0 : 0.0,
                                 static_cast<double>(parts_.bad.unreported()),
                                 skipped ? 1.0 : 0.0,
                                 static_cast<double>(parts_.feed.take_images())};
  numbers.resize(kVotes + (mine ? StepTimes::kNumbers * static_cast<size_t>(parts_.team.size()) : 0));
  const auto slots = std::span(numbers).subspan(kVotes);
  if (mine)
    std::ranges::copy(*mine,
                      slots.begin() + parts_.team.rank() * static_cast<std::ptrdiff_t>(StepTimes::kNumbers));
  parts_.team.sum(numbers);
  loss = numbers[0];
  votes_ = {numbers[1] > 0, numbers[2] > 0, numbers[3] > 0, numbers[5] > 0};
  images_ += static_cast<int64_t>(numbers[6]);
  if (mine) times_.add(slots);
  times_.exchanged(seconds_since(start));
  if (mine) watch_speed(slots);
  if (numbers[4] > 0) parts_.bad.exchange();
}

// All ranks see the same times, and so the same slow rank.
void Loop::watch_speed(std::span<const double> times_of_all) {
  for (const SlowRank& slow : speeds_.add(StepTimes::computes_of(times_of_all))) {
    parts_.journal.event("slow_rank", slow.text());
    if (parts_.slowed) parts_.slowed();
  }
  if (speeds_.just_known() && parts_.known) parts_.known(speeds_.usual());
}

// Runs one update, top to bottom.
void Loop::one_update() {
  const auto start = Clock::now();
  begin_update();
  parts_.feed.run_update(progress_.step);
  const double lr = rate_at(progress_.step);
  if (Pulse* const pulse = parts_.step.rank().pulse) pulse->enter(RankPhase::kUpdate);
  const StepValues values = parts_.step.run_update(lr);
  double loss = parts_.step.take_loss();
  ++progress_.step;
  if (parts_.stop.hooks.disturb) parts_.stop.hooks.disturb(parts_.step, progress_.step);
  const double data_wait_s = parts_.feed.take_wait_seconds();
  conclude_update(loss, values.skip != 0, data_wait_s);
  ++updates_;
  require_learned(last_step());
  TrainStatus status = status_of(values, loss, lr, data_wait_s);
  status.interval_s = seconds_since(start);
  parts_.seconds.add(status.interval_s);
  if (!std::exchange(started_, true)) log_start(status.interval_s);
  const auto paused = Clock::now();
  const bool back = rolled_back(values);
  parts_.journal.step(status);
  if (back) return;
  if (log_due()) log(status);
  times_.pause();
  progress_.eval_due = eval_due();
  conclude_step();
  parts_.saves.save_if_due(progress_, votes_.save_time,
                           [this] { return has_learned() && parts_.skips.last_was_made(); });
  times_.resume();
  meter_.pause(seconds_since(paused));
}

// Whatever keeps, shows or judges a state comes after a comparison: a checkpoint, an evaluation, the end, a
// return to a checkpoint at another learning rate.
bool Loop::compare_due() const {
  return parts_.replicas &&
         (parts_.replicas->due(progress_.step) || votes_.skipped || votes_.asked || votes_.out_of_time ||
          last_step() || eval_due() || parts_.saves.is_due(progress_, votes_.save_time));
}

// Goes back to a checkpoint where a comparison of replicas or skipped updates ask for it.
bool Loop::rolled_back(const StepValues& values) {
  const bool back =
      (compare_due() && parts_.replicas->handle(progress_)) || parts_.skips.handle(values, progress_);
  if (!back) return false;
  parts_.feed.seek(progress_.step);
  times_.start();
  return true;
}

void Loop::begin_update() {
  parts_.feed.take_wait_seconds();  // counts from here
  if (Pulse* const pulse = parts_.step.rank().pulse) pulse->begin_step(progress_.step + 1);
}

// Ends an update with what ranks agree on after it.
void Loop::conclude_update(double& loss, bool skipped, double data_wait_s) {
  const StepTimes::Numbers mine = times_.end_update(parts_.step.take_collective_times(), data_wait_s);
  if (parts_.team.alone()) {
    votes_.save_time = parts_.saves.time_is_over();
    times_.add(mine);
    images_ += parts_.feed.take_images();
  } else {
    agree(loss, skipped, &mine);
  }
  meter_.step(config().batch);
  if (Pulse* const pulse = parts_.step.rank().pulse) log_events(*pulse);
}

void Loop::log(const TrainStatus& line) {
  parts_.journal.log(line);
  if (!times_count()) return;
  const TimingStatus status = times_.take(progress_.step);
  parts_.journal.timing(status);
  if (config().breakdown) parts_.journal.note(breakdown_line(status));
}

// The start of each rank is gathered once, after the first update.
void Loop::log_start(double first_update_s) {
  if (!times_count()) return;
  parts_.start.add("first update", first_update_s);
  std::vector<double> mine;
  for (const auto& [name, seconds] : parts_.start.phases()) mine.push_back(seconds);
  const std::vector<double> all = parts_.team.gather(mine);
  StartStatus status{.step = progress_.step - 1, .phases = {}, .time = unix_seconds()};
  for (size_t p = 0; p < mine.size(); ++p) {
    status.phases.push_back({parts_.start.phases()[p].first, {}});
    for (size_t at = p; at < all.size(); at += mine.size()) status.phases[p].seconds.push_back(all[at]);
  }
  parts_.journal.start(status);
  if (config().breakdown) parts_.journal.note(start_line(status));
}

// Ends the pulse's step, and logs what other ranks did that this log should hold, as a pause of one.
void Loop::log_events(Pulse& pulse) {
  pulse.end_step();
  for (const std::string& text : pulse.take_log_events()) parts_.journal.event("slow_rank", text);
}

// Evaluates after a step and ends its epoch. If it is interrupted, it is repeated when the run is resumed.
void Loop::conclude_step() {
  if (progress_.eval_due) parts_.evaluator->run(progress_);
  progress_.eval_due = false;
  if (epoch_ends() || last_step())
    parts_.journal.finish_epoch(parts_.setup.epoch_of(progress_.step - 1), rate_at(progress_.step - 1));
}

TrainStatus Loop::status_of(const StepValues& values, double loss, double lr, double data_wait_s) {
  const RunSetup& setup = parts_.setup;
  TrainStatus status;
  status.step = progress_.step;
  status.total_steps = setup.total_steps;
  status.epoch = setup.epoch_of(progress_.step - 1);
  status.total_epochs = config().steps > 0 ? 0 : config().epochs;
  status.loss = loss;
  status.lr = lr;
  status.grad_norm = values.grad_norm;
  status.images_per_second = meter_.images_per_second();
  status.eta_s = meter_.eta_seconds(setup.total_steps - progress_.step);
  status.data_wait_s = data_wait_s;
  status.memory_bytes = parts_.memory_bytes;
  status.skipped = parts_.skips.skipped_after(values);
  if (setup.step.loss_scale.dynamic) status.loss_scale = parts_.step.loss_scale();
  status.time = unix_seconds();
  return status;
}

double Loop::rate_at(int64_t step) const {
  const RunSetup& setup = parts_.setup;
  return progress_.lr_factor * lr_at(setup.config.schedule, setup.config.optim.lr, step, setup.total_steps);
}

bool Loop::patience_exhausted() const {
  return config().patience > 0 && progress_.evals_since_best >= config().patience;
}

}  // namespace vitrail
