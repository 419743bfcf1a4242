#include "io/adapters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "io/safetensors.h"
#include "io/sealed_folder.h"

namespace vitrail {

namespace {

constexpr const char *kRank = "lora_rank", *kAlpha = "lora_alpha";

TensorInfo describe(const ParamSpec& spec) {
  TensorInfo info{.name = spec.name, .dtype = DType::kF32, .shape = {}, .bytes = sizeof(float)};
  for (const Dim& dim : spec.shape) {
    info.shape.push_back(dim.extent);
    info.bytes *= static_cast<size_t>(dim.extent);
  }
  return info;
}

template <typename T>
T number_of(const TensorSource& source, const char* key) {
  const auto at = source.metadata().find(key);
  VT_REQUIRE(at != source.metadata().end(), ErrorKind::kData, "the metadata has no %s", key);
  const std::string& text = at->second;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  VT_REQUIRE(error == std::errc() && end == text.data() + text.size(), ErrorKind::kData,
             "the metadata's %s is %s, expected a number", key, quoted(text).c_str());
  return value;
}

LoraConfig config_of(const TensorSource& source) {
  LoraConfig lora{.rank = number_of<int64_t>(source, kRank), .alpha = number_of<double>(source, kAlpha)};
  VT_REQUIRE(lora.rank >= 1 && lora.rank <= kMaxLoraRank, ErrorKind::kData,
             "adapters of rank %lld; it must be between 1 and %lld", static_cast<long long>(lora.rank),
             static_cast<long long>(kMaxLoraRank));
  VT_REQUIRE(std::isfinite(lora.alpha), ErrorKind::kData, "%s is no finite number", kAlpha);
  const auto any = [&](const char* part) {
    return std::any_of(source.tensors().begin(), source.tensors().end(),
                       [&](const TensorInfo& tensor) { return tensor.name.find(part) != std::string::npos; });
  };
  lora.attention = any(".attn.");
  lora.mlp = any(".mlp.");
  return lora;
}

// Requires every expected adapter, in its shape, and nothing else.
void require_all(const TensorSource& source, const std::vector<ParamSpec>& specs) {
  for (const ParamSpec& spec : specs) {
    const auto index = source.find(spec.name);
    VT_REQUIRE(index, ErrorKind::kData, "no tensor %s: the adapters are incomplete or of another model",
               spec.name.c_str());
    const TensorInfo wanted = describe(spec), &found = source.tensors()[*index];
    VT_REQUIRE(found.dtype == wanted.dtype && found.shape == wanted.shape, ErrorKind::kData,
               "%s has another shape or type than the f32 %s of this model and rank", spec.name.c_str(),
               to_string(spec.shape).c_str());
  }
  std::unordered_set<std::string_view> known;
  for (const ParamSpec& spec : specs) known.insert(spec.name);
  for (const TensorInfo& tensor : source.tensors())
    VT_REQUIRE(known.contains(tensor.name), ErrorKind::kData, "%s is no adapter of this model",
               quoted(tensor.name).c_str());
}

}  // namespace

void write_adapters(const std::string& folder, const VitConfig& config, const LoraConfig& lora,
                    const ParamReader& read) {
  std::vector<TensorToWrite> tensors;
  for (const ParamSpec& spec : lora_params(config, lora))
    tensors.push_back({describe(spec), [spec, &read](std::span<std::byte> target) {
                         std::vector<float> values(target.size() / sizeof(float));
                         read(spec, values);
                         const auto bytes = std::as_bytes(std::span(values));
                         std::copy(bytes.begin(), bytes.end(), target.begin());
                       }});
  write_safetensors(
      folder + "/" + kAdaptersFile, tensors,
      {{kAlpha, strf("%.17g", lora.alpha)}, {kRank, strf("%lld", static_cast<long long>(lora.rank))}});
}

Adapters::Adapters(const std::string& path, const VitConfig& config)
    : source_(open_safetensors(open_sealed(path))) {
  with_context(path, [&] {
    lora_ = config_of(*source_);
    adapters_ = lora_adapters(config, lora_);
    require_all(*source_, lora_params(config, lora_));
    VT_REQUIRE(!source_->tensors().empty(), ErrorKind::kData, "the file holds no adapters");
  });
}

std::vector<float> Adapters::read(const std::string& name) const {
  const size_t index = source_->find(name).value();
  std::vector<float> values(source_->tensors()[index].bytes / sizeof(float));
  source_->read(index, std::as_writable_bytes(std::span(values)));
  return values;
}

void Adapters::merge(const ParamSpec& spec, std::span<float> weight) const {
  const auto adapter = adapters_.find(spec.name);
  if (adapter == adapters_.end()) return;
  const std::vector<float> a = read(adapter->second.a.name), b = read(adapter->second.b.name);
  const auto outputs = static_cast<int64_t>(b.size()) / lora_.rank;
  lora_merge(lora_, a.data(), b.data(), outputs, static_cast<int64_t>(a.size()) / lora_.rank, weight.data());
}

}  // namespace vitrail
