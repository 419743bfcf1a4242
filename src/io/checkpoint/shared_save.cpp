#include "io/checkpoint/shared_save.h"

#include <filesystem>

#include "base/json_text.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;

// The orders of the first rank.
constexpr const char *kPieces = "pieces", *kModel = "model", *kEnd = "end";

Json ending(const SaveFailed& failed) {
  return {{"do", kEnd},
          {"rank", failed.rank()},
          {"kind", static_cast<int>(failed.kind())},
          {"text", failed.own()},
          {"hint", failed.hint()}};
}

SaveFailed failure_in(const Json& order) {
  return {order.at("rank").get<int>(), static_cast<ErrorKind>(order.at("kind").get<int>()),
          order.at("text").get<std::string>(), order.at("hint").get<std::string>()};
}

}  // namespace

SharedSave::SharedSave(Partners& partners, const CheckpointContent& content, std::string folder)
    : partners_(partners), content_(content), folder_(std::move(folder)) {
  uint64_t mine = 0;
  for (const PartToWrite& part : content.parts) mine += part.tensor.info.bytes;
  for (const std::string& bytes : partners.from_all(std::to_string(mine))) state_bytes_ += std::stoull(bytes);
}

void SharedSave::lead(const std::function<void()>& save) {
  const auto fail = [this](ErrorKind kind, const std::string& text, const std::string& hint) {
    const SaveFailed failed(text == failed_text_ ? failed_ : 0, kind, text, hint);
    order(ending(failed));
    throw SaveFailed(failed);
  };
  try {
    save();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kComm) throw;
    fail(error.kind(), error.message(), error.hint());
  } catch (const std::exception& error) {
    fail(ErrorKind::kInternal, error.what(), "");
  }
  order({{"do", kEnd}});
}

void SharedSave::follow() {
  for (;;) {
    const Json order = parse_json(partners_.from_first(""), "an order of rank 0");
    const std::string what = order.at("do").get<std::string>();
    if (what == kModel) {
      if (content_.help_model) content_.help_model();
    } else if (what == kPieces) {
      try {
        pieces_of_all(folder_ + "/" + order.at("folder").get<std::string>(),
                      order.at("save").get<std::string>());
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::kComm) throw;  // of any other, the first rank decides what follows
      }
    } else {
      if (order.contains("rank")) throw failure_in(order);
      return;
    }
  }
}

std::vector<std::string> SharedSave::pieces_of_all(const std::string& folder, const std::string& save) {
  return agreed(
      partners_,
      [&] {
        const PieceMark mark{save, partners_.rank(), partners_.size()};
        return json_text(to_json(write_piece(folder, mark, content_.parts)));
      },
      &failed_);
}

std::vector<FileRecord> SharedSave::write_pieces(const std::string& folder, const std::string& save) {
  order({{"do", kPieces}, {"folder", fs::path(folder).filename().string()}, {"save", save}});
  std::vector<FileRecord> records;
  try {
    for (const std::string& text : pieces_of_all(folder, save))
      records.push_back(record_from(parse_json(text, "the record of a piece")));
    require_seen(folder, records);
  } catch (const Error& error) {
    failed_text_ = error.message();
    throw;
  }
  return records;
}

// Ranks of another host may see another folder under the same name.
void SharedSave::require_seen(const std::string& folder, const std::vector<FileRecord>& records) {
  for (size_t rank = 0; rank < records.size(); ++rank) {
    const std::string path = folder + "/" + records[rank].name;
    std::error_code missing;
    failed_ = static_cast<int>(rank);
    VT_REQUIRE(fs::file_size(path, missing) == records[rank].bytes && !missing, ErrorKind::kWrite,
               "what was written to %s is not there for rank 0: the folder is not the same on both hosts",
               path.c_str());
  }
}

void SharedSave::write_model(const std::string& folder) {
  if (!content_.write_model) return;
  order({{"do", kModel}});
  content_.write_model(folder);
}

}  // namespace vitrail
