#include "train/device_transport.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include "base/json_text.h"
#include "base/process_mark.h"
#include "dist/nccl_world.h"
#include "train/agreement.h"

namespace vitrail {

namespace {

// Two streams of different ranks in one queue could wait for each other for ever; this many keep the streams
// of a few ranks apart.
constexpr int kQueues = 32;
constexpr const char* kQueuesVariable = "CUDA_DEVICE_MAX_CONNECTIONS";  // the driver's own

std::string text_of(const DeviceSeat& seat) {
  return json_text(Json{{"gpu", seat.gpu},
                        {"problem", seat.problem},
                        {"version", seat.version},
                        {"shares_gpus", seat.shares_gpus},
                        {"process", seat.process},
                        {"queues", seat.queues}});
}

DeviceSeat seat_from(const std::string& text) {
  const Json json = parse_json(text, "a rank's device");
  return {json.at("gpu").get<std::string>(),     json.at("problem").get<std::string>(),
          json.at("version").get<std::string>(), json.at("shares_gpus").get<bool>(),
          json.at("process").get<std::string>(), json.at("queues").get<int>()};
}

// Says why these ranks cannot use NCCL, and what to do; it is empty where they can.
struct Obstacle {
  std::string why, remedy;
};

Obstacle shared_gpu(const std::vector<DeviceSeat>& seats) {
  std::map<std::string, size_t> first;
  for (size_t r = 0; r < seats.size(); ++r) {
    const auto [other, alone] = first.emplace(seats[r].gpu, r);
    if (alone) continue;
    if (seats[r].shares_gpus &&
        (seats[r].process != seats[other->second].process || seats[r].queues >= kQueues))
      continue;
    if (seats[r].shares_gpus)
      return {strf("ranks %zu and %zu are threads of one process on the GPU %s, which needs %s=%d",
                   other->second, r, seats[r].gpu.c_str(), kQueuesVariable, kQueues),
              strf("%s=%d, or a process for each rank (mpirun)", kQueuesVariable, kQueues)};
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

// The driver's default where nothing is said.
int queues_by(const Variables& variables) {
  const char* text = variables ? variables(kQueuesVariable) : nullptr;
  int queues = DeviceSeat{}.queues;
  if (text) std::from_chars(text, text + std::strlen(text), queues);
  return queues;
}

}  // namespace

TransportDecision decide_transport(const std::vector<DeviceSeat>& seats, MeshTransport wanted) {
  if (wanted == MeshTransport::kStaged) return {};
  const Obstacle found = obstacle(seats);
  if (found.why.empty()) return {true};
  if (wanted == MeshTransport::kNccl)
    throw Error(ErrorKind::kDevice, "mesh.transport is nccl, which cannot be used: " + found.why,
                found.remedy);
  for (const DeviceSeat& seat : seats)
    if (!seat.gpu.empty())
      return {false, "values travel through the host (staged), not by NCCL: " + found.why};
  return {};
}

bool ranks_share_gpus(const Variables& variables) {
  const char* shared = variables ? variables(kSharedGpuVariable) : nullptr;
  return shared && std::string_view(shared) == "1";
}

std::string join_devices(RankContext& rank, MeshCommunicators& ranks, MeshTransport wanted,
                         const Variables& variables) {
  Device& device = *rank.hardware;
  DeviceSeat seat;
  // A process that computes on its cores does not even look for NCCL.
  if (!device.shares_host_memory()) {
    const NcclReport nccl = nccl_report(variables);
    const ProcessMark process = ProcessMark::current();
    seat = {process.host + " " + device.identity(),
            nccl.problem,
            nccl.version,
            nccl.shares_gpus,
            process.text(),
            queues_by(variables)};
  }
  std::vector<DeviceSeat> seats;
  for (const std::string& text : from_all(ranks.world(), text_of(seat))) seats.push_back(seat_from(text));
  const auto beside = std::count_if(seats.begin(), seats.end(), [&](const DeviceSeat& other) {
    return other.gpu == seat.gpu && other.process == seat.process;
  });
  rank.shares_queues = !seat.gpu.empty() && beside > 1;
  const TransportDecision decision = decide_transport(seats, wanted);
  if (decision.nccl)
    ranks.use(nccl_transport({.variables = variables, .use_device = [&device] { device.make_current(); }}));
  return decision.note;
}

}  // namespace vitrail
