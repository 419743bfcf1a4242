#include "backend/kernel_table.h"

#include <algorithm>

namespace vitrail {

namespace {
bool before(const KernelTable::Row& row, const TuneKey& key) {
  return row.key < key;
}

constexpr uint64_t kFnvPrime = 0x100000001b3;
void mix(uint64_t& hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kFnvPrime;
  hash = (hash ^ 0xff) * kFnvPrime;  // the end of the text
}
}  // namespace

void KernelTable::set(Row row) {
  const auto at = std::lower_bound(rows_.begin(), rows_.end(), row.key, before);
  if (at != rows_.end() && at->key == row.key)
    *at = std::move(row);
  else
    rows_.insert(at, std::move(row));
}

const std::vector<std::string>* KernelTable::find(const TuneKey& key) const {
  const auto at = std::lower_bound(rows_.begin(), rows_.end(), key, before);
  return at != rows_.end() && at->key == key ? &at->kernels : nullptr;
}

bool KernelTable::names(std::string_view kernel) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
    return std::find(row.kernels.begin(), row.kernels.end(), kernel) != row.kernels.end();
  });
}

uint64_t KernelTable::hash() const {
  if (rows_.empty()) return 0;
  uint64_t hash = 0xcbf29ce484222325;
  for (const Row& row : rows_) {
    mix(hash, row.key.op);
    for (const int64_t number :
         {row.key.m, row.key.n, row.key.k, int64_t{row.key.threads}, int64_t{row.key.level}})
      mix(hash, std::to_string(number));
    for (const std::string& kernel : row.kernels) mix(hash, kernel);
  }
  return hash;
}

}  // namespace vitrail
