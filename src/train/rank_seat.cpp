#include "train/rank_seat.h"

#include <algorithm>

#include "base/cores.h"
#include "base/json.h"
#include "base/json_text.h"
#include "base/process_mark.h"
#include "base/text.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {

bool overlap(const std::vector<int>& a, const std::vector<int>& b) {
  return a.empty() || b.empty() || std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

// Returns the seats on the cores of `seat`, by rank; none where they cannot be shared out.
std::vector<RankSeat*> sharers_of(const RankSeat& seat, std::vector<RankSeat>& seats) {
  std::vector<RankSeat*> sharers;
  size_t threads = 0;
  for (RankSeat& other : seats) {
    if (other.host != seat.host || !overlap(other.cores, seat.cores)) continue;
    if (other.cores != seat.cores || !other.computes_there) return {};
    sharers.push_back(&other);
    threads += static_cast<size_t>(other.threads);
  }
  return threads > seat.cores.size() || sharers.size() < 2 ? std::vector<RankSeat*>() : sharers;
}

}  // namespace

void share_cores(std::vector<RankSeat>& seats) {
  std::vector<RankSeat> before = seats;
  for (size_t i = 0; i < seats.size(); ++i) {
    const std::vector<int>& cores = before[i].cores;
    size_t ahead = 0, all = 0;
    for (const RankSeat* sharer : sharers_of(before[i], before)) {
      if (sharer->rank < before[i].rank) ahead += static_cast<size_t>(sharer->threads);
      all += static_cast<size_t>(sharer->threads);
    }
    if (all == 0) continue;
    const size_t first = cores.size() * ahead / all,
                 end = cores.size() * (ahead + static_cast<size_t>(before[i].threads)) / all;
    seats[i].cores.assign(cores.begin() + static_cast<ptrdiff_t>(first),
                          cores.begin() + static_cast<ptrdiff_t>(end));
  }
}

RankSeat seat_here(const Mesh& mesh, const DeviceInfo& device) {
  return {mesh.rank,       ProcessMark::current().host, device.name, device.threads, coordinates_of(mesh),
          allowed_cores(), device.shares_host_memory};
}

std::string RankSeat::text() const {
  return json_text(Json{{"rank", rank},
                        {"host", host},
                        {"device", device},
                        {"threads", threads},
                        {"mesh", mesh},
                        {"cores", cores},
                        {"computes_there", computes_there}});
}

RankSeat RankSeat::from(const std::string& text) {
  const Json json = parse_json(text, "a rank's seat");
  return {json.at("rank").get<int>(),           json.at("host").get<std::string>(),
          json.at("device").get<std::string>(), json.at("threads").get<int>(),
          json.at("mesh").get<std::string>(),   json.at("cores").get<std::vector<int>>(),
          json.at("computes_there").get<bool>()};
}

std::string coordinates_of(const Mesh& mesh) {
  std::string text;
  for (const Axis axis : kAxes)
    if (mesh.size(axis) > 1)
      text += strf("%s%s=%d", text.empty() ? "" : " ", to_string(axis), mesh.coordinate(axis));
  return text;
}

std::string seat_table(const std::vector<RankSeat>& seats) {
  Table table(
      {{"rank", Align::kRight}, {"host"}, {"device"}, {"threads", Align::kRight}, {"cores"}, {"mesh"}});
  for (const RankSeat& seat : seats)
    table.row({std::to_string(seat.rank), seat.host, seat.device, std::to_string(seat.threads),
               cores_text(seat.cores), seat.mesh});
  std::string text = table.text(2);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace vitrail
