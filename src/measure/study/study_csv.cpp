// A study as CSV: file 003's columns, then ours.
#include <cmath>
#include <ctime>

#include "base/error.h"
#include "measure/study/study.h"

namespace vitrail {

namespace {

std::string timestamp(double unix_s) {
  if (!std::isfinite(unix_s)) return "";
  const auto seconds = static_cast<std::time_t>(unix_s);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

std::string cell(double value) {
  return std::isfinite(value) ? strf("%.9g", value) : "";
}

std::string quoted_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c == '\n' ? ' ' : c);
  return quoted + "\"";
}

// Several ranks of a host take its GPUs in turn.
std::string gpu_cells(const CaseResult& r, size_t rank) {
  if (r.gpus.empty()) return ",,,,,,";
  const GpuReading& g = r.gpus[rank % r.gpus.size()];
  constexpr double kMiB = 1024 * 1024;
  return strf("%lld,%s,%s,%s,%s,%s,%s", static_cast<long long>(g.id), quoted_cell(g.name).c_str(),
              cell(g.load).c_str(), cell((g.total_bytes - g.used_bytes) / kMiB).c_str(),
              cell(g.used_bytes / kMiB).c_str(), cell(g.total_bytes / kMiB).c_str(),
              cell(g.temperature).c_str());
}

// The epoch and the update as `predicted_s` has them, and how far the update is off.
std::string predicted_cells(const CaseResult& r, const EpochResult& epoch, double predicted_s) {
  return cell(epoch.updates * predicted_s) + "," + cell(predicted_s) + "," +
         cell(100 * (predicted_s / r.update_s - 1));
}

std::string csv_row(const CaseResult& r, size_t rank, const EpochResult& epoch, double updates,
                    double predicted_s) {
  const StudyCase& c = r.which;
  const RankTime& t = r.ranks[rank];
  return strf("%s,%zu,%lld,%s,%s,", timestamp(r.time).c_str(), rank, static_cast<long long>(epoch.epoch),
              cell(t.compute_s * updates).c_str(), gpu_cells(r, rank).c_str()) +
         strf("%s,%s,%s,%lld,%lld,%lld,%s,%lld,", quoted_cell(c.model).c_str(), c.device.c_str(),
              c.transport.c_str(), static_cast<long long>(c.ranks), static_cast<long long>(c.global_batch()),
              static_cast<long long>(c.batch), cell(c.fraction).c_str(),
              static_cast<long long>(c.repetition)) +
         strf("%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s\n", cell(epoch.seconds).c_str(), cell(r.update_s).c_str(),
              cell(r.images_per_s).c_str(), cell(t.compute_s).c_str(), cell(t.exposed_s).c_str(),
              cell(t.hidden_s).c_str(), cell(t.data_wait_s).c_str(), cell(t.imbalance_s).c_str(),
              cell(r.memory_bytes).c_str(), cell(epoch.train_loss).c_str(), cell(epoch.top1).c_str(),
              predicted_cells(r, epoch, predicted_s).c_str());
}

}  // namespace

std::string to_csv(const Study& study) {
  std::string text =
      "Timestamp,Rank,Epoch,Computation_Time,GPU_ID,GPU_Name,GPU_Load,GPU_Free_Mem_MB,GPU_Used_Mem_MB,"
      "GPU_Total_Mem_MB,GPU_Temp_C,model,device,transport,ranks,batch,batch_a_rank,fraction,repetition,"
      "epoch_s,update_s,images_per_s,compute_s,exposed_s,hidden_s,data_wait_s,imbalance_s,memory_bytes,"
      "train_loss,top1,predicted_epoch_s,predicted_update_s,predicted_error_percent\n";
  for (const CaseResult& r : study.results) {
    const double predicted_s = study.prediction.update_s(r.which);
    for (size_t rank = 0; r.done() && rank < r.ranks.size(); ++rank) {
      if (r.epochs.empty()) {
        const double updates =
            static_cast<double>(study.config.images) / static_cast<double>(r.which.global_batch());
        const EpochResult epoch{
            .epoch = 1, .seconds = updates * r.update_s, .train_loss = r.loss, .updates = updates};
        text += csv_row(r, rank, epoch, updates, predicted_s);
      }
      for (const EpochResult& epoch : r.epochs)
        text += csv_row(r, rank, epoch, epoch.seconds / r.update_s, predicted_s);
    }
  }
  return text;
}

}  // namespace vitrail
