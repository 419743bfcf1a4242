#include "backend/cuda/device/session.cuh"

#include "backend/cuda/device/families.cuh"
#include "backend/cuda/device/foreign.cuh"

namespace vitrail::cuda {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // said here; the next launch is not to answer for it
  const ErrorKind kind = status == cudaErrorMemoryAllocation ? ErrorKind::kMemory : ErrorKind::kDevice;
  throw Error(kind,
              strf("%s: CUDA says '%s' (%s)", what, cudaGetErrorString(status), cudaGetErrorName(status)));
}

void check(cublasStatus_t status, const char* what) {
  const ErrorKind kind = status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorKind::kMemory : ErrorKind::kDevice;
  VT_REQUIRE(status == CUBLAS_STATUS_SUCCESS, kind, "%s: cuBLASLt says '%s'", what,
             cublasLtGetStatusString(status));
}

Session::~Session() {
  cudaSetDevice(ordinal);
  for (cudaStream_t lane : {aside, stream})
    if (lane) cudaStreamSynchronize(lane);
  for (cudaEvent_t event : marks) cudaEventDestroy(event);
  for (cudaEvent_t event : {landed, taken})
    if (event) cudaEventDestroy(event);
  if (blas) cublasLtDestroy(blas);
  for (cudaStream_t lane : {aside, stream})
    if (lane) cudaStreamDestroy(lane);
  cudaGetLastError();  // nobody is left to hear of it
}

namespace {

int count(std::string& why) {
  int cards = 0;
  const cudaError_t status = cudaGetDeviceCount(&cards);
  if (status == cudaSuccess && cards > 0) return cards;
  int driver = 0;  // stays 0 where none is installed
  cudaDriverGetVersion(&driver);
  why = status == cudaSuccess ? "the driver shows no card"
        : driver == 0         ? "there is no NVIDIA driver"
                              : cudaGetErrorString(status);
  return -1;
}

CardFacts facts(int ordinal) {
  cudaDeviceProp card;
  check(cudaGetDeviceProperties(&card, ordinal), "asking for the card");
  return {.name = card.name,
          .compute = card.major * 10 + card.minor,
          .processors = card.multiProcessorCount,
          .memory_bytes = card.totalGlobalMem,
          .l2_bytes = static_cast<size_t>(card.l2CacheSize)};
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

void use(Session& session) {
  check(cudaSetDevice(session.ordinal), "choosing the card");
}

// A kernel of our own, to ask whether any runs on the card.
__global__ void probe() {}

void require_kernels(int ordinal) {
  cudaFuncAttributes attributes;
  const cudaError_t status = cudaFuncGetAttributes(&attributes, probe);
  if (status == cudaSuccess) return;
  cudaGetLastError();
  const CardFacts card = facts(ordinal);
  throw Error(ErrorKind::kDevice,
              strf("%s has compute capability %d.%d, for which this build has no kernels (%s)",
                   card.name.c_str(), card.compute / 10, card.compute % 10, cudaGetErrorString(status)),
              "build with the preset release-all-gpus, or use --device cpu");
}

Session* open(int ordinal) {
  auto session = std::make_unique<Session>();
  session->ordinal = ordinal;
  const size_t free_before = free_on_card(ordinal);
  use(*session);
  require_kernels(ordinal);
  session->processors = facts(ordinal).processors;
  for (cudaStream_t* lane : {&session->stream, &session->aside})
    check(cudaStreamCreateWithFlags(lane, cudaStreamNonBlocking), "making a stream");
  for (cudaEvent_t* event : {&session->landed, &session->taken})
    check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "making an event");
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
    cudaGetLastError();  // the failure is answered for by the caller
    return nullptr;
  }
  check(status, "allocating device memory");
  return static_cast<std::byte*>(data);
}

// What is given back may still be read or written.
void await_lanes(Session& session) {
  cudaSetDevice(session.ordinal);
  cudaStreamSynchronize(session.stream);
  cudaStreamSynchronize(session.aside);
}

void release(Session& session, std::byte* data) {
  await_lanes(session);
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
  await_lanes(session);
  cudaFreeHost(data);
}

void upload(Session& session, void* target, const void* host, size_t bytes) {
  use(session);
  check(cudaMemcpyAsync(target, host, bytes, cudaMemcpyHostToDevice, session.stream), "copying to the card");
}

void finish(Session& session) {
  use(session);
  for (cudaStream_t lane : {session.aside, session.stream})
    check(cudaStreamSynchronize(lane), "waiting for the card");
}

void upload_aside(Session& session, void* landing, const void* host, size_t bytes) {
  use(session);
  check(cudaMemcpyAsync(landing, host, bytes, cudaMemcpyHostToDevice, session.aside), "copying to the card");
}

void download(Session& session, void* host, const void* source, size_t bytes) {
  use(session);
  check(cudaMemcpyAsync(host, source, bytes, cudaMemcpyDeviceToHost, session.stream),
        "copying from the card");
  check(cudaStreamSynchronize(session.stream), "waiting for the card");
}

void copy(Session& session, void* target, const void* source, size_t bytes) {
  use(session);
  check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, session.stream),
        "copying on the card");
}

// An event names the work enqueued before its record: it may be recorded again while an older wait stands.
void wait_behind(cudaStream_t behind, cudaStream_t ahead, cudaEvent_t event) {
  check(cudaEventRecord(event, ahead), "recording an event");
  check(cudaStreamWaitEvent(behind, event, 0), "waiting for an event");
}

void take(Session& session, void* target, const void* landing, size_t bytes) {
  use(session);
  wait_behind(session.stream, session.aside, session.landed);
  copy(session, target, landing, bytes);
  wait_behind(session.aside, session.stream, session.taken);
}

void clear(Session& session, void* target, size_t bytes) {
  use(session);
  check(cudaMemsetAsync(target, 0, bytes, session.stream), "clearing device memory");
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

void start_capture(Session& session) {
  use(session);
  check(cudaStreamBeginCapture(session.stream, cudaStreamCaptureModeThreadLocal), "starting to record");
}

void* end_capture(Session& session) {
  use(session);
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(session.stream, &graph), "recording");
  cudaGraphExec_t exec = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphDestroy(graph);
  check(status, "making a graph of what was recorded");
  return exec;
}

void replay(Session& session, void* graph) {
  use(session);
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), session.stream), "replaying a graph");
}

void drop(Session& session, void* graph) {
  cudaSetDevice(session.ordinal);
  cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph));
}

void mark(Session& session, size_t slot) {
  use(session);
  while (session.marks.size() <= slot) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "making an event");
    session.marks.push_back(event);
  }
  check(cudaEventRecord(session.marks[slot], session.stream), "recording an event");
}

double seconds_between(Session& session, size_t from, size_t to) {
  use(session);
  check(cudaEventSynchronize(session.marks.at(to)), "waiting for an event");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, session.marks.at(from), session.marks.at(to)), "timing");
  return milliseconds * 1e-3;
}

}  // namespace

SessionApi session_api() {
  return {.count = count,
          .facts = facts,
          .versions = versions,
          .open = open,
          .close = close,
          .use = use,
          .allocate = allocate,
          .release = release,
          .allocate_host = allocate_host,
          .release_host = release_host,
          .upload = upload,
          .download = download,
          .copy = copy,
          .clear = clear,
          .finish = finish,
          .upload_aside = upload_aside,
          .take = take,
          .free_bytes = free_bytes,
          .foreign_bytes = foreign_bytes,
          .free_on_card = free_on_card,
          .start_capture = start_capture,
          .end_capture = end_capture,
          .replay = replay,
          .drop = drop,
          .mark = mark,
          .seconds_between = seconds_between};
}

}  // namespace vitrail::cuda
