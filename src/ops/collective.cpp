#include "ops/collective.h"

#include <numeric>

#include "ops/expect.h"

namespace vitrail {

std::string_view CollectiveOp::kind() const {
  constexpr std::string_view kKinds[] = {"all_reduce", "reduce_scatter", "all_gather",
                                         "all_to_all", "send",           "receive"};
  return kKinds[static_cast<size_t>(form_.kind)];
}

std::vector<TensorDesc> CollectiveOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, form_.kind == CollectiveKind::kReceive ? 0 : 1);
  if (form_.in_place || form_.kind == CollectiveKind::kSend) return {};
  return {form_.kind == CollectiveKind::kAllReduce ? ins[0] : form_.out};
}

int CollectiveOp::in_place_input() const {
  return form_.kind == CollectiveKind::kAllReduce && !form_.in_place ? 0 : -1;
}

std::span<const int> CollectiveOp::updates() const {
  return first_inputs(form_.in_place ? 1 : 0);
}

std::string CollectiveOp::attributes() const {
  const std::string peer =
      form_.is_pair() ? strf("=%d%s", form_.peer, form_.channel == 1 ? " back" : "") : std::string();
  return to_string(form_.axes) + peer + (form_.started ? " started" : "");
}

double CollectiveOp::bytes_sent(DescSpan ins, int ranks) const {
  if (form_.kind == CollectiveKind::kReceive) return 0;
  if (form_.kind == CollectiveKind::kSend) return static_cast<double>(ins[0].bytes());
  const size_t all = form_.kind == CollectiveKind::kAllToAll ? form_.counts.size() / 2 : form_.counts.size();
  const auto elems = static_cast<double>(std::accumulate(
      form_.counts.begin(), form_.counts.begin() + static_cast<std::ptrdiff_t>(all), size_t{0}));
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  const double times = form_.kind == CollectiveKind::kAllReduce ? 2 : 1;
  return times * share * elems * static_cast<double>(size_of(ins[0].dtype));
}

}  // namespace vitrail
