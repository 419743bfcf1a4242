#include "data/loader.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/cores.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_text.h"
#include "base/thread_pool.h"
#include "base/timing.h"
#include "data/decoding_memory.h"

namespace vitrail {
namespace {

// The ring has one slot more than batches are prefetched: the one that the consumer reads.
int64_t slot_count(const LoaderSettings& settings) {
  return settings.receives ? 1 : settings.loader.prefetch + 1;
}

int64_t worker_count(const LoaderConfig& config) {
  if (config.workers > 0) return config.workers;
  return std::clamp<int64_t>(std::ssize(allowed_cores()) / 2, 1, 16);
}

double thread_seconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The samples that could not be read, as they travel with their batch.
std::string text_of(const std::vector<BadSample>& bad) {
  Json list = Json::array();
  for (const BadSample& sample : bad)
    list.push_back({sample.sample, sample.name, sample.reason, static_cast<int>(sample.error.kind()),
                    sample.error.message(), sample.error.hint(), sample.error.context()});
  return bad.empty() ? "" : json_text(list);
}

std::vector<BadSample> bad_of(const std::string& text) {
  std::vector<BadSample> bad;
  const Json list = text.empty() ? Json::array() : parse_json(text, "samples that could not be read");
  for (const Json& told : list) {
    Error error(static_cast<ErrorKind>(told[3].get<int>()), told[4], told[5]);
    const auto places = told[6].get<std::vector<std::string>>();
    for (auto place = places.rbegin(); place != places.rend(); ++place) error.at(*place);
    bad.push_back({told[0].get<int64_t>(), told[1], told[2], error});
  }
  return bad;
}

}  // namespace

Loader::Loader(const Dataset& dataset, LoaderSettings settings, Purpose purpose)
    : settings_(std::move(settings)),
      source_(dataset, settings_, purpose),
      slots_(static_cast<size_t>(slot_count(settings_))) {
  VT_CHECK(!settings_.receives || settings_.relay, "a loader that receives batches has nobody to ask");
  VT_CHECK(settings_.receives || slots_.size() >= 2, "%zu slots: the one in use and the next", slots_.size());
  for (Slot& slot : slots_) {
    slot.memory = Buffer(BatchParts::bytes(settings_), Category::kStaging, settings_.memory);
    slot.parts = BatchParts::over(slot.memory.data(), settings_);
    slot.chunks_left = source_.chunks();
  }
  start_workers();
}

Loader::~Loader() {
  stop_workers();
}

size_t Loader::staging_bytes(const LoaderSettings& settings) {
  return static_cast<size_t>(slot_count(settings)) * BatchParts::bytes(settings);
}

size_t Loader::decoding_bytes(const LoaderConfig& config, const Dataset& dataset) {
  return static_cast<size_t>(worker_count(config)) * largest_decoding(dataset);
}

void Loader::start_workers() {
  const int64_t wanted = settings_.receives ? 0 : worker_count(settings_.loader);
  // One of the ranks that share images decodes for all, on the cores of all: its workers are not bound to
  // its own.
  const BoundThread unbound(allowed_cores());
  try {
    for (int64_t i = 0; i < wanted; ++i) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    const size_t started = workers_.size();
    stop_workers();
    throw thread_error(error, started, static_cast<size_t>(wanted), "loader threads",
                       "fewer workers (loader.workers)");
  } catch (...) {  // no memory for one more
    stop_workers();
    throw;
  }
}

void Loader::stop_workers() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  task_ready_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

// Returns whether there is no pause and the next chunk belongs to a batch that exists and has a free slot.
bool Loader::has_task() const {
  const int64_t oldest = next_ - (holding_ ? 1 : 0);
  const bool exists = source_.batches() < 0 || task_batch_ < source_.batches();
  return !paused_ && exists && task_batch_ < oldest + std::ssize(slots_);
}

void Loader::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    task_ready_.wait(lock, [this] { return stopping_ || has_task(); });
    if (stopping_) return;
    const int64_t batch = task_batch_, chunk = task_chunk_;
    if (++task_chunk_ == source_.chunks()) {
      task_chunk_ = 0;
      ++task_batch_;
    }
    run_task(batch, chunk, lock);
  }
}

void Loader::run_task(int64_t batch, int64_t chunk, std::unique_lock<std::mutex>& lock) {
  Slot& slot = slot_of(batch);
  ++running_;
  lock.unlock();
  const auto start = Clock::now();
  const double cpu = thread_seconds();
  std::vector<BadSample> bad;
  std::exception_ptr error;
  try {
    source_.fill_chunk(batch, chunk, slot.parts, bad);
  } catch (...) {
    error = std::current_exception();
  }
  const double used = thread_seconds() - cpu;
  lock.lock();
  --running_;
  work_seconds_ += seconds_since(start);
  cpu_seconds_ += used;
  std::ranges::move(bad, std::back_inserter(slot.bad));
  if (error && (!slot.error || chunk < slot.error_chunk)) {
    slot.error = error;
    slot.error_chunk = chunk;
  }
  if (--slot.chunks_left == 0 || (paused_ && running_ == 0)) batch_ready_.notify_all();
}

// Returns the slot of the batch given last to the workers.
void Loader::release_held() {
  if (!holding_) return;
  Slot& slot = slot_of(next_ - 1);
  slot.chunks_left = source_.chunks();
  slot.bad.clear();
  slot.error = nullptr;
  holding_ = false;
}

// One that receives its batches waits for nothing here.
void Loader::wait_for_next() {
  std::unique_lock lock(mutex_);
  release_held();
  task_ready_.notify_all();
  if (!settings_.receives) batch_ready_.wait(lock, [this] { return slot_of(next_).chunks_left == 0; });
  holding_ = true;
  ++next_;
}

// Gives a batch, or receives it: first its number, which must be the same everywhere, and how long the list
// of bad samples is.
void Loader::pass_batch(Slot& slot) {
  std::string bad = settings_.receives ? "" : text_of(slot.bad);
  int64_t header[] = {next_ - 1, std::ssize(bad)};
  settings_.relay->pass(std::as_writable_bytes(std::span(header)));
  VT_CHECK(header[0] == next_ - 1, "batch %lld in the place of %lld", static_cast<long long>(header[0]),
           static_cast<long long>(next_ - 1));
  settings_.relay->pass({slot.memory.data(), slot.memory.bytes()});
  if (header[1] == 0) return;
  bad.resize(static_cast<size_t>(header[1]));
  settings_.relay->pass(std::as_writable_bytes(std::span(bad)));
  if (settings_.receives) slot.bad = bad_of(bad);
}

const Batch& Loader::next() {
  if (failed_) std::rethrow_exception(failed_);
  VT_CHECK(source_.batches() < 0 || next_ < source_.batches(), "the evaluation has %lld batches",
           static_cast<long long>(source_.batches()));
  const auto start = Clock::now();
  wait_for_next();
  Slot& slot = slot_of(next_ - 1);
  try {
    if (slot.error) std::rethrow_exception(slot.error);
    if (settings_.relay) pass_batch(slot);
    wait_seconds_ += seconds_since(start);
    take_bad(slot);
  } catch (...) {
    failed_ = std::current_exception();
    throw;
  }
  shown_ = shown(next_ - 1);
  return shown_;
}

std::optional<Batch> Loader::peek() {
  if (failed_ || settings_.receives || (source_.batches() >= 0 && next_ >= source_.batches()))
    return std::nullopt;
  const std::lock_guard lock(mutex_);
  const Slot& slot = slot_of(next_);
  if (slot.chunks_left > 0 || slot.error) return std::nullopt;
  return shown(next_);
}

void Loader::take_bad(Slot& slot) {
  // Chunks finish in any order, so the report is sorted.
  std::ranges::sort(slot.bad, {}, &BadSample::sample);
  for (BadSample& bad : slot.bad) {
    if (!bad_indices_.insert(bad.sample).second) continue;
    if (settings_.on_bad) settings_.on_bad(bad);
    bad_.push_back(std::move(bad));
    if (settings_.limits_bad && std::ssize(bad_) > source_.bad_allowed())
      throw too_many_bad(bad_.size(), bad_.back().name, bad_.back().reason, settings_.loader);
  }
}

Batch Loader::shown(int64_t batch) {
  const BatchParts& parts = slot_of(batch).parts;
  const int64_t accumulation = source_.batches() < 0 ? settings_.accumulation : 1;
  const int64_t step = batch / accumulation;
  return {.index = batch,
          .step = step,
          .micro = batch % accumulation,
          .epoch = step / source_.steps_per_epoch(),
          .images = parts.images,
          .pixels = parts.pixels,
          .recipes = parts.recipes,
          .targets = parts.targets,
          .weights = parts.weights,
          .labels = parts.labels,
          .samples = parts.samples};
}

void Loader::seek(int64_t step) {
  VT_CHECK(step >= 0, "step %lld", static_cast<long long>(step));
  const int64_t target = step * (source_.batches() < 0 ? settings_.accumulation : 1);
  std::unique_lock lock(mutex_);
  if (target == next_ && !holding_ && !failed_) return;  // the batches in flight are already the right ones
  paused_ = true;
  batch_ready_.wait(lock, [this] { return running_ == 0; });
  for (Slot& slot : slots_) {
    slot.chunks_left = source_.chunks();
    slot.bad.clear();
    slot.error = nullptr;
  }
  next_ = task_batch_ = target;
  task_chunk_ = 0;
  holding_ = paused_ = false;
  failed_ = nullptr;
  task_ready_.notify_all();
}

double Loader::take_wait_seconds() {
  return std::exchange(wait_seconds_, 0.0);
}

double Loader::work_seconds() {
  std::lock_guard lock(mutex_);
  return std::exchange(work_seconds_, 0.0);
}

double Loader::cpu_seconds() {
  std::lock_guard lock(mutex_);
  return cpu_seconds_;
}

std::unique_ptr<Loader> make_train_loader(const Dataset& dataset, const LoaderSettings& settings) {
  return std::make_unique<Loader>(dataset, settings, Purpose::kTrain);
}

std::unique_ptr<Loader> make_eval_loader(const Dataset& dataset, const LoaderSettings& settings) {
  return std::make_unique<Loader>(dataset, settings, Purpose::kEval);
}

}  // namespace vitrail
