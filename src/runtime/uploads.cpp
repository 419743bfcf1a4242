#include "runtime/uploads.h"

#include "base/error.h"

namespace vitrail {

void Uploads::add(size_t node, ValueId name, const TensorView& host, const TensorView& target) {
  VT_CHECK(host.desc().bytes() == target.desc().bytes(), "%s is uploaded to %s",
           to_string(host.desc()).c_str(), to_string(target.desc()).c_str());
  Device& device = *rank_.hardware;
  const auto [entry, fresh] =
      by_node_.emplace(node, Entry{host, target, device.create_event(), device.create_event()});
  VT_CHECK(by_name_.emplace(name, &entry->second).second, "two uploads have one name");
}

void Uploads::start(size_t node) {
  Entry& entry = by_node_.at(node);
  Stream& uploads = rank_.upload_stream();
  rank_.hardware->stream().record(*entry.ready);
  uploads.wait(*entry.ready);
  if (const size_t bytes = entry.host.desc().bytes(); bytes > 0)
    uploads.upload(entry.target.data(), entry.host.data(), bytes);
  uploads.record(*entry.arrived);
}

void Uploads::wait(ValueId name) {
  rank_.hardware->stream().wait(*by_name_.at(name)->arrived);
}

}  // namespace vitrail
