#include "measure/dist_bench.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;
using Kind = Collective::Kind;

constexpr std::chrono::microseconds kNap{50};

double timed_sum(Communicator& comm, DType dtype, std::vector<char>& buffer) {
  comm.barrier();
  const auto start = Clock::now();
  comm.run({.kind = Kind::kAllReduce,
            .dtype = dtype,
            .in = buffer.data(),
            .out = buffer.data(),
            .counts = {buffer.size() / size_of(dtype)}});
  return seconds_since(start);
}

}  // namespace

bool goes_on(Communicator& comm, bool go) {
  int32_t flag = go;
  const auto pending =
      comm.start({.kind = Kind::kBroadcast, .dtype = DType::kI32, .out = &flag, .counts = {1}});
  while (!pending->poll()) std::this_thread::sleep_for(kNap);
  return flag != 0;
}

void follow(Communicator& comm, DType dtype, size_t count, const std::function<void()>& summed) {
  std::vector<char> buffer(count * size_of(dtype));
  while (goes_on(comm, false)) {
    timed_sum(comm, dtype, buffer);
    if (summed) summed();
  }
}

SummingRanks::SummingRanks(int ranks, DType dtype, size_t count)
    : others_(thread_communicators(ranks)),
      lead_(std::move(others_.front())),
      dtype_(dtype),
      buffer_(count * size_of(dtype)) {
  others_.erase(others_.begin());
  for (const auto& other : others_)
    threads_.emplace_back([&comm = *other, dtype, count] {
      try {
        follow(comm, dtype, count);
      } catch (const std::exception& error) {
        comm.abort(error.what());
      }
    });
}

SummingRanks::SummingRanks(std::unique_ptr<Communicator> lead, DType dtype, size_t count)
    : lead_(std::move(lead)), dtype_(dtype), buffer_(count * size_of(dtype)) {}

SummingRanks::~SummingRanks() {
  try {
    goes_on(*lead_, false);
  } catch (const Error&) {  // the others have failed and gone already
  }
}

double SummingRanks::once() {
  goes_on(*lead_, true);
  return timed_sum(*lead_, dtype_, buffer_);
}

DistBench::DistBench(DType dtype, size_t count) : dtype_(dtype), from_(count * size_of(dtype)), to_(from_) {
  rows_.push_back({});
}

void DistBench::add(std::unique_ptr<SummingRanks> ranks) {
  rows_.push_back({std::move(ranks)});
}

double DistBench::copy_once() {
  const auto start = Clock::now();
  std::memcpy(to_.data(), from_.data(), from_.size());
  return seconds_since(start);
}

void DistBench::round() {
  for (Row& row : rows_) row.seconds.push_back(row.ranks ? row.ranks->once() : copy_once());
}

void DistBench::forget() {
  for (Row& row : rows_) row.seconds.clear();
}

ordered_json DistBench::to_json() const {
  const double bytes = static_cast<double>(from_.size()), copy = spread_of(rows_[0].seconds).median;
  ordered_json json = {{"mb", bytes / 1e6}, {"dtype", to_string(dtype_)}, {"runs", rows_[0].seconds.size()}};
  for (const Row& row : rows_) {
    const Spread s = spread_of(row.seconds);
    ordered_json one = {{"ms_median", s.median * 1e3},
                        {"ms_p90", s.p90 * 1e3},
                        {"ms_min", s.min * 1e3},
                        {"ms_max", s.max * 1e3},
                        {"gb_per_s", bytes / s.median / 1e9}};
    if (row.ranks) {
      const int ranks = row.ranks->group().size();
      one.update({{"ranks", ranks},
                  {"bus_gb_per_s", 2.0 * (ranks - 1) / ranks * bytes / s.median / 1e9},
                  {"copies", s.median / copy}});
    }
    json[row.ranks ? row.ranks->group().transport() : "copy"] = one;
  }
  return json;
}

std::string DistBench::to_text() const {
  const double bytes = static_cast<double>(from_.size()), copy = spread_of(rows_[0].seconds).median;
  Table table({{"all-reduce over"},
               {"ranks", Align::kRight},
               {"median", Align::kRight},
               {"min", Align::kRight},
               {"p90", Align::kRight},
               {"bytes/s", Align::kRight},
               {"on the bus", Align::kRight},
               {"copies", Align::kRight}});
  for (const Row& row : rows_) {
    const Spread s = spread_of(row.seconds);
    std::vector<std::string> cells = {row.ranks ? row.ranks->group().transport() : "(a plain copy)",
                                      row.ranks ? std::to_string(row.ranks->group().size()) : "",
                                      format_seconds(s.median),
                                      format_seconds(s.min),
                                      format_seconds(s.p90),
                                      strf("%sB/s", format_si(bytes / s.median).c_str())};
    if (row.ranks) {
      const int ranks = row.ranks->group().size();
      cells.push_back(strf("%sB/s", format_si(2.0 * (ranks - 1) / ranks * bytes / s.median).c_str()));
      cells.push_back(strf("%.2f", s.median / copy));
    }
    table.row(std::move(cells));
  }
  return strf("%.4g MB of %s in place, %zu rounds; copies: the median in copies of the same bytes\n",
              bytes / 1e6, to_string(dtype_), rows_[0].seconds.size()) +
         table.text();
}

}  // namespace vitrail
