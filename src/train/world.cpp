#include "train/world.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "base/cores.h"
#include "base/error.h"
#include "base/process_mark.h"

namespace vitrail {

namespace {

// Ranks that mpirun or srun has bound to cores of their own do not share them. A line for the host, one for
// its cores.
int overlapping_ranks(Communicator& all, const HostPlace& place) {
  std::string mine = ProcessMark::current().host + "\n";
  for (const int core : allowed_cores()) mine += std::to_string(core) + " ";
  const std::string host = mine.substr(0, mine.find('\n') + 1);
  std::vector<std::vector<int>> cores;
  size_t own = 0;
  const std::vector<std::string> texts = from_all(all, mine);
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (!texts[rank].starts_with(host)) continue;
    if (static_cast<int>(rank) == all.rank()) own = cores.size();
    std::istringstream numbers(texts[rank].substr(host.size()));
    cores.emplace_back(std::istream_iterator<int>(numbers), std::istream_iterator<int>());
  }
  return std::min(ranks_on_cores_of(own, cores), place.size);
}

}  // namespace

World open_world(const WorldRequest& request) {
  const Variables& variables = request.variables;
  if (variables && started_by_srun_without_pmix(variables))
    throw Error(ErrorKind::kUsage, "srun has started several tasks without PMIx: each would be alone",
                "srun --mpi=pmix ...");
  World world;
  if (variables && (started_by_mpirun(variables) || started_by_srun(variables))) {
    VT_REQUIRE(request.ranks <= 1, ErrorKind::kUsage,
               "--ranks %d under mpirun: a process is one rank there; leave --ranks out", request.ranks);
    world.ranks.push_back(mpi_world());
    world.size = world.ranks[0]->size();
    world.transport = "mpi";
    const HostPlace place = mpi_host_place();
    world.local_size = place.size;
    world.local_rank = place.rank;
    world.overlapping = overlapping_ranks(*world.ranks[0], place);
    return world;
  }
  world.size = world.local_size = world.overlapping = request.ranks;
  if (request.ranks > 1) {
    world.ranks = thread_communicators(request.ranks);
    world.transport = "threads";
  } else {
    world.ranks.push_back(self_communicator());
  }
  return world;
}

std::string world_text(const World& world, const MeshConfig& mesh) {
  return strf("%d ranks (%s): %s, %s", world.size, world.transport, to_string(mesh_of(mesh, 0)).c_str(),
              world.size == world.local_size ? "all on this host"
                                             : strf("%d on this host", world.local_size).c_str());
}

std::vector<RankSeat> seats_of(World& world, const MeshConfig& mesh,
                               const std::function<DeviceInfo(int local)>& device) {
  std::vector<RankSeat> seats;
  for (size_t i = 0; i < world.ranks.size(); ++i)
    seats.push_back(seat_here(mesh_of(mesh, world.ranks[i]->rank()), device(static_cast<int>(i))));
  if (std::string_view(world.transport) == "mpi") {
    const std::vector<std::string> all = from_all(*world.ranks[0], seats[0].text());
    seats.clear();
    for (const std::string& text : all) seats.push_back(RankSeat::from(text));
  }
  if (mesh.bind) share_cores(seats);
  return seats;
}

void require_same_run(World& world, const Json& config, const std::string& program) {
  if (std::string_view(world.transport) != "mpi" || world.size < 2) return;
  Json facts = config_facts(config);
  facts["the program"] = program;
  require_same_facts(*world.ranks[0], facts);
}

}  // namespace vitrail
