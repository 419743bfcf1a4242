#include "io/checkpoint/partners.h"

#include "base/json_text.h"
#include "base/write_error.h"
#include "io/checkpoint/manifest.h"

namespace vitrail {

namespace {

// Says what another rank must know of an error to throw the same.
enum Type { kPlain, kNoRoom, kNewer };

Json told(Type type, ErrorKind kind, const std::string& text, const std::string& hint) {
  return {
      {"error", text}, {"hint", hint}, {"kind", static_cast<int>(kind)}, {"type", static_cast<int>(type)}};
}

Json told(Type type, const Error& error) {
  std::string text;
  for (const std::string& place : error.context()) text += place + ": ";
  return told(type, error.kind(), text + error.message(), error.hint());
}

Json answer_of(const std::function<std::string()>& body) {
  try {
    return {{"done", body()}};
  } catch (const NoRoom& error) {
    return told(kNoRoom, error);
  } catch (const NewerFormat& error) {
    return told(kNewer, error);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kComm) throw;
    return told(kPlain, error);
  } catch (const std::bad_alloc&) {
    return told(kPlain, ErrorKind::kMemory, "out of memory", "");
  } catch (const std::exception& error) {
    return told(kPlain, ErrorKind::kInternal, error.what(), "");
  }
}

[[noreturn]] void throw_told(const Json& answer) {
  const auto kind = static_cast<ErrorKind>(answer.at("kind").get<int>());
  const std::string text = answer.at("error").get<std::string>(), hint = answer.at("hint").get<std::string>();
  const int type = answer.at("type").get<int>();
  if (type == kNoRoom) throw NoRoom(kind, text, hint);
  if (type == kNewer) throw NewerFormat(kind, text, hint);
  throw Error(kind, text, hint);
}

}  // namespace

std::vector<std::string> agreed(Partners& partners, const std::function<std::string()>& body, int* failed) {
  std::vector<Json> answers;
  for (const std::string& text : partners.from_all(json_text(answer_of(body))))
    answers.push_back(parse_json(text, "the answer of a rank"));
  for (const bool other : {true, false})  // than lack of room, which passes where something goes
    for (size_t rank = 0; rank < answers.size(); ++rank) {
      if (answers[rank].contains("done") || (other && answers[rank].at("type") == kNoRoom)) continue;
      if (failed) *failed = static_cast<int>(rank);
      throw_told(answers[rank]);
    }
  std::vector<std::string> results;
  results.reserve(answers.size());
  for (const Json& answer : answers) results.push_back(answer.at("done").get<std::string>());
  return results;
}

}  // namespace vitrail
