#include "runtime/transfer.h"

namespace vitrail {

void write_bytes(RankContext& rank, const TensorView& target, std::span<const std::byte> bytes) {
  VT_CHECK(bytes.size() <= target.desc().bytes(), "%zu bytes for %s", bytes.size(),
           to_string(target.desc()).c_str());
  rank.hardware->upload(target.data(), bytes.data(), bytes.size());
}

void write_floats(RankContext& rank, const TensorView& target, std::span<const float> values) {
  const DType dtype = target.dtype();
  const size_t filled = values.size() * size_of(dtype), whole = target.desc().bytes();
  VT_CHECK(filled <= whole, "%zu floats for %s", values.size(), to_string(target.desc()).c_str());
  if (rank.hardware->shares_host_memory()) {
    convert_floats(values.data(), DType::kF32, target.data(), dtype, values.size());
  } else if (dtype == DType::kF32) {
    write_bytes(rank, target, std::as_bytes(values));
  } else {
    std::vector<std::byte> converted(filled);
    convert_floats(values.data(), DType::kF32, converted.data(), dtype, values.size());
    write_bytes(rank, target, converted);
  }
  rank.hardware->clear(static_cast<std::byte*>(target.data()) + filled, whole - filled);
}

void read_bytes(RankContext& rank, const TensorView& source, std::span<std::byte> target) {
  VT_CHECK(target.size() <= source.desc().bytes(), "%zu bytes of %s", target.size(),
           to_string(source.desc()).c_str());
  rank.hardware->download(target.data(), source.data(), target.size());
}

namespace {
template <typename T>
void read_as(RankContext& rank, const TensorView& source, std::span<T> target) {
  VT_CHECK(static_cast<int64_t>(target.size()) <= source.desc().elems(), "%zu elements of %s", target.size(),
           to_string(source.desc()).c_str());
  const DType wanted = DTypeOf<T>::value;
  if (source.dtype() == wanted) return read_bytes(rank, source, std::as_writable_bytes(target));
  if (rank.hardware->shares_host_memory())
    return convert_floats(source.data(), source.dtype(), target.data(), wanted, target.size());
  std::vector<std::byte> raw(target.size() * size_of(source.dtype()));
  read_bytes(rank, source, raw);
  convert_floats(raw.data(), source.dtype(), target.data(), wanted, target.size());
}
}  // namespace

void read_floats(RankContext& rank, const TensorView& source, std::span<float> target) {
  read_as(rank, source, target);
}

void read_doubles(RankContext& rank, const TensorView& source, std::span<double> target) {
  read_as(rank, source, target);
}

}  // namespace vitrail
