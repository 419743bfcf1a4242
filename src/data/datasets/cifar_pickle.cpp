// Reads the pickled batches and class names of CIFAR's Python version, without running any code of them.
#include "data/datasets/file_formats.h"

#include <algorithm>

#include "base/error.h"
#include "base/pickle.h"
#include "base/text.h"

namespace vitrail {

namespace {

// Returns whether it is a global that numpy writes for an array; every version of numpy uses one of these.
bool is_numpy_name(std::string_view name) {
  static constexpr std::string_view kNames[] = {"numpy.core.multiarray._reconstruct",
                                                "numpy._core.multiarray._reconstruct", "numpy.ndarray",
                                                "numpy.dtype", "_codecs.encode"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

class Batch {
 public:
  explicit Batch(std::span<const std::byte> bytes) {
    // CIFAR-100's training file is one pickle of 155 MB.
    graph_ = read_pickle(bytes, is_numpy_name, {.max_bytes = size_t{1} << 29});
    VT_REQUIRE(root().kind == PickleKind::kDict, ErrorKind::kData, "expected a pickled dict");
  }

  const PickleNode& root() const { return graph_[graph_.root]; }
  const PickleNode& node(PickleId id) const { return graph_[id]; }

  const PickleNode& value(const std::string& key) const {
    const auto& items = root().items;
    for (size_t i = 0; i + 1 < items.size(); i += 2)
      if (is_text(node(items[i])) && node(items[i]).text == key) return node(items[i + 1]);
    throw Error(ErrorKind::kData, strf("the dict has no %s", quoted(key).c_str()),
                "expected a python batch of CIFAR-10 (labels) or CIFAR-100 (fine_labels)");
  }

  static bool is_text(const PickleNode& n) {
    return n.kind == PickleKind::kString || n.kind == PickleKind::kBytes;
  }

  bool calls(const PickleNode& n, std::string_view name) const {
    return n.kind == PickleKind::kCall && node(n.callee).text.ends_with(name);
  }

  // Returns the uint8 array `n` as its bytes, and sets its number of rows.
  std::string array_bytes(const PickleNode& n, uint64_t& rows) const {
    VT_REQUIRE(calls(n, "._reconstruct") && n.state != kNoPickleId, ErrorKind::kData,
               "\"data\" is not a numpy array");
    const PickleNode& state = node(n.state);  // (version, shape, dtype, fortran order, bytes)
    VT_REQUIRE(state.kind == PickleKind::kTuple && state.items.size() == 5, ErrorKind::kData,
               "\"data\" is not a plain numpy array");
    require_uint8(node(state.items[2]));
    VT_REQUIRE(node(state.items[3]).kind == PickleKind::kBool && node(state.items[3]).integer == 0,
               ErrorKind::kData, "\"data\" is stored column by column, expected row by row");
    rows = row_count(node(state.items[1]));
    std::string bytes = raw_bytes(node(state.items[4]));
    VT_REQUIRE(bytes.size() % kCifarPixels == 0 && bytes.size() / kCifarPixels == rows, ErrorKind::kData,
               "\"data\" has %zu bytes for %llu rows of %zu", bytes.size(),
               static_cast<unsigned long long>(rows), kCifarPixels);
    return bytes;
  }

 private:
  void require_uint8(const PickleNode& dtype) const {
    const bool good = calls(dtype, "numpy.dtype") && !node(dtype.argument).items.empty() &&
                      is_text(node(node(dtype.argument).items[0])) &&
                      node(node(dtype.argument).items[0]).text == "u1";
    VT_REQUIRE(good, ErrorKind::kData, "\"data\" is not of type uint8");
  }

  uint64_t row_count(const PickleNode& shape) const {
    const auto extent = [&](size_t i) {
      return shape.kind == PickleKind::kTuple && i < shape.items.size() ? node(shape.items[i]).integer : -1;
    };
    VT_REQUIRE(shape.items.size() == 2 && extent(0) >= 0 && extent(1) == static_cast<int64_t>(kCifarPixels),
               ErrorKind::kData, "\"data\" has shape [%lld, %lld], expected [N, %zu]",
               static_cast<long long>(extent(0)), static_cast<long long>(extent(1)), kCifarPixels);
    return static_cast<uint64_t>(extent(0));
  }

  // Python 3 writes bytes in old protocols as a string and a call that encodes it as latin1.
  std::string raw_bytes(const PickleNode& n) const {
    if (n.kind == PickleKind::kBytes) return n.text;
    const bool wish = calls(n, "_codecs.encode") && node(n.argument).items.size() == 2 &&
                      node(node(n.argument).items[0]).kind == PickleKind::kString;
    VT_REQUIRE(wish, ErrorKind::kData, "\"data\" holds no bytes");
    const std::string& text = node(node(n.argument).items[0]).text;
    std::string bytes;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto first = static_cast<unsigned char>(text[i]);
      if (first < 0x80) {
        bytes += text[i];
        continue;
      }
      VT_REQUIRE(first <= 0xC3, ErrorKind::kData, "\"data\" holds a character beyond latin1");
      bytes += static_cast<char>((first & 3) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3F));
    }
    return bytes;
  }

  PickleGraph graph_;
};

}  // namespace

CifarBatch read_cifar_pickle(std::span<const std::byte> bytes, const std::string& label_key,
                             int32_t classes) {
  const Batch pickle(bytes);
  CifarBatch batch;
  uint64_t rows = 0;
  batch.pixels = pickle.array_bytes(pickle.value("data"), rows);
  const PickleNode& labels = pickle.value(label_key);
  VT_REQUIRE(labels.kind == PickleKind::kList && labels.items.size() == rows, ErrorKind::kData,
             "%zu %s for %llu images", labels.items.size(), label_key.c_str(),
             static_cast<unsigned long long>(rows));
  for (size_t i = 0; i < labels.items.size(); ++i) {
    const PickleNode& label = pickle.node(labels.items[i]);
    VT_REQUIRE(label.kind == PickleKind::kInt && label.integer >= 0 && label.integer < classes,
               ErrorKind::kData, "sample %zu has the label %lld, expected 0 to %d", i,
               static_cast<long long>(label.integer), classes - 1);
    batch.labels.push_back(static_cast<int32_t>(label.integer));
  }
  return batch;
}

std::vector<std::string> read_cifar_names(std::span<const std::byte> bytes, const std::string& key) {
  const Batch pickle(bytes);
  std::vector<std::string> names;
  const PickleNode& list = pickle.value(key);
  VT_REQUIRE(list.kind == PickleKind::kList, ErrorKind::kData, "%s is no list", quoted(key).c_str());
  for (const PickleId id : list.items) {
    VT_REQUIRE(Batch::is_text(pickle.node(id)) && is_valid_utf8(pickle.node(id).text), ErrorKind::kData,
               "%s holds what is no text", quoted(key).c_str());
    names.push_back(pickle.node(id).text);
  }
  return names;
}

}  // namespace vitrail
