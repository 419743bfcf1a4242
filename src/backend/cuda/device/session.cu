#include "backend/cuda/device/session.cuh"

#include "backend/cuda/device/foreign.cuh"
#include "backend/cuda/device/plugin_tables.cuh"

namespace vitrail::cuda {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // reported here: the next launch is not to report it again
  const ErrorKind kind = status == cudaErrorMemoryAllocation ? ErrorKind::kMemory : ErrorKind::kDevice;
  throw Error(kind,
              strf("%s: CUDA says '%s' (%s)", what, cudaGetErrorString(status), cudaGetErrorName(status)));
}

void check(cublasStatus_t status, const char* what) {
  const ErrorKind kind = status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorKind::kMemory : ErrorKind::kDevice;
  VT_REQUIRE(status == CUBLAS_STATUS_SUCCESS, kind, "%s: cuBLASLt says '%s'", what,
             cublasLtGetStatusString(status));
}

void use(const Session& session) {
  check(cudaSetDevice(session.ordinal), "choosing the GPU");
}

cudaError_t await_streams(Session& session) {
  const std::lock_guard lock(session.streams_mutex);
  cudaError_t failed = cudaSuccess;
  for (cudaStream_t one : session.more_streams)
    if (const cudaError_t status = cudaStreamSynchronize(one); status != cudaSuccess) failed = status;
  const cudaError_t status = cudaStreamSynchronize(session.stream);
  return failed != cudaSuccess ? failed : status;
}

Session::~Session() {
  cudaSetDevice(ordinal);
  if (stream) more_streams.push_back(stream);
  for (cudaStream_t one : more_streams) cudaStreamSynchronize(one);
  if (blas) cublasLtDestroy(blas);
  for (cudaStream_t one : more_streams) cudaStreamDestroy(one);
  cudaGetLastError();  // a destructor cannot report it
}

namespace {

int count(std::string& why) {
  int gpus = 0;
  const cudaError_t status = cudaGetDeviceCount(&gpus);
  if (status == cudaSuccess && gpus > 0) return gpus;
  int driver = 0;  // stays 0 where none is installed
  cudaDriverGetVersion(&driver);
  why = status == cudaSuccess ? "the driver shows no GPU"
        : driver == 0         ? "there is no NVIDIA driver"
                              : cudaGetErrorString(status);
  return -1;
}

GpuFacts facts(int ordinal) {
  cudaDeviceProp gpu;
  check(cudaGetDeviceProperties(&gpu, ordinal), "asking for the GPU");
  return {.name = gpu.name,
          .compute = gpu.major * 10 + gpu.minor,
          .processors = gpu.multiProcessorCount,
          .memory_bytes = gpu.totalGlobalMem,
          .l2_bytes = static_cast<size_t>(gpu.l2CacheSize)};
}

std::string dotted(int version) {
  return strf("%d.%d", version / 1000, version % 1000 / 10);
}

void versions(std::string& driver, std::string& runtime, std::string& cublas) {
  int number = 0;
  if (cudaDriverGetVersion(&number) == cudaSuccess && number > 0) driver = "CUDA " + dotted(number);
  if (cudaRuntimeGetVersion(&number) == cudaSuccess) runtime = dotted(number);
  const size_t blas = cublasLtGetVersion();
  cublas = strf("%zu.%zu.%zu", blas / 10000, blas / 100 % 100, blas % 100);
}

// An empty kernel of our own, to find out whether kernels of this build run on the GPU.
__global__ void probe() {}

void require_kernels(int ordinal) {
  cudaFuncAttributes attributes;
  const cudaError_t status = cudaFuncGetAttributes(&attributes, probe);
  if (status == cudaSuccess) return;
  cudaGetLastError();
  const GpuFacts gpu = facts(ordinal);
  throw Error(ErrorKind::kDevice,
              strf("%s has compute capability %d.%d, for which this build has no kernels (%s)",
                   gpu.name.c_str(), gpu.compute / 10, gpu.compute % 10, cudaGetErrorString(status)),
              "build with the preset release-all-gpus, or use --device cpu");
}

Session* open(int ordinal) {
  auto session = std::make_unique<Session>();
  session->ordinal = ordinal;
  const size_t free_before = free_on_gpu(ordinal);
  use(*session);
  require_kernels(ordinal);
  session->processors = facts(ordinal).processors;
  session->overlaps = facts(ordinal).compute >= 90;
  check(cudaStreamCreateWithFlags(&session->stream, cudaStreamNonBlocking), "making a stream");
  check(cublasLtCreate(&session->blas), "starting cuBLASLt");
  start_libraries(*session);
  note_foreign(*session, free_before);
  return session.release();
}

void close(Session* session) {
  delete session;
}

std::byte* allocate(Session& session, size_t bytes) {
  use(session);
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // reported by the caller
    return nullptr;
  }
  check(status, "allocating device memory");
  return static_cast<std::byte*>(data);
}

// Waits for all streams, since memory to be freed may still be read or written.
void await_use(Session& session) {
  cudaSetDevice(session.ordinal);
  await_streams(session);
}

void release(Session& session, std::byte* data) {
  await_use(session);
  cudaFree(data);
}

std::byte* allocate_host(Session& session, size_t bytes) {
  use(session);
  void* data = nullptr;
  const cudaError_t status = cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  check(status, "allocating page-locked memory");
  return static_cast<std::byte*>(data);
}

void release_host(Session& session, std::byte* data) {
  await_use(session);
  cudaFreeHost(data);
}

size_t free_bytes(Session& session) {
  use(session);
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for free memory");
  return free;
}

size_t foreign_bytes(Session& session) {
  return session.foreign_bytes;
}

}  // namespace

SessionApi session_api() {
  return {.count = count,
          .facts = facts,
          .versions = versions,
          .open = open,
          .close = close,
          .use = [](Session& session) { use(session); },
          .allocate = allocate,
          .release = release,
          .allocate_host = allocate_host,
          .release_host = release_host,
          .free_bytes = free_bytes,
          .foreign_bytes = foreign_bytes,
          .free_on_gpu = free_on_gpu};
}

}  // namespace vitrail::cuda
