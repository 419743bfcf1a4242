// Reports as text and JSON what a planned run keeps on the host, and whether it fits there and on its device.
#include <nlohmann/json.hpp>

#include "measure/run_estimate.h"
#include "plan/largest_batch.h"
#include "plan/memory_table.h"
#include "telemetry/format.h"

namespace vitrail {

bool fits(const RunPlan& plan, const RunEstimate& e) {
  const bool host = e.host_available == 0 || sum_of(plan.host_rows()) <= e.host_available;
  return host && plan.peak_bytes() <= e.available;
}

std::string fits_text(const RunPlan& plan, const RunEstimate& e) {
  std::string text = strf("%s; %s available; largest micro-batch %s", fits(plan, e) ? "yes" : "no",
                          format_bytes(e.available).c_str(), largest_batch_text(e.largest).c_str());
  if (e.offload)
    text += strf("; %s would: %s there, %s on the host", e.offload->settings.c_str(),
                 format_bytes(e.offload->peak_bytes).c_str(), format_bytes(e.offload->host_bytes).c_str());
  return text;
}

std::string host_table(const RunPlan& plan, const RunEstimate& e) {
  const NamedBytes rows = plan.host_rows();
  if (rows.empty()) return "";
  const std::string room =
      e.host_available > 0 ? ", of " + format_bytes(e.host_available) + " that are free" : "";
  return strf("\nOn the host (mesh.offload=%s)%s\n", enum_name(plan.setup().config.mesh.offload),
              room.c_str()) +
         memory_table(rows, sum_of(rows));
}

void add_offload(nlohmann::ordered_json& json, const RunPlan& plan, const RunEstimate& e) {
  for (const auto& [name, bytes] : plan.host_rows()) json["host_memory"][name] = bytes;
  if (json.contains("host_memory")) {
    json["host_memory"]["peak"] = sum_of(plan.host_rows());
    json["host_page_locked"] = plan.step().page_locked_bytes();
    if (e.host_available > 0) json["host_memory_available"] = e.host_available;
  }
  if (e.offload)
    json["offload"].push_back({{"settings", e.offload->settings},
                               {"peak", e.offload->peak_bytes},
                               {"host", e.offload->host_bytes}});
}

std::string fit_warning(const RunPlan& plan, const RunEstimate& e) {
  if (fits(plan, e)) return "";
  if (plan.peak_bytes() <= e.available)
    return "warning: what lies on the host does not fit its memory; " + format_bytes(e.host_available) +
           " are free";
  std::string text = strf("warning: this does not fit %s%s; the largest micro-batch that does is %s",
                          e.calibrated ? "on " : "", e.where.c_str(), largest_batch_text(e.largest).c_str());
  if (e.offload) text += "; " + e.offload->settings + " would make it fit";
  return text;
}

}  // namespace vitrail
