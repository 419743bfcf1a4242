#include "api/classify.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "telemetry/confusion.h"
#include "telemetry/format.h"

namespace vitrail {

std::vector<int> likeliest(std::span<const float> scores, int64_t k) {
  if (!has_answer(scores)) return {};
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::clamp<int64_t>(k, 0, static_cast<int64_t>(scores.size()));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int a, int b) {
    const float x = scores[a], y = scores[b];
    return x != y ? x > y : a < b;
  });
  order.resize(static_cast<size_t>(count));
  return order;
}

std::vector<TopClass> top_classes(std::span<const float> probabilities,
                                  const std::vector<std::string>& labels, int64_t count) {
  std::vector<TopClass> top;
  for (const int one : likeliest(probabilities, count)) {
    const auto index = static_cast<size_t>(one);
    top.push_back(
        {one, index < labels.size() ? labels[index] : strf("class %zu", index), probabilities[index]});
  }
  return top;
}

nlohmann::ordered_json image_json(const std::string& path) {
  nlohmann::ordered_json json = {{"image", path}};
  if (is_valid_utf8(path)) return json;
  std::string hex;
  for (const char byte : path) hex += strf("%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
  json["image_hex"] = hex;
  return json;
}

std::string top_classes_text(const std::vector<TopClass>& top, size_t indent) {
  constexpr int kBarCells = 20;
  std::string text;
  for (const TopClass& one : top)
    text += strf("%*s%6.2f %%  %s  %5lld  %s\n", static_cast<int>(indent), "", one.probability * 100,
                 format_bar(one.probability, kBarCells).c_str(), static_cast<long long>(one.index),
                 shown(one.label).c_str());
  return text;
}

nlohmann::ordered_json top_classes_json(const std::vector<TopClass>& top) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TopClass& one : top)
    list.push_back({{"class", one.index}, {"label", one.label}, {"prob", one.probability}});
  return list;
}

std::string numbers_text(std::span<const float> values) {
  std::string text;
  for (const float value : values)
    text += strf("%s%.7g", text.empty() ? "" : " ", static_cast<double>(value));
  return text;
}

std::vector<float> sigmoids(std::span<const float> logits) {
  std::vector<float> shares;
  for (float logit : logits)
    shares.push_back(static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logit)))));
  return shares;
}

std::vector<float> class_scores(const Engine& engine, ScoreKind scores) {
  return scores == ScoreKind::kSigmoid ? sigmoids(engine.output("logits")) : engine.output("probs");
}

void require_finite(std::span<const float> values, const char* what) {
  const auto bad = std::count_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
  if (bad == 0) return;
  throw Error(ErrorKind::kNumerics,
              strf("the model gives NaN or infinity: %lld of %zu %s", static_cast<long long>(bad),
                   values.size(), what),
              "vitrail inspect MODEL --stats shows weights that are not finite");
}

}  // namespace vitrail
