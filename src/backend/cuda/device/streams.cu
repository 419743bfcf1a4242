#include "backend/cuda/device/families.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

// A null stream stands for the session's own.
cudaStream_t stream_of(const Session& session, void* stream) {
  return stream ? static_cast<cudaStream_t>(stream) : session.stream;
}

void* create(Session& session) {
  use(session);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
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
  check(cudaMemcpyAsync(host, source, bytes, cudaMemcpyDeviceToHost, session.stream),
        "copying from the GPU");
  check(cudaStreamSynchronize(session.stream), "waiting for the GPU");
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

StreamsApi streams_api() {
  return {.create = create,
          .drop = drop,
          .create_event = create_event,
          .drop_event = drop_event,
          .record = record,
          .wait = wait,
          .synchronize = synchronize,
          .upload = upload,
          .copy = copy,
          .download = download,
          .clear = clear,
          .finish = finish,
          .start_capture = start_capture,
          .end_capture = end_capture,
          .replay = replay,
          .drop_graph = drop_graph,
          .mark = mark,
          .seconds_between = seconds_between};
}

}  // namespace vitrail::cuda
