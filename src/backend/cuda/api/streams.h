// Declares what the program and the CUDA plugin agree on about a session's streams: the copies and events on
// them, and how work on the session's own stream is captured as a graph and timed.
#pragma once

#include "backend/cuda/api/session.h"

namespace vitrail::cuda {

struct StreamsApi {
  // Streams besides the session's own, which a null stream stands for in every call; events order them.
  void* (*create)(Session&, bool urgent);  // urgent: of the highest priority
  void (*drop)(Session&, void* stream);
  void* (*create_event)(Session&);
  void (*drop_event)(Session&, void* event);
  void (*record)(Session&, void* stream, void* event);
  void (*wait)(Session&, void* stream, void* event);
  void (*synchronize)(Session&, void* event);  // the host waits
  bool (*reached)(Session&, void* event);      // nobody waits
  void (*upload)(Session&, void* stream, void* target, const void* host, size_t bytes);
  void (*copy)(Session&, void* stream, void* target, const void* source, size_t bytes);
  void (*download)(Session&, void* host, const void* source, size_t bytes);  // the host waits
  void (*download_later)(Session&, void* stream, void* host, const void* source, size_t bytes);
  void (*clear)(Session&, void* target, size_t bytes);
  void (*finish)(Session&);  // every stream

  void (*start_capture)(Session&);
  void* (*end_capture)(Session&);  // an executable graph; null: another thread spoilt the capture
  void (*replay)(Session&, void* graph);
  void (*drop_graph)(Session&, void* graph);

  // Times on any stream, kept by capture: every replay sets them anew. They are events, too.
  void* (*create_timestamp)(Session&);
  void (*stamp)(Session&, void* stream, void* timestamp);
  double (*seconds_apart)(Session&, void* from, void* to);  // -1: one is still to be reached; nobody waits

  // These are for libraries that enqueue work of their own: the cudaStream_t, and the PCI bus address of the
  // GPU.
  void* (*handle)(Session&, void* stream);
  std::string (*gpu_address)(Session&);
};

}  // namespace vitrail::cuda
