#include "api/inference_ranks.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "plan/devices.h"
#include "train/agreement.h"
#include "vitrail/version.h"

namespace vitrail {

EngineOptions InferenceRank::on_rank(EngineOptions options) const {
  options.rank = context;
  options.distribution = distribution;
  options.batch = std::max<int64_t>(options.batch, distribution.mesh.size(Axis::kData));
  if (threads > 0) options.threads = threads;
  return options;
}

InferenceRanks::InferenceRanks(World world, const MeshConfig& mesh, const std::function<int64_t()>& heads)
    : world_(std::move(world)),
      mesh_(resolved(mesh, world_.size, heads)),
      leads_(world_.ranks[0]->rank() == 0) {}

std::vector<std::string> InferenceRanks::from_leader(std::vector<std::string> own) {
  if (!has_processes()) return own;
  std::string joined;
  for (const std::string& text : own) joined += text + '\0';
  joined = from_first(*world_.ranks[0], joined);
  std::vector<std::string> texts;
  for (size_t at = 0; at < joined.size(); at += texts.back().size() + 1)
    texts.emplace_back(joined.c_str() + at);
  return texts;
}

void InferenceRanks::require_same(Json facts) {
  if (!has_processes()) return;
  facts["the program"] = std::string("Vitrail ") + version();
  facts["--mesh"] = mesh_text(mesh_);
  require_same_facts(*world_.ranks[0], facts);
}

InferenceRank InferenceRanks::rank_of(RankContext& context, const EngineOptions& engine) const {
  InferenceRank rank{.context = &context};
  if (!context.ranks) return rank;
  rank.distribution = {.mesh = context.ranks->mesh(), .tokens_on_tp = mesh_.tokens_on_tp};
  rank.threads = engine.threads > 0 ? engine.threads : world_.seat().threads();
  return rank;
}

void InferenceRanks::run(const InferencePlace& place, const std::function<void(InferenceRank&)>& body) {
  std::mutex mutex;
  std::optional<Error> stopped;
  run_ranks({.worlds = std::move(world_.ranks),
             .mesh = mesh_,
             .device = [&](int i) { return used_as(place.device(world_.seat().after(i)), place.engine); },
             .sharing = world_.local_size,
             .overlapping = world_.overlapping,
             .heartbeat = place.heartbeat,
             .variables = place.variables,
             .on_note = place.on_note},
            [&](RankContext& context) {
              const PhaseScope computing(context.pulse, RankPhase::kEvaluation);
              InferenceRank rank = rank_of(context, place.engine);
              try {
                body(rank);
              } catch (const Error& error) {
                if (!context.ranks || error.kind() != ErrorKind::kStopped) throw;
                const std::lock_guard lock(mutex);
                stopped = error;
              }
            });
  if (stopped) throw Error(*stopped);
}

}  // namespace vitrail
