#include "dist/mpi/round.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace vitrail::mpi {

namespace {
constexpr size_t kMostBytes = size_t{1} << 30;  // of one message: MPI counts in int
}

Round::~Round() {
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    if (expected_[i] >= 0) MPI_Cancel(&requests_[i]);
    MPI_Request_free(&requests_[i]);
  }
}

void Round::send(const void* from, size_t count, int to) {
  const size_t bytes = count * element_;
  for (size_t at = 0; at < bytes; at += kMostBytes) {
    const int part = static_cast<int>(std::min(kMostBytes, bytes - at));
    MPI_Request request = MPI_REQUEST_NULL;
    library_.check(MPI_Isend(static_cast<const char*>(from) + at, part, MPI_BYTE, to, tag_, comm_, &request),
                   "MPI_Isend");
    requests_.push_back(request);
    expected_.push_back(-1);
  }
}

void Round::receive(void* to, size_t count, int from) {
  const size_t bytes = count * element_;
  for (size_t at = 0; at < bytes; at += kMostBytes) {
    const int part = static_cast<int>(std::min(kMostBytes, bytes - at));
    MPI_Request request = MPI_REQUEST_NULL;
    library_.check(MPI_Irecv(static_cast<char*>(to) + at, part, MPI_BYTE, from, tag_, comm_, &request),
                   "MPI_Irecv");
    requests_.push_back(request);
    expected_.push_back(part);
  }
}

// Each rank begins with the one after it, so that not all send to the same one at first.
void Round::send_pieces(const void* from, const Counts& counts) {
  for (int d = 1; d < size_; ++d) {
    const int r = (rank_ + d) % size_;
    const size_t first = std::accumulate(counts.begin(), counts.begin() + r, size_t{0});
    send(static_cast<const char*>(from) + first * element_, counts[static_cast<size_t>(r)], r);
  }
}

void Round::receive_pieces(void* to, const Counts& counts) {
  auto* place = static_cast<char*>(to);
  for (int r = 0; r < size_; ++r) {
    if (r != rank_) receive(place, counts[static_cast<size_t>(r)], r);
    place += counts[static_cast<size_t>(r)] * element_;
  }
}

void Round::send_everyone(const void* from, size_t count, int but) {
  for (int d = 1; d < size_; ++d)
    if (const int r = (rank_ + d) % size_; r != but) send(from, count, r);
}

void Round::barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  library_.check(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier");
  requests_.push_back(request);
  expected_.push_back(-1);
}

bool Round::test() {
  if (requests_.empty()) return true;
  statuses_.resize(requests_.size());
  int arrived = 0;
  const int code =
      MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &arrived, statuses_.data());
  if (code == MPI_ERR_IN_STATUS)
    for (const MPI_Status& status : statuses_)
      if (status.MPI_ERROR != MPI_ERR_PENDING) library_.check(status.MPI_ERROR, "MPI_Testall");
  library_.check(code, "MPI_Testall");
  if (!arrived) return false;
  check_sizes();
  requests_.clear();
  expected_.clear();
  return true;
}

void Round::check_sizes() const {
  for (size_t i = 0; i < statuses_.size(); ++i) {
    if (expected_[i] < 0) continue;
    int bytes = 0;
    MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes);
    VT_CHECK(bytes == expected_[i], "rank %d sent %d bytes where %d were expected", statuses_[i].MPI_SOURCE,
             bytes, expected_[i]);
  }
}

}  // namespace vitrail::mpi
