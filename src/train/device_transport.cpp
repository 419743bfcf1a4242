#include "train/device_transport.h"

#include <map>

#include "base/json_text.h"
#include "base/process_mark.h"
#include "dist/nccl_world.h"
#include "train/agreement.h"

namespace vitrail {

namespace {

std::string text_of(const DeviceSeat& seat) {
  return json_text(Json{{"gpu", seat.gpu},
                        {"problem", seat.problem},
                        {"version", seat.version},
                        {"shares_gpus", seat.shares_gpus}});
}

DeviceSeat seat_from(const std::string& text) {
  const Json json = parse_json(text, "a rank's device");
  return {json.at("gpu").get<std::string>(), json.at("problem").get<std::string>(),
          json.at("version").get<std::string>(), json.at("shares_gpus").get<bool>()};
}

// Why these ranks cannot use NCCL, and what to do; nothing where they can.
struct Obstacle {
  std::string why, remedy;
};

Obstacle shared_gpu(const std::vector<DeviceSeat>& seats) {
  std::map<std::string, size_t> first;
  for (size_t r = 0; r < seats.size(); ++r) {
    const auto [other, alone] = first.emplace(seats[r].gpu, r);
    if (alone || seats[r].shares_gpus) continue;
    return {strf("ranks %zu and %zu share the GPU %s, which NCCL %s takes part in only from 2.30 on and with "
                 "NCCL_MULTI_RANK_GPU_ENABLE=1",
                 other->second, r, seats[r].gpu.c_str(), seats[r].version.c_str()),
            "one GPU a rank, or NCCL_MULTI_RANK_GPU_ENABLE=1"};
  }
  return {};
}

Obstacle obstacle(const std::vector<DeviceSeat>& seats) {
  for (size_t r = 0; r < seats.size(); ++r) {
    const DeviceSeat& seat = seats[r];
    if (seat.gpu.empty())
      return {strf("rank %zu has no GPU", r), "--device cuda on every rank, or mesh.transport auto"};
    if (!seat.problem.empty())
      return {strf("rank %zu: %s", r, seat.problem.c_str()),
              "pip install nvidia-nccl-cu13, or the system's libnccl2"};
    if (seat.version != seats[0].version)
      return {strf("rank %zu has NCCL %s, rank 0 has %s", r, seat.version.c_str(), seats[0].version.c_str()),
              "one version of it on every host"};
  }
  return shared_gpu(seats);
}

}  // namespace

TransportDecision decide_transport(const std::vector<DeviceSeat>& seats, MeshTransport wish) {
  if (wish == MeshTransport::kStaged) return {};
  const Obstacle found = obstacle(seats);
  if (found.why.empty()) return {true};
  if (wish == MeshTransport::kNccl)
    throw Error(ErrorKind::kDevice, "mesh.transport is nccl, which cannot be used: " + found.why,
                found.remedy);
  for (const DeviceSeat& seat : seats)
    if (!seat.gpu.empty())
      return {false, "values travel through the host (staged), not by NCCL: " + found.why};
  return {};
}

std::string join_devices(RankContext& rank, MeshCommunicators& ranks, MeshTransport wish,
                         const Variables& variables) {
  Device& device = *rank.hardware;
  DeviceSeat seat;
  // A process that computes on its cores does not even look for NCCL.
  if (!device.shares_host_memory()) {
    const NcclReport nccl = nccl_report(variables);
    seat = {ProcessMark::current().host + " " + device.identity(), nccl.problem, nccl.version,
            nccl.shares_gpus};
  }
  std::vector<DeviceSeat> seats;
  for (const std::string& text : from_all(ranks.world(), text_of(seat))) seats.push_back(seat_from(text));
  const TransportDecision decision = decide_transport(seats, wish);
  if (decision.nccl)
    ranks.use(nccl_transport({.variables = variables, .use_device = [&device] { device.make_current(); }}));
  return decision.note;
}

}  // namespace vitrail
