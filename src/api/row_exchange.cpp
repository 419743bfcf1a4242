#include "api/row_exchange.h"

#include "base/json_text.h"
#include "train/agreement.h"

namespace vitrail {

namespace {

Json to_json(const Error& error) {
  return {{"kind", static_cast<int>(error.kind())},
          {"message", error.message()},
          {"hint", error.hint()},
          {"context", error.context()}};
}

Error error_of(const Json& json) {
  Error error(static_cast<ErrorKind>(json.at("kind").get<int>()), json.at("message"), json.at("hint"));
  const auto places = json.at("context").get<std::vector<std::string>>();
  for (auto place = places.rbegin(); place != places.rend(); ++place) error.at(*place);
  return error;
}

// Everything but the numbers: which images, how many numbers each has, and the errors of those without any.
Json outline(const BatchRows& batch) {
  Json rows = Json::array();
  for (const ImageRow& row : batch.rows)
    rows.push_back({row.index, row.values.size(), row.error ? to_json(*row.error) : Json()});
  return {{"rows", rows}, {"notes", batch.notes}};
}

}  // namespace

BatchRows RowExchange::all(BatchRows mine) {
  if (!ranks_ || ranks_->mesh().size(Axis::kData) == 1) return mine;
  Communicator& group = ranks_->over(Axis::kData);
  std::vector<float> own;
  for (const ImageRow& row : mine.rows) own.insert(own.end(), row.values.begin(), row.values.end());
  BatchRows all;
  std::vector<size_t> counts, widths;
  size_t total = 0;
  for (const std::string& text : from_all(group, json_text(outline(mine)))) {
    const Json part = parse_json(text, "the rows of a rank");
    size_t count = 0;
    for (const Json& row : part.at("rows")) {
      widths.push_back(row.at(1).get<size_t>());
      count += widths.back();
      all.rows.push_back({row.at(0).get<size_t>(), {}, std::nullopt});
      if (!row.at(2).is_null()) all.rows.back().error = error_of(row.at(2));
    }
    for (const Json& note : part.at("notes")) all.notes.push_back(note);
    counts.push_back(count);
    total += count;
  }
  values_.resize(total);
  group.run({.kind = Collective::Kind::kAllGather,
             .dtype = DType::kF32,
             .in = own.data(),
             .out = values_.data(),
             .counts = counts});
  size_t at = 0;
  for (size_t i = 0; i < all.rows.size(); at += widths[i++])
    all.rows[i].values = std::span<const float>(values_).subspan(at, widths[i]);
  return all;
}

}  // namespace vitrail
