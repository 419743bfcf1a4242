#include "dist/liveness/heartbeat.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json_text.h"
#include "base/process_mark.h"
#include "base/text.h"
#include "base/timing.h"
#include "base/values.h"

namespace vitrail::liveness {

namespace {

constexpr double kLook = 0.05,
                 kLookOfMany = 0.005;  // seconds between two looks, and for each rank of the job
constexpr double kAnswer = 1;          // seconds to wait for the watch's answer
constexpr double kOwnPause = 1;  // seconds between two looks after which this process itself was stopped

struct Place {
  std::string host, word;
  int port = 0;
};

Place place_of(const std::string& address) {
  const size_t colon = address.rfind(':'), slash = address.rfind('/');
  VT_REQUIRE(colon != std::string::npos && slash != std::string::npos && colon < slash, ErrorKind::kComm,
             "%s is no address that ranks report to", quoted(address).c_str());
  const auto port = parse_integer(address.substr(colon + 1, slash - colon - 1));
  VT_REQUIRE(port && *port > 0 && *port < 65536, ErrorKind::kComm, "%s has no port", quoted(address).c_str());
  return {address.substr(0, colon), address.substr(slash + 1), static_cast<int>(*port)};
}

Json to_json(const Pulse::Event& event) {
  Json json = {
      {"time", event.time}, {"phase", to_string(event.phase)}, {"step", event.step}, {"node", event.node}};
  if (!event.text.empty()) json["text"] = event.text;
  return json;
}

}  // namespace

Heartbeat::Heartbeat(HeartbeatSettings settings)
    : settings_(std::move(settings)),
      pulses_(static_cast<size_t>(settings_.count)),
      seen_(static_cast<size_t>(settings_.count)),
      host_(ProcessMark::current().host) {
  const Place place = place_of(settings_.address);
  socket_ = std::make_unique<LineSocket>(connect_to(place.host, place.port, settings_.limits.silence()));
  socket_->send(json_text(Json{{"is", "hello"},
                               {"word", place.word},
                               {"first", settings_.first},
                               {"count", settings_.count},
                               {"host", host_},
                               {"pid", static_cast<int64_t>(::getpid())}}));
  last_received_ = now_s();
  for (Seen& seen : seen_) seen.since = last_received_;
  thread_ = std::thread([this] { run(); });
}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  thread_.join();
}

void Heartbeat::attach(Communicator* world) {
  const std::lock_guard lock(mutex_);
  worlds_.push_back(world);
  if (verdict_) world->abort(verdict_->text);
}
void Heartbeat::detach(Communicator* world) {
  const std::lock_guard lock(mutex_);
  std::erase(worlds_, world);
}
void Heartbeat::in_folder(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  folder_ = folder;
}

void Heartbeat::run() {
  const double look = std::max(kLook, kLookOfMany * settings_.ranks);
  double last = now_s();
  while (true) {
    pollfd waiting{socket_->fd(), POLLIN, 0};
    ::poll(&waiting, 1, static_cast<int>(std::lround(1e3 * look)));
    const double time = now_s();
    if (time - last > kOwnPause) last_received_ += time - last;
    last = time;
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    try {
      for (const std::string& line : socket_->receive()) take(parse_json(line, "the watch"));
    } catch (const std::exception&) {
      // What is not understood is not the watch.
    }
    if (socket_->closed() || time - last_received_ > settings_.limits.silence())
      lose_watch(!socket_->closed());
    if (!verdict_) beat();
    if (verdict_ && !left_ && settings_.force && time - decided_ > settings_.limits.grace())
      settings_.force(*verdict_);
    if (socket_->closed() && (left_ || verdict_)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Json Heartbeat::report_of(size_t local, bool& news) {
  const Pulse::State state = pulses_[local].state();
  Seen& seen = seen_[local];
  if (state.posts != seen.posts) {
    news = true;
    seen.posts = state.posts;
    seen.since = now_s();
  }
  Json events = Json::array();
  for (const Pulse::Event& event : pulses_[local].events(seen.events)) events.push_back(to_json(event));
  return {{"rank", settings_.first + static_cast<int>(local)},
          {"phase", to_string(state.phase)},
          {"step", state.step},
          {"made", state.made},
          {"node", state.node},
          {"idle_s", now_s() - seen.since},
          {"events", events}};
}

void Heartbeat::beat() {
  const bool due = now_s() - last_sent_ >= settings_.limits.period();
  bool news = due;
  for (size_t i = 0; i < pulses_.size() && !news; ++i) news = pulses_[i].state().posts != seen_[i].posts;
  if (!news) return;
  Json ranks = Json::array();
  for (size_t i = 0; i < pulses_.size(); ++i) ranks.push_back(report_of(i, news));
  socket_->send(json_text(Json{{"is", "beat"}, {"folder", folder_}, {"ranks", ranks}}));
  last_sent_ = now_s();
}

void Heartbeat::take(const Json& message) {
  last_received_ = now_s();
  const std::string is = message.at("is").get<std::string>();
  if (is == "heard") ++answers_;
  if (is == "heard") changed_.notify_all();
  if (is == "news" && settings_.first == 0) pulses_[0].add_log_event(message.at("text").get<std::string>());
  if (is == "stop" && settings_.stop) settings_.stop();
  if (is == "end")
    end({message.at("rank").get<int>(), message.at("code").get<int>(),
         message.at("text").get<std::string>()});
}

void Heartbeat::lose_watch(bool silent) {
  if (left_ || verdict_) return;
  const std::string who =
      settings_.watched_by < 0 ? "vitrail launch" : strf("the process of rank %d", settings_.watched_by);
  if (!silent)
    return end({settings_.watched_by, settings_.watched_by < 0 ? kCutOff : kKilled, who + " is gone"});
  const bool cut = socket_->unacknowledged();
  end({settings_.watched_by, cut ? kCutOff : kStopped,
       strf("%s %s for %.1f s", who.c_str(),
            cut ? "is cut off: it has acknowledged nothing" : "is stopped: it has said nothing",
            now_s() - last_received_)});
}

void Heartbeat::end(Verdict verdict) {
  if (verdict_) return;
  verdict_ = std::move(verdict);
  decided_ = now_s();
  for (Communicator* world : worlds_) world->abort(verdict_->text);
  changed_.notify_all();
}

void Heartbeat::say_and_wait(const std::string& line) {
  std::unique_lock lock(mutex_);
  const int before = answers_;
  socket_->send(line);
  changed_.wait_for(lock, std::chrono::duration<double>(kAnswer),
                    [&] { return answers_ != before || socket_->closed(); });
}

void Heartbeat::failed(int rank, int code, bool by_others, const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    if (verdict_ || socket_->closed()) return;
    pulse(rank).note("failed: " + text);
    beat();
  }
  say_and_wait(json_text(
      Json{{"is", "failed"}, {"rank", rank}, {"code", code}, {"by_others", by_others}, {"text", text}}));
}

void Heartbeat::leave() {
  {
    const std::lock_guard lock(mutex_);
    left_ = true;
    if (socket_->closed()) return;
    beat();
  }
  say_and_wait(R"({"is":"bye"})");
}

std::optional<Verdict> Heartbeat::verdict(double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [&] { return verdict_ || socket_->closed(); });
  return verdict_;
}

}  // namespace vitrail::liveness
