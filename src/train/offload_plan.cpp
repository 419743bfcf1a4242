#include "train/offload_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/checked.h"
#include "graph/grad.h"
#include "ops/flat.h"

namespace vitrail {

namespace {

bool is_gradient(const Value& value) {
  return value.persistent() && value.category == Category::kGradients && !value.owner.empty();
}
bool is_copy(const Value& value) {
  return value.kind == ValueKind::kState && value.category == Category::kParameters;
}

// The place of a device's value in the staging memory of its bucket, in bytes.
using Places = std::map<std::string, size_t>;

// Puts values together as the device has them: those that follow each other there, but for the padding
// between them, travel as one.
std::vector<OffloadPlan::Span> spans_of(std::vector<const PersistentValue*> values, Places& places,
                                        size_t& bytes) {
  std::sort(values.begin(), values.end(),
            [](const PersistentValue* a, const PersistentValue* b) { return a->offset < b->offset; });
  std::vector<OffloadPlan::Span> spans;
  size_t end = 0;  // of the last value, on the device
  for (const PersistentValue* value : values) {
    if (spans.empty() || value->offset - end >= Buffer::kAlignment)
      spans.push_back({value->name, bytes, 0});
    else
      spans.back().bytes += value->offset - end;
    places[value->name] = spans.back().host + spans.back().bytes;
    spans.back().bytes += value->desc.bytes();
    end = value->offset + value->desc.bytes();
    bytes = round_up(spans.back().host + spans.back().bytes, Buffer::kAlignment);
  }
  return spans;
}

class OffloadPlanner {
 public:
  OffloadPlanner(const HostPrograms& programs, size_t bucket_bytes, std::shared_ptr<PersistentLayout> layout,
                 const Backend& backend, const DeviceInfo& host)
      : programs_(programs), bucket_bytes_(bucket_bytes), layout_(std::move(layout)), backend_(backend) {
    plan_.device = host;
    find_values();
  }

  OffloadPlan plan() {
    cut_buckets();
    for (const Members& members : buckets_) lay_out(members);
    place_staging();
    for (size_t i = 0; i < buckets_.size(); ++i) {
      OffloadPlan::Bucket& bucket = plan_.buckets[i];
      bucket.update = planned(programs_.update, i);
      bucket.refresh = planned(programs_.refresh, i);
      bucket.average = planned(programs_.average, i);
    }
    return std::move(plan_);
  }

 private:
  using Members = std::set<std::string>;  // parameters

  // Returns whether a copy lies on the host, where updates write it.
  bool stays(const Value& copy) const {
    return !copy.container.empty() && layout_->at(copy.container).on_host();
  }

  void find_values() {
    for (const Value& value : programs_.update.values)
      if (is_gradient(value)) gradients_.emplace(value.owner, layout_->place(value));
    for (const Value& value : programs_.refresh.values)
      if (is_copy(value)) copies_[value.owner] = &value;
  }

  // Trained parameters follow each other as their gradients do on the device; frozen ones come behind them.
  void cut_buckets() {
    std::vector<std::pair<size_t, std::string>> order;  // by the gradients' offsets
    size_t all = 0, bytes = 0;
    for (const auto& [name, value] : gradients_) {
      order.emplace_back(value.offset, name);
      all += value.desc.bytes();
    }
    std::sort(order.begin(), order.end());
    constexpr size_t kMostUsual = size_t{25} << 20;
    const size_t most = bucket_bytes_ > 0 ? bucket_bytes_ : std::min(kMostUsual, all / 4);
    const auto add = [&](const std::string& name, size_t own, bool opens) {
      if (opens || bytes + own > most) {
        buckets_.emplace_back();
        bytes = 0;
      }
      buckets_.back().insert(name);
      bytes += own;
    };
    for (const auto& [offset, name] : order) add(name, gradients_.at(name).desc.bytes(), buckets_.empty());
    plan_.trained = buckets_.size();
    for (const auto& [name, value] : copies_)
      if (!gradients_.contains(name)) add(name, value->desc.bytes(), buckets_.size() == plan_.trained);
  }

  void lay_out(const Members& members) {
    std::vector<const PersistentValue*> gradients, copies;
    std::vector<std::string> names(members.begin(), members.end());
    const auto frozen = std::stable_partition(
        names.begin(), names.end(), [&](const std::string& name) { return gradients_.contains(name); });
    std::sort(names.begin(), frozen, [&](const std::string& a, const std::string& b) {
      return gradients_.at(a).offset < gradients_.at(b).offset;
    });
    for (auto name = names.begin(); name != frozen; ++name) gradients.push_back(&gradients_.at(*name));
    std::erase_if(names, [&](const std::string& name) {
      const auto found = copies_.find(name);
      return found == copies_.end() || stays(*found->second);
    });
    for (const std::string& name : names) layout_->place(*copies_.at(name));
    for (const std::string& name : names) copies.push_back(&layout_->at(copies_.at(name)->name));
    OffloadPlan::Bucket bucket;
    Places places;
    size_t down = 0, up = 0;
    bucket.gradients = spans_of(gradients, places, down);
    bucket.copies = spans_of(copies, places, up);
    most_down_ = std::max(most_down_, down);
    most_up_ = std::max(most_up_, up);
    places_.push_back(std::move(places));
    plan_.buckets.push_back(std::move(bucket));
  }

  void place_staging() {
    const auto add = [&](const std::string& name, const TensorDesc& desc) {
      layout_->place({name, desc, ValueKind::kState, Category::kStaging}, Home::kLocked);
    };
    const auto bytes = [](size_t count) {
      return TensorDesc{DType::kU8, {{kFlat, static_cast<int64_t>(count)}}};
    };
    const auto count = [](size_t buckets) { return std::min(OffloadPlan::kPlaces, buckets); };
    for (size_t i = 0; i < count(plan_.trained); ++i) add(OffloadPlan::gradients_at(i), bytes(most_down_));
    plan_.sends = most_up_ > 0;
    for (size_t i = 0; plan_.sends && i < count(plan_.buckets.size()); ++i)
      add(OffloadPlan::copies_at(i), bytes(most_up_));
  }

  std::optional<ExecutionPlan> planned(const Program& program, size_t bucket) {
    std::vector<Node> nodes;
    for (const Node& node : program.nodes)
      if (buckets_[bucket].contains(program.values[static_cast<size_t>(node.ins[0])].owner))
        nodes.push_back(node);
    if (nodes.empty()) return std::nullopt;
    Program own = program_of(program, nodes);
    for (Value& value : own.values) stage(value, bucket);
    own.validate();
    return plan_execution(std::move(own), backend_, plan_.device,
                          {.pack = false, .layout = layout_, .host = true});
  }

  // What the device has is staged; what its control program decides and reads is the same for all buckets.
  void stage(Value& value, size_t bucket) const {
    if (is_copy(value) && stays(value)) return;
    if (is_gradient(value) || is_copy(value)) {
      value.container =
          is_gradient(value) ? OffloadPlan::gradients_at(bucket) : OffloadPlan::copies_at(bucket);
      value.container_offset =
          static_cast<int64_t>(places_[bucket].at(value.name) / size_of(value.desc.dtype));
      value.name += "@host";
    } else if (!value.persistent()) {
      value.name = value.kind == ValueKind::kInput ? kHostHyper : kHostControl;
    } else {
      return;
    }
    value.kind = ValueKind::kState;
    value.category = Category::kStaging;
  }

  const HostPrograms& programs_;
  size_t bucket_bytes_;
  std::shared_ptr<PersistentLayout> layout_;
  const Backend& backend_;
  std::map<std::string, PersistentValue> gradients_;  // by parameter, on the device
  std::map<std::string, const Value*> copies_;        // by parameter, as the device has them
  std::vector<Members> buckets_;
  std::vector<Places> places_;  // by bucket
  size_t most_down_ = 0, most_up_ = 0;
  OffloadPlan plan_;
};

}  // namespace

std::vector<const ExecutionPlan*> OffloadPlan::host_programs() const {
  std::vector<const ExecutionPlan*> list;
  for (const Bucket& bucket : buckets)
    for (const auto* plan : {&bucket.update, &bucket.refresh, &bucket.average})
      if (*plan) list.push_back(&**plan);
  return list;
}

size_t OffloadPlan::transient_bytes() const {
  size_t most = 0;
  for (const ExecutionPlan* plan : host_programs()) most = std::max(most, plan->memory.transient_bytes);
  return most;
}

OffloadPlan plan_offload(const HostPrograms& programs, size_t bucket_bytes,
                         const std::shared_ptr<PersistentLayout>& layout, const Backend& backend,
                         const DeviceInfo& host) {
  return OffloadPlanner(programs, bucket_bytes, layout, backend, host).plan();
}

}  // namespace vitrail
