#include "backend/cuda/device/tensor_maps.cuh"

#include <cudaTypedefs.h>

#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

// The function comes from the driver, which is not linked.
PFN_cuTensorMapEncodeTiled_v12000 encoder() {
  static const auto found = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result;
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                           &result),
          "looking for the driver's maps of matrices");
    VT_REQUIRE(result == cudaDriverEntryPointSuccess && function, ErrorKind::kDevice,
               "the driver makes no maps of matrices (cuTensorMapEncodeTiled): a newer one does");
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
  }();
  return found;
}

CUtensorMapDataType type_of(DType dtype) {
  if (dtype == DType::kU8) return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  return dtype == DType::kBF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
}

template <int kRank>
CUtensorMap encode(void* data, DType dtype, const cuuint64_t (&sizes)[kRank],
                   const cuuint64_t (&strides)[kRank - 1], const cuuint32_t (&box)[kRank],
                   CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B) {
  cuuint32_t every[kRank];
  for (cuuint32_t& step : every) step = 1;
  CUtensorMap map;
  const CUresult status =
      encoder()(&map, type_of(dtype), kRank, data, sizes, strides, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
                swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  VT_CHECK(status == CUDA_SUCCESS, "no map of a matrix with %llu rows of %llu elements: error %d",
           static_cast<unsigned long long>(sizes[1]), static_cast<unsigned long long>(sizes[0]),
           static_cast<int>(status));
  return map;
}

cuuint64_t wide(int64_t size) {
  return static_cast<cuuint64_t>(size);
}

}  // namespace

CUtensorMap matrix_map(const Operand& matrix, int64_t rows, int64_t columns, int box_rows) {
  const auto bytes = static_cast<cuuint32_t>(size_of(matrix.dtype));
  return encode<2>(matrix.data, matrix.dtype, {wide(columns), wide(rows)}, {wide(columns) * bytes},
                   {128 / bytes, static_cast<cuuint32_t>(box_rows)});
}

CUtensorMap codes_map(const Operand& matrix, int64_t rows, int64_t columns, int box_rows) {
  return encode<2>(matrix.data, matrix.dtype, {wide(columns), wide(rows)}, {wide(columns)},
                   {64, static_cast<cuuint32_t>(box_rows)}, CU_TENSOR_MAP_SWIZZLE_64B);
}

CUtensorMap heads_map(const HeadRows& heads, int64_t rows, int64_t head_size, int64_t count, int64_t images,
                      int box_rows) {
  return encode<4>(heads.data, heads.dtype, {wide(head_size), wide(rows), wide(count), wide(images)},
                   {wide(heads.row) * 2, wide(heads.head) * 2, wide(heads.batch) * 2},
                   {64, static_cast<cuuint32_t>(box_rows), 1, 1});
}

}  // namespace vitrail::cuda
