// Streams, events, copies, recorded graphs and time stamps of a session, as the plugin's table offers them.
#include "backend/cuda/device/plugin_tables.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

// A null stream stands for the session's own.
cudaStream_t stream_of(const Session& session, void* stream) {
  return stream ? static_cast<cudaStream_t>(stream) : session.stream;
}

void* create(Session& session, bool urgent) {
  use(session);
  cudaStream_t stream = nullptr;
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, urgent ? greatest : least),
        "making a stream");
  const std::lock_guard lock(session.streams_mutex);
  session.more_streams.push_back(stream);
  return stream;
}

void drop(Session& session, void* stream) {
  cudaSetDevice(session.ordinal);
  const std::lock_guard lock(session.streams_mutex);
  std::erase(session.more_streams, static_cast<cudaStream_t>(stream));
  cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
  cudaStreamDestroy(static_cast<cudaStream_t>(stream));
}

void* create_event(Session& session) {
  use(session);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  return event;
}

void drop_event(Session& session, void* event) {
  cudaSetDevice(session.ordinal);
  cudaEventDestroy(static_cast<cudaEvent_t>(event));
}

// An event marks the work enqueued before it was recorded. It may be recorded again while a wait for its
// earlier mark is pending.
void record(Session& session, void* stream, void* event) {
  use(session);
  check(cudaEventRecord(static_cast<cudaEvent_t>(event), stream_of(session, stream)), "recording an event");
}

void wait(Session& session, void* stream, void* event) {
  use(session);
  check(cudaStreamWaitEvent(stream_of(session, stream), static_cast<cudaEvent_t>(event), 0),
        "waiting for an event");
}

void synchronize(Session& session, void* event) {
  use(session);
  check(cudaEventSynchronize(static_cast<cudaEvent_t>(event)), "waiting for an event");
}

bool reached(Session& session, void* event) {
  use(session);
  const cudaError_t status = cudaEventQuery(static_cast<cudaEvent_t>(event));
  if (status == cudaErrorNotReady) {
    cudaGetLastError();  // no error
    return false;
  }
  check(status, "asking for an event");
  return true;
}

void upload(Session& session, void* stream, void* target, const void* host, size_t bytes) {
  use(session);
  check(cudaMemcpyAsync(target, host, bytes, cudaMemcpyHostToDevice, stream_of(session, stream)),
        "copying to the GPU");
}

void finish(Session& session) {
  use(session);
  check(await_streams(session), "waiting for the GPU");
}

void download(Session& session, void* host, const void* source, size_t bytes) {
  use(session);
  check(cudaMemcpyAsync(host, source, bytes, cudaMemcpyDeviceToHost, session.stream), "copying from the GPU");
  check(cudaStreamSynchronize(session.stream), "waiting for the GPU");
}

void download_later(Session& session, void* stream, void* host, const void* source, size_t bytes) {
  use(session);
  check(cudaMemcpyAsync(host, source, bytes, cudaMemcpyDeviceToHost, stream_of(session, stream)),
        "copying from the GPU");
}

void copy(Session& session, void* stream, void* target, const void* source, size_t bytes) {
  use(session);
  check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream_of(session, stream)),
        "copying on the GPU");
}

void clear(Session& session, void* target, size_t bytes) {
  use(session);
  check(cudaMemsetAsync(target, 0, bytes, session.stream), "clearing device memory");
}

void start_capture(Session& session) {
  use(session);
  check(cudaStreamBeginCapture(session.stream, cudaStreamCaptureModeThreadLocal), "starting to record");
}

void* end_capture(Session& session) {
  use(session);
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(session.stream, &graph);
  if (ended == cudaErrorStreamCaptureInvalidated) {
    cudaGetLastError();  // reported by the caller
    return nullptr;
  }
  check(ended, "recording");
  cudaGraphExec_t exec = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphDestroy(graph);
  check(status, "making a graph of what was recorded");
  // What the first launch would set up is set up here, where no other thread's work can wait for it.
  check(cudaGraphUpload(exec, session.stream), "bringing a graph to the GPU");
  return exec;
}

void replay(Session& session, void* graph) {
  use(session);
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), session.stream), "replaying a graph");
}

void drop_graph(Session& session, void* graph) {
  cudaSetDevice(session.ordinal);
  cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph));
}

void* create_timestamp(Session& session) {
  use(session);
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "making an event");
  return event;
}

// An event that is recorded while capturing marks a place in the graph alone, unless it is called external.
void stamp(Session& session, void* stream, void* timestamp) {
  use(session);
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream_of(session, stream), &capturing), "asking for a capture");
  const unsigned flags =
      capturing == cudaStreamCaptureStatusActive ? cudaEventRecordExternal : cudaEventRecordDefault;
  check(cudaEventRecordWithFlags(static_cast<cudaEvent_t>(timestamp), stream_of(session, stream), flags),
        "recording a time");
}

double seconds_apart(Session& session, void* from, void* to) {
  use(session);
  float milliseconds = 0;
  const cudaError_t status =
      cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(from), static_cast<cudaEvent_t>(to));
  if (status == cudaSuccess) return milliseconds * 1e-3;
  cudaGetLastError();  // no error: it is asked for again
  if (status != cudaErrorNotReady && status != cudaErrorInvalidResourceHandle) check(status, "timing");
  return -1;
}

void* handle(Session& session, void* stream) {
  return stream_of(session, stream);
}

std::string gpu_address(Session& session) {
  char bus[32] = {};
  check(cudaDeviceGetPCIBusId(bus, sizeof bus, session.ordinal), "asking for the GPU");
  return bus;
}

}  // namespace

StreamsApi streams_api() {
  return {.create = create,
          .drop = drop,
          .create_event = create_event,
          .drop_event = drop_event,
          .record = record,
          .wait = wait,
          .synchronize = synchronize,
          .reached = reached,
          .upload = upload,
          .copy = copy,
          .download = download,
          .download_later = download_later,
          .clear = clear,
          .finish = finish,
          .start_capture = start_capture,
          .end_capture = end_capture,
          .replay = replay,
          .drop_graph = drop_graph,
          .create_timestamp = create_timestamp,
          .stamp = stamp,
          .seconds_apart = seconds_apart,
          .handle = handle,
          .gpu_address = gpu_address};
}

}  // namespace vitrail::cuda
