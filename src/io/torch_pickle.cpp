// Reads the pickle of a PyTorch state dict, by a list of known names and without running any code of it.
#include <optional>
#include <unordered_set>

#include "io/tensor_limits.h"
#include "io/torch_file.h"

namespace vitrail {

namespace {

// The meaning of a global name in the pickle. The pickle reader refuses everything not listed.
enum class Meaning { kDict, kTensor, kParameter, kStorage, kInert };

struct GlobalRow {
  std::string_view name;
  Meaning meaning;
  DType dtype = DType::kF32;  // of a storage
};
constexpr GlobalRow kNames[] = {
    {"collections.OrderedDict", Meaning::kDict},
    {"torch._utils._rebuild_tensor_v2", Meaning::kTensor},
    {"torch._utils._rebuild_tensor", Meaning::kTensor},
    {"torch._utils._rebuild_parameter", Meaning::kParameter},
    {"torch.DoubleStorage", Meaning::kStorage, DType::kF64},
    {"torch.FloatStorage", Meaning::kStorage, DType::kF32},
    {"torch.HalfStorage", Meaning::kStorage, DType::kF16},
    {"torch.BFloat16Storage", Meaning::kStorage, DType::kBF16},
    {"torch.LongStorage", Meaning::kStorage, DType::kI64},
    {"torch.IntStorage", Meaning::kStorage, DType::kI32},
    {"torch.ShortStorage", Meaning::kStorage, DType::kI16},
    {"torch.CharStorage", Meaning::kStorage, DType::kI8},
    {"torch.ByteStorage", Meaning::kStorage, DType::kU8},
    {"torch.BoolStorage", Meaning::kStorage, DType::kBool},
    // Objects that training scripts keep beside the weights; they are skipped unread.
    {"argparse.Namespace", Meaning::kInert},
    {"collections.defaultdict", Meaning::kInert},
    {"collections.Counter", Meaning::kInert},
    {"pathlib.PosixPath", Meaning::kInert},
    {"pathlib.PurePosixPath", Meaning::kInert},
    {"pathlib.WindowsPath", Meaning::kInert},
    {"pathlib._local.PosixPath", Meaning::kInert},
    {"functools.partial", Meaning::kInert},
    {"datetime.datetime", Meaning::kInert},
    {"datetime.timedelta", Meaning::kInert},
    {"__builtin__.set", Meaning::kInert},
    {"__builtin__.frozenset", Meaning::kInert},
    {"__builtin__.list", Meaning::kInert},
    {"__builtin__.dict", Meaning::kInert},
    {"__builtin__.int", Meaning::kInert},
    {"__builtin__.float", Meaning::kInert},
    {"__builtin__.complex", Meaning::kInert},
    {"__builtin__.slice", Meaning::kInert},
    {"__builtin__.range", Meaning::kInert},
    {"torch.Size", Meaning::kInert},
    {"torch.device", Meaning::kInert},
    {"torch.float64", Meaning::kInert},
    {"torch.float32", Meaning::kInert},
    {"torch.float16", Meaning::kInert},
    {"torch.bfloat16", Meaning::kInert},
    {"torch.serialization._get_layout", Meaning::kInert},
    {"numpy.dtype", Meaning::kInert},
    {"numpy.core.multiarray.scalar", Meaning::kInert},
    {"numpy._core.multiarray.scalar", Meaning::kInert},
    {"numpy.ndarray", Meaning::kInert},
    {"numpy.core.multiarray._reconstruct", Meaning::kInert},
    {"numpy._core.multiarray._reconstruct", Meaning::kInert},
    {"_codecs.encode", Meaning::kInert},
};

// The keys under which a state dict may lie, best first. The first four are in the order of timm's loader,
// which prefers averaged weights to the raw ones; the others are what other training programs write.
constexpr std::string_view kOuterKeys[] = {
    "state_dict_ema",   "model_ema", "state_dict",     "model",     "model_state_dict",
    "model_state",      "net",       "network",        "module",    "weights",
    "params",           "ema",       "ema_state_dict", "ema_model", "ema_model_state_dict",
    "state_dict_model", "teacher",   "target_encoder", "student",   "encoder",
    "backbone",         "base_model"};
constexpr int kMaxNesting = 3;  // {"ema": {"state_dict": {...}}} is one less

const GlobalRow* row_of(std::string_view name) {
  // Python 3's own name, which pickles below protocol 3 do not use.
  constexpr std::string_view kOwn = "builtins.", kOld = "__builtin__.";
  const auto same = [&](std::string_view known) {
    return name == known || (name.starts_with(kOwn) && known.starts_with(kOld) &&
                             name.substr(kOwn.size()) == known.substr(kOld.size()));
  };
  for (const GlobalRow& row : kNames)
    if (same(row.name)) return &row;
  return nullptr;
}

class StateDictReader {
 public:
  explicit StateDictReader(const PickleGraph& graph) : graph_(graph) {}

  TorchStateDict read() const {
    const PickleNode& root = graph_[graph_.root];
    VT_REQUIRE(is_dict(root), ErrorKind::kData, "expected a dict of tensors at the top of the pickle");
    const std::optional<Place> place = find_state_dict(root, kMaxNesting);
    if (!place)
      throw Error(ErrorKind::kData, "no dict of tensors in it, neither at the top nor under a key",
                  "in Python, torch.save(model.state_dict(), FILE)");
    return {place->key, place->passed_over, tensors_of(*place->dict), storages(), graph_.bytes};
  }

 private:
  struct Place {
    const PickleNode* dict;
    std::string key, passed_over;
  };

  // Tries known keys first, then the tensors at this level, then any other key that alone holds some.
  std::optional<Place> find_state_dict(const PickleNode& dict, int levels) const {
    std::vector<Place> found;
    for (const std::string_view key : kOuterKeys)
      if (const PickleNode* inner = member(dict, key)) look_into(*inner, std::string(key), levels, &found);
    if (found.empty() && has_tensor(dict)) return Place{&dict, "", ""};
    if (found.empty()) {
      for (size_t i = 0; i + 1 < dict.items.size(); i += 2)
        if (const PickleNode& name = graph_[dict.items[i]]; name.kind == PickleKind::kString)
          look_into(graph_[dict.items[i + 1]], name.text, levels, &found);
      if (found.size() > 1)
        throw Error(ErrorKind::kData, "several dicts of tensors: " + keys_after(found, 0),
                    "in Python, save the one meant: torch.save(checkpoint[KEY], FILE)");
    }
    if (found.empty()) return std::nullopt;
    found[0].passed_over = keys_after(found, 1);
    return found[0];
  }

  void look_into(const PickleNode& value, const std::string& key, int levels,
                 std::vector<Place>* found) const {
    if (levels <= 1 || !is_dict(value) || !looked_into_.insert(&value).second) return;
    if (auto inner = find_state_dict(value, levels - 1))
      found->push_back({inner->dict, key + (inner->key.empty() ? "" : "." + inner->key), inner->passed_over});
  }

  static std::string keys_after(const std::vector<Place>& places, size_t first) {
    std::string keys;
    for (size_t i = first; i < places.size(); ++i) keys += (keys.empty() ? "" : ", ") + places[i].key;
    return keys;
  }

  bool is_call_of(const PickleNode& node, Meaning meaning) const {
    return node.kind == PickleKind::kCall && row_of(graph_[node.callee].text)->meaning == meaning;
  }
  bool is_dict(const PickleNode& node) const {
    if (node.kind == PickleKind::kDict) return true;
    if (!is_call_of(node, Meaning::kDict)) return false;
    VT_REQUIRE(graph_[node.argument].items.empty(), ErrorKind::kData, "an OrderedDict made from a list");
    return true;
  }
  bool has_tensor(const PickleNode& dict) const {
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2)
      if (tensor_call(graph_[dict.items[i + 1]])) return true;
    return false;
  }
  const PickleNode* member(const PickleNode& dict, std::string_view key) const {
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const PickleNode& name = graph_[dict.items[i]];
      if (name.kind == PickleKind::kString && name.text == key) return &graph_[dict.items[i + 1]];
    }
    return nullptr;
  }

  // Returns the tensor behind a value: itself, or what a Parameter wraps; nothing for other values.
  const PickleNode* tensor_call(const PickleNode& value) const {
    if (is_call_of(value, Meaning::kTensor)) return &value;
    if (!is_call_of(value, Meaning::kParameter)) return nullptr;
    const PickleNode& arguments = graph_[value.argument];
    VT_REQUIRE(!arguments.items.empty(), ErrorKind::kData, "a Parameter without a tensor");
    const PickleNode& inner = graph_[arguments.items[0]];
    VT_REQUIRE(is_call_of(inner, Meaning::kTensor), ErrorKind::kData, "a Parameter of what is not a tensor");
    return &inner;
  }

  std::vector<TorchTensor> tensors_of(const PickleNode& dict) const {
    std::vector<TorchTensor> tensors;
    std::unordered_set<std::string_view> names;
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const PickleNode* call = tensor_call(graph_[dict.items[i + 1]]);
      if (!call) continue;  // counters and the like
      const PickleNode& name = graph_[dict.items[i]];
      VT_REQUIRE(name.kind == PickleKind::kString, ErrorKind::kData, "a tensor whose name is not a text");
      require_tensor_name(name.text);
      VT_REQUIRE(names.insert(name.text).second, ErrorKind::kData, "two tensors are named %s",
                 quoted(name.text).c_str());
      VT_REQUIRE(tensors.size() < kMaxTensors, ErrorKind::kData, "more than %zu tensors", kMaxTensors);
      tensors.push_back(
          with_context("tensor " + quoted(name.text), [&] { return tensor_of(*call, name.text); }));
    }
    return tensors;
  }

  // Reads _rebuild_tensor_v2(storage, offset, size, stride, ...); the remaining arguments do not affect the
  // values.
  TorchTensor tensor_of(const PickleNode& call, const std::string& name) const {
    const std::vector<PickleId>& arguments = graph_[call.argument].items;
    VT_REQUIRE(arguments.size() >= 4, ErrorKind::kData,
               "%zu arguments, expected storage, offset, size, stride", arguments.size());
    TorchTensor tensor = storage_of(graph_[arguments[0]]);
    tensor.name = name;
    tensor.view.offset = static_cast<uint64_t>(integer(graph_[arguments[1]], "storage offset"));
    tensor.view.shape = integers(graph_[arguments[2]], "size");
    tensor.view.strides = integers(graph_[arguments[3]], "stride");
    tensor_bytes(tensor.view.shape, tensor.dtype);  // refuses what overflows
    tensor.view.require_within(tensor.storage_elems);
    return tensor;
  }

  std::map<std::string, TorchStorage> storages() const {
    std::map<std::string, TorchStorage> all;
    for (const PickleNode& node : graph_.nodes)
      if (node.kind == PickleKind::kPersistent) {
        const TorchTensor tensor = storage_of(node);
        all[tensor.storage_key] = {tensor.dtype, tensor.storage_elems};
      }
    return all;
  }

  // Reads the persistent id ("storage", torch.FloatStorage, key, location, element count).
  TorchTensor storage_of(const PickleNode& node) const {
    VT_REQUIRE(node.kind == PickleKind::kPersistent, ErrorKind::kData, "its first argument is not a storage");
    const PickleNode& id = graph_[node.argument];
    VT_REQUIRE(id.kind == PickleKind::kTuple && id.items.size() >= 5, ErrorKind::kData,
               "a storage that is not described by five values");
    const PickleNode &tag = graph_[id.items[0]], &type = graph_[id.items[1]], &key = graph_[id.items[2]];
    VT_REQUIRE(tag.kind == PickleKind::kString && tag.text == "storage" && key.kind == PickleKind::kString &&
                   type.kind == PickleKind::kGlobal && row_of(type.text)->meaning == Meaning::kStorage,
               ErrorKind::kData, "a storage of unknown kind");
    TorchTensor tensor;
    tensor.storage_key = key.text;
    tensor.dtype = row_of(type.text)->dtype;
    tensor.storage_elems = static_cast<uint64_t>(integer(graph_[id.items[4]], "storage size"));
    return tensor;
  }

  static int64_t integer(const PickleNode& node, const char* what) {
    VT_REQUIRE(node.kind == PickleKind::kInt && node.integer >= 0, ErrorKind::kData,
               "%s: expected an integer from 0 to 2^63 - 1", what);
    return node.integer;
  }
  std::vector<int64_t> integers(const PickleNode& node, const char* what) const {
    VT_REQUIRE(node.kind == PickleKind::kTuple && node.items.size() <= kMaxRank, ErrorKind::kData,
               "%s: expected a tuple of at most %zu integers", what, kMaxRank);
    std::vector<int64_t> values;
    for (const PickleId item : node.items) values.push_back(integer(graph_[item], what));
    return values;
  }

  const PickleGraph& graph_;
  mutable std::unordered_set<const PickleNode*> looked_into_;  // a dict may lie under many keys
};

}  // namespace

TorchStateDict read_torch_pickle(std::span<const std::byte> pickle) {
  const PickleGraph graph =
      read_pickle(pickle, [](std::string_view name) { return row_of(name) != nullptr; });
  return StateDictReader(graph).read();
}

}  // namespace vitrail
