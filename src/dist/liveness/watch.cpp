#include "dist/liveness/watch.h"

#include <poll.h>

#include <filesystem>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/run_files.h"
#include "base/timing.h"

namespace vitrail::liveness {

namespace {
constexpr double kTurnPause = 1;  // seconds between turns after which this process itself was stopped
constexpr JsonLimits kLine{
    .max_bytes = size_t{1} << 20, .max_depth = 8, .comments = false, .kind = ErrorKind::kComm};
constexpr const char* kStop = R"({"is":"stop"})";

std::string secret_word() {
  std::random_device random;
  return strf("%08x%08x%08x", random(), random(), random());
}
}  // namespace

Watch::Watch(WatchSettings settings)
    : settings_(std::move(settings)),
      listener_(listen_on(settings_.host, settings_.port)),
      word_(secret_word()),
      address_(strf("%s:%d/%s", settings_.host.c_str(), port_of(listener_), word_.c_str())),
      table_(settings_.ranks, settings_.limits, now_s()),
      last_turn_(now_s()) {}

void Watch::turn(int milliseconds) {
  std::vector<pollfd> waiting = {{listener_.get(), POLLIN, 0}};
  for (const auto& [fd, peer] : peers_)
    waiting.push_back({fd, static_cast<short>(POLLIN | (peer.socket.wants_to_send() ? POLLOUT : 0)), 0});
  ::poll(waiting.data(), waiting.size(), milliseconds);
  const double time = now_s();
  if (time - last_turn_ > kTurnPause + milliseconds / 1e3) table_.forgive(time - last_turn_);
  last_turn_ = time;
  if (waiting[0].revents) accept();
  for (size_t i = 1; i < waiting.size(); ++i) {
    if (!waiting[i].revents) continue;
    const auto peer = peers_.find(waiting[i].fd);
    peer->second.socket.flush();
    read(peer->second);
    if (peer->second.socket.closed()) peers_.erase(peer);
  }
  if (time - last_ping_ >= settings_.limits.period()) {
    broadcast(R"({"is":"ping"})");
    last_ping_ = time;
  }
  table_.judge(time, [this](int rank) {
    for (const auto& [fd, peer] : peers_)
      if (rank >= peer.first && rank < peer.first + peer.count) return peer.socket.unacknowledged();
    return false;
  });
  announce();
}

void Watch::accept() {
  Descriptor fd = accept_one(listener_);
  if (fd.get() < 0) return;
  const int number = fd.get();
  peers_.emplace(number, Peer{LineSocket(std::move(fd))});
}

// What is no report of a rank ends its connection, as the end of the process would.
void Watch::read(Peer& peer) {
  try {
    for (const std::string& line : peer.socket.receive())
      take(peer, parse_json(line, "a rank's report", kLine));
  } catch (const std::exception&) {
    peer.first = -1;
    peer.socket = LineSocket(Descriptor());
    peer.socket.receive();
    return;
  }
  if (peer.socket.closed() && peer.first >= 0)
    for (int r = 0; r < peer.count; ++r) table_.gone(peer.first + r);
}

void Watch::greet(Peer& peer, const Json& message) {
  const int first = message.at("first").get<int>(), count = message.at("count").get<int>();
  VT_REQUIRE(message.at("word") == word_ && count > 0 && table_.has(first) && table_.has(first + count - 1),
             ErrorKind::kComm, "a process that is no rank of this job");
  for (int r = first; r < first + count; ++r)
    table_.join(r, message.at("host").get<std::string>(), message.at("pid").get<int64_t>(), now_s());
  peer.first = first;
  peer.count = count;
  if (stop_asked_) peer.socket.send(kStop);
  if (announced_) peer.socket.send(end_line());
}

void Watch::ask_to_stop() {
  if (!stop_asked_) broadcast(kStop);
  stop_asked_ = true;
}

void Watch::take(Peer& peer, const Json& message) {
  const std::string is = message.at("is").get<std::string>();
  if (is == "hello") return greet(peer, message);
  VT_REQUIRE(peer.first >= 0, ErrorKind::kComm, "a process that has not said who it is");
  if (is == "beat") {
    folder_ = message.at("folder").get<std::string>();
    for (const Json& report : message.at("ranks")) {
      const std::string silence = table_.report(report, now_s());
      if (silence.empty()) continue;
      if (settings_.told) settings_.told(silence);
      broadcast(json_text(Json{{"is", "news"}, {"text", silence}}));
    }
  } else if (is == "failed") {
    table_.failed(message.at("rank").get<int>(), message.at("code").get<int>(),
                  message.at("by_others").get<bool>(), message.at("text").get<std::string>(), now_s());
    peer.socket.send(R"({"is":"heard"})");
  } else if (is == "bye") {
    for (int r = 0; r < peer.count; ++r) table_.leave(peer.first + r);
    peer.socket.send(R"({"is":"heard"})");
  }
}

void Watch::broadcast(const std::string& line) {
  for (auto& [fd, peer] : peers_)
    if (peer.first >= 0) peer.socket.send(line);
}

void Watch::end(Verdict verdict) {
  table_.decide(std::move(verdict));
  announce();
}

void Watch::announce() {
  if (announced_ || !verdict()) return;
  announced_ = true;
  broadcast(end_line());
  write_crash_files();
}

std::string Watch::end_line() const {
  return json_text(
      Json{{"is", "end"}, {"rank", verdict()->rank}, {"code", verdict()->code}, {"text", verdict()->text}});
}

// A folder that is not there, or a full disk, does not hide why the job ended.
void Watch::write_crash_files() const {
  std::error_code problem;
  if (folder_.empty() || !std::filesystem::is_directory(folder_, problem)) return;
  const RunFiles files(folder_);
  std::filesystem::create_directory(files.at(RunFiles::kCrash), problem);
  for (const RankRow& row : table_.rows()) {
    if (!row.joined) continue;
    try {
      write_file(files.at(strf("%s/rank-%d.json", RunFiles::kCrash, row.rank)), crash_text(row, *verdict()));
    } catch (const Error&) {
      return;
    }
  }
}

}  // namespace vitrail::liveness
