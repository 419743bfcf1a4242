// The plugin library of MPI: the table of functions by which the program reaches it.
#include "base/error.h"
#include "dist/mpi/pending_collective.h"
#include "dist/mpi_world.h"
#include "dist/transport.h"

namespace vitrail::mpi {

namespace {

class MpiCommunicator : public Communicator {
 public:
  explicit MpiCommunicator(std::shared_ptr<Group> group) : group_(std::move(group)) {}

  int rank() const override { return group_->rank; }
  int size() const override { return group_->size; }
  const char* transport() const override { return "mpi"; }

  std::unique_ptr<Pending> start(const Collective& collective) override {
    check_collective(collective, rank(), size());
    group_->library->throw_if_failed();
    return std::make_unique<PendingCollective>(group_, collective);
  }
  void poll() override { group_->library->move_on(); }

  // MPI_Comm_split waits without moving on what others may wait for: all come to it at the same time.
  std::unique_ptr<Communicator> split(int color, int key) override {
    barrier();
    MPI_Comm part = MPI_COMM_NULL;
    group_->library->check(MPI_Comm_split(group_->comm, color, key, &part), "MPI_Comm_split");
    return std::make_unique<MpiCommunicator>(std::make_shared<Group>(group_->library, part));
  }
  void abort(const std::string& why) override { group_->library->fail(why); }
  std::string failure() const override { return group_->library->failure(); }

 private:
  std::shared_ptr<Group> group_;
};

std::unique_ptr<Communicator> world() {
  const auto library = std::make_shared<Library>();
  MPI_Comm all = MPI_COMM_NULL;
  library->check(MPI_Comm_dup(MPI_COMM_WORLD, &all), "MPI_Comm_dup");
  return std::make_unique<MpiCommunicator>(std::make_shared<Group>(library, all));
}

// Asks MPI itself for its hosts: a resource manager may not say how many of its tasks a host has.
HostPlace host_place() {
  MPI_Comm host = MPI_COMM_NULL;
  HostPlace place;
  if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host) != MPI_SUCCESS)
    throw Error(ErrorKind::kComm, "MPI_Comm_split_type could not tell the ranks of this host");
  MPI_Comm_rank(host, &place.rank);
  MPI_Comm_size(host, &place.size);
  MPI_Comm_free(&host);
  return place;
}

// Open MPI goes on with its package and its build after the first comma.
std::string library_name() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string whole(text, static_cast<size_t>(length));
  return whole.substr(0, whole.find(','));
}

}  // namespace

}  // namespace vitrail::mpi

extern "C" [[gnu::visibility("default")]] const vitrail::mpi::Api* vitrail_mpi_api() {
  static const vitrail::mpi::Api api{VITRAIL_MPI_API, vitrail::mpi::world, vitrail::mpi::library_name,
                                     vitrail::mpi::host_place};
  return &api;
}
