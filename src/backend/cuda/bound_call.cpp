#include "backend/cuda/bound_call.h"

namespace vitrail::cuda {

Session& session_of(void* stream) {
  auto& session = *static_cast<Session*>(stream);
  api().session.use(session);
  return session;
}

std::byte* Place::address(const KernelArgs& args) const {
  switch (in) {
    case In::kInput:
      return static_cast<std::byte*>(args.ins[index].data()) + offset;
    case In::kOutput:
      return static_cast<std::byte*>(args.outs[index].data()) + offset;
    case In::kScratch:
      return args.scratch.data() + offset;
    case In::kAlignedScratch: {
      const auto start = reinterpret_cast<uintptr_t>(args.scratch.data());
      return args.scratch.data() + (256 - start % 256) % 256 + offset;
    }
    case In::kNothing:
      break;
  }
  return nullptr;
}

Prepared Calls::prepared(size_t scratch_bytes) && {
  // Whoever copies the kernel shares the calls, some of which are 32 KiB.
  const auto list = std::make_shared<decltype(list_)>(std::move(list_));
  return {scratch_bytes, [list](const KernelArgs& args) {
            if (list->empty()) return;
            Session& session = session_of(args.context.stream);
            for (const Make& make : *list) make(session, args);
          }};
}

}  // namespace vitrail::cuda
