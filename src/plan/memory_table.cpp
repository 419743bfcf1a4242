#include "plan/memory_table.h"

#include <algorithm>

#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

size_t sum_of(const NamedBytes& rows) {
  size_t total = 0;
  for (const auto& [name, bytes] : rows) total += bytes;
  return total;
}

NamedBytes memory_rows(const std::array<size_t, kCategoryCount>& by_category, size_t peak_bytes,
                       std::span<const Category> always) {
  NamedBytes rows;
  for (size_t i = 0; i < kCategoryCount; ++i) {
    const auto category = static_cast<Category>(i);
    if (by_category[i] > 0 || std::find(always.begin(), always.end(), category) != always.end())
      rows.emplace_back(to_string(category), by_category[i]);
  }
  rows.emplace_back("alignment and gaps", peak_bytes - std::min(sum_of(rows), peak_bytes));
  return rows;
}

std::string memory_table(const NamedBytes& rows, size_t peak_bytes, size_t indent) {
  Table table({{"memory"}, {"size", Align::kRight}, {"share", Align::kRight}, {""}});
  for (const auto& [name, bytes] : rows) {
    const double share = static_cast<double>(bytes) / static_cast<double>(peak_bytes);
    table.row({name, format_bytes(bytes), format_percent(share), format_bar(share, 20)});
  }
  table.rule();
  table.row({"peak", format_bytes(peak_bytes)});
  return table.text(indent);
}

}  // namespace vitrail
