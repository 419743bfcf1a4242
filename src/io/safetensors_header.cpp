// Reads and writes the JSON header of a safetensors file; data without holes or overlaps is required.
#include "io/safetensors.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "base/json.h"
#include "io/tensor_limits.h"

namespace vitrail {

namespace {

constexpr const char* kMetadataKey = "__metadata__";

struct DtypeRow {
  const char* name;
  DType dtype;
};
constexpr DtypeRow kDtypes[] = {
    {"F64", DType::kF64}, {"F32", DType::kF32},   {"F16", DType::kF16}, {"BF16", DType::kBF16},
    {"I64", DType::kI64}, {"I32", DType::kI32},   {"I16", DType::kI16}, {"I8", DType::kI8},
    {"U8", DType::kU8},   {"BOOL", DType::kBool},
};

DType dtype_of(const std::string& name) {
  for (const DtypeRow& row : kDtypes)
    if (name == row.name) return row.dtype;
  throw Error(ErrorKind::kData, strf("dtype %s is not one Vitrail reads", quoted(name).c_str()),
              "convert the file to F32, F16 or BF16");
}

const char* name_of(DType dtype) {
  for (const DtypeRow& row : kDtypes)
    if (dtype == row.dtype) return row.name;
  VT_CHECK(false, "dtype %s has no safetensors name", to_string(dtype));
  return "";
}

struct Row {
  TensorInfo info;
  uint64_t begin, end;
};

// The header's grammar: one object of tensors, each an object of three fields, plus string metadata. The
// scanner's depth says where we are: 1 among names, 2 inside a tensor or the metadata, 3 in a list.
class HeaderReader : public JsonEvents {
 public:
  void key(std::string name) override {
    if (depth_ == 1) return begin_entry(std::move(name));
    VT_REQUIRE(keys_.insert(name).second, ErrorKind::kData, "%s: the key %s appears twice",
               quoted(entry_).c_str(), quoted(name).c_str());
    VT_REQUIRE(in_metadata_ || name == "dtype" || name == "shape" || name == "data_offsets", ErrorKind::kData,
               "%s: expected dtype, shape and data_offsets, found %s", quoted(entry_).c_str(),
               quoted(name).c_str());
    field_ = std::move(name);
  }

  void begin_object() override {
    VT_REQUIRE(depth_ < 2, ErrorKind::kData, "%s: an object where none belongs", quoted(entry_).c_str());
    ++depth_;
    keys_.clear();
    row_ = {};
    offsets_.clear();
  }

  void begin_array() override {
    VT_REQUIRE(depth_ == 2 && !in_metadata_ && field_ != "dtype", ErrorKind::kData,
               "%s: a list where none belongs", quoted(entry_).c_str());
    ++depth_;
  }

  void scalar(Json value) override {
    if (depth_ == 3) return number(value);
    VT_REQUIRE(depth_ == 2 && value.is_string() && (in_metadata_ || field_ == "dtype"), ErrorKind::kData,
               "%s: a value of the wrong kind (%s)", quoted(depth_ < 2 ? entry_ : field_).c_str(),
               value.type_name());
    if (in_metadata_)
      metadata_[field_] = value.get<std::string>();
    else
      row_.info.dtype = dtype_of(value.get_ref<const std::string&>());
  }

  void end() override {
    --depth_;
    if (depth_ == 1 && !in_metadata_) finish_tensor();
  }

  std::vector<Row> rows_;
  std::map<std::string, std::string> metadata_;

 private:
  void begin_entry(std::string name) {
    VT_REQUIRE(names_.insert(name).second, ErrorKind::kData, "the name %s appears twice",
               quoted(name).c_str());
    in_metadata_ = name == kMetadataKey;
    entry_ = std::move(name);
    if (in_metadata_) return;
    require_tensor_name(entry_);
    VT_REQUIRE(rows_.size() < kMaxTensors, ErrorKind::kData, "more than %zu tensors", kMaxTensors);
  }

  void number(const Json& value) {
    VT_REQUIRE(value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX),
               ErrorKind::kData, "%s: %s must hold integers from 0 to 2^63 - 1", quoted(entry_).c_str(),
               field_.c_str());
    const bool shape = field_ == "shape";
    VT_REQUIRE(shape ? row_.info.shape.size() < kMaxRank : offsets_.size() < 2, ErrorKind::kData,
               "%s: too many numbers in %s", quoted(entry_).c_str(), field_.c_str());
    if (shape)
      row_.info.shape.push_back(value.get<int64_t>());
    else
      offsets_.push_back(value.get<uint64_t>());
  }

  void finish_tensor() {
    const std::string name = quoted(entry_);
    VT_REQUIRE(keys_.size() == 3, ErrorKind::kData,
               "%s: expected dtype, shape and data_offsets, one is missing", name.c_str());
    VT_REQUIRE(offsets_.size() == 2 && offsets_[0] <= offsets_[1], ErrorKind::kData,
               "%s: data_offsets must be [begin, end] with begin <= end", name.c_str());
    row_.begin = offsets_[0];
    row_.end = offsets_[1];
    row_.info.bytes = with_context(name, [&] { return tensor_bytes(row_.info.shape, row_.info.dtype); });
    VT_REQUIRE(row_.info.bytes == row_.end - row_.begin, ErrorKind::kData,
               "%s: shape and dtype make %zu bytes, data_offsets span %llu", name.c_str(), row_.info.bytes,
               static_cast<unsigned long long>(row_.end - row_.begin));
    row_.info.name = entry_;
    rows_.push_back(std::move(row_));
  }

  int depth_ = 0;
  bool in_metadata_ = false;
  std::string entry_, field_;
  std::unordered_set<std::string> names_, keys_;
  Row row_{};
  std::vector<uint64_t> offsets_;
};

// Requires data without holes, overlaps or a tail: each tensor begins where the one before ended.
void require_gapless(const std::vector<Row>& rows, uint64_t data_bytes) {
  uint64_t expected = 0;
  for (const Row& row : rows) {
    VT_REQUIRE(row.begin == expected, ErrorKind::kData,
               "tensor %s begins at byte %llu of the data, the one before it ends at %llu (%s)",
               quoted(row.info.name).c_str(), static_cast<unsigned long long>(row.begin),
               static_cast<unsigned long long>(expected), row.begin < expected ? "overlap" : "hole");
    expected = row.end;
  }
  VT_REQUIRE(
      expected == data_bytes, ErrorKind::kData,
      "the header describes %llu bytes of data, the file holds %llu (%s)",
      static_cast<unsigned long long>(expected), static_cast<unsigned long long>(data_bytes),
      expected > data_bytes ? "cut short, perhaps an unfinished download" : "unexplained bytes at the end");
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes) {
  const size_t last = json.find_last_not_of(' ');
  VT_REQUIRE(!json.empty() && json[0] == '{' && last != json.npos && json[last] == '}', ErrorKind::kData,
             "the header must be one JSON object, padded with spaces only");
  HeaderReader reader;
  scan_json(json, "header", {.max_bytes = kMaxSafetensorsHeader, .max_depth = 3}, reader);
  std::vector<Row>& rows = reader.rows_;
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  require_gapless(rows, data_bytes);
  SafetensorsHeader header;
  for (Row& row : rows) {
    header.begins.push_back(row.begin);
    header.tensors.push_back(std::move(row.info));
  }
  header.metadata = std::move(reader.metadata_);
  return header;
}

std::string safetensors_header_text(const std::vector<const TensorInfo*>& tensors,
                                    const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  for (const auto& [key, value] : metadata) {
    VT_REQUIRE(is_valid_utf8(key) && is_valid_utf8(value), ErrorKind::kData, "metadata %s is not UTF-8",
               quoted(key).c_str());
    header[kMetadataKey][key] = value;
  }
  uint64_t offset = 0;
  std::string text = header.dump();
  text.pop_back();  // tensors are appended by hand: a lookup per key would make this quadratic
  for (const TensorInfo* info : tensors) {
    VT_REQUIRE(info->name != kMetadataKey, ErrorKind::kData, "no tensor may be named %s", kMetadataKey);
    const nlohmann::ordered_json entry = {{"dtype", name_of(info->dtype)},
                                          {"shape", info->shape},
                                          {"data_offsets", {offset, offset + info->bytes}}};
    if (text.size() > 1) text += ',';
    text += nlohmann::ordered_json(info->name).dump() + ':' + entry.dump();
    offset += info->bytes;
  }
  text += '}';
  text.resize(round_up(text.size(), 8), ' ');
  return text;
}

}  // namespace vitrail
