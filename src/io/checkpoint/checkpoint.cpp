#include "io/checkpoint/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/run_files.h"
#include "base/write_error.h"
#include "io/checkpoint/checkpoint_files.h"
#include "io/checkpoint/durable.h"
#include "io/checkpoint/shared_save.h"
#include "io/checkpoint/unfinished.h"

namespace vitrail {

namespace {

namespace fs = std::filesystem;

// The prefix of a checkpoint that is being replaced by another of the same step.
constexpr std::string_view kAside = ".tmp-old-";

std::string step_name(int64_t step) {
  return strf("step-%08lld", static_cast<long long>(step));
}

std::optional<int64_t> step_of(const std::string& name) {
  int64_t step = 0;
  if (!name.starts_with("step-")) return std::nullopt;
  std::from_chars(name.data() + 5, name.data() + name.size(), step);
  return step >= 0 && step_name(step) == name ? std::optional(step) : std::nullopt;
}

std::string at(const std::string& folder, const std::string& name) {
  return folder + "/" + name;
}

// A new folder for unfinished work, deleted when the scope ends unless it was renamed to its final name.
class Unfinished {
 public:
  explicit Unfinished(std::string path) : path_(std::move(path)) { make_new_folder(path_); }
  ~Unfinished() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Every rank checks its share, and all of them must see the same checkpoint; `check` returns what identifies
// it.
void check_together(Partners& partners, const std::function<std::string()>& check) {
  int failed = 0;
  try {
    const std::vector<std::string> seen = agreed(partners, check, &failed);
    for (size_t rank = 1; rank < seen.size(); ++rank)
      VT_REQUIRE(seen[rank] == seen[0], ErrorKind::kData,
                 "rank %zu sees another checkpoint than rank 0: the folder is not the same on both hosts",
                 rank);
  } catch (Error& error) {
    if (failed > 0) error.at("rank " + std::to_string(failed));
    throw;
  }
}

}  // namespace

void validate(const CheckpointPolicy& policy) {
  VT_REQUIRE(policy.keep_last >= kLeastGood, ErrorKind::kConfig,
             "checkpoint.keep_last is %lld, expected at least 2: one may turn out damaged",
             static_cast<long long>(policy.keep_last));
  VT_REQUIRE(policy.keep_every >= 0, ErrorKind::kConfig, "checkpoint.keep_every is %lld, expected 0 or more",
             static_cast<long long>(policy.keep_every));
}

CheckpointStore::CheckpointStore(std::string run_folder, CheckpointPolicy policy)
    : folder_(RunFiles(std::move(run_folder)).checkpoints()), policy_(policy) {
  validate(policy_);
}

std::string CheckpointStore::folder_of(int64_t step) const {
  return at(folder_, step_name(step));
}

std::string CheckpointStore::unfinished(const std::string& name) const {
  return at(folder_, unfinished_name(name));
}

std::vector<std::string> CheckpointStore::prepare(bool sole) {
  make_folders(folder_);
  for (const std::string& name : names_in(folder_))
    if (name.starts_with(kAside) && step_of(name.substr(kAside.size())))
      finish_replacing(at(folder_, name.substr(kAside.size())), at(folder_, name));
  std::vector<std::string> removed = remove_unfinished(folder_, sole);
  const Unfinished probe(unfinished("probe"));
  write_file(at(probe.path(), "probe"), "x");
  return removed;
}

void CheckpointStore::write_folder(const CheckpointContent& content, SharedSave* together) {
  const Unfinished folder(unfinished(step_name(content.step)));
  write_checkpoint_files(content, folder.path(), together);
  judged_.erase(content.step);
  const std::string aside = at(folder_, std::string(kAside) + step_name(content.step));
  replace_folder(folder.path(), folder_of(content.step), aside);
  judged_[content.step] = true;
}

// A quota does not show in the free bytes, only when a write fails.
void CheckpointStore::write_making_room(const CheckpointContent& content, int64_t least_good,
                                        SharedSave* together) {
  const auto had_room = [&] {
    try {
      write_folder(content, together);
      return true;
    } catch (const NoRoom&) {
      return false;
    }
  };
  std::vector<int64_t> older = removable(least_good);
  for (; !older.empty() && !had_room(); older.erase(older.begin())) remove_for_room(older.front());
  if (older.empty()) write_folder(content, together);
}

void CheckpointStore::save(const CheckpointContent& content, int64_t least_good, Partners* partners) {
  VT_CHECK(content.step >= 0 && content.facts.is_object());
  if (!partners) return save_as_first(content, least_good, nullptr);
  SharedSave together(*partners, content, folder_);
  if (partners->rank() != 0) return together.follow();
  together.lead([&] { save_as_first(content, least_good, &together); });
}

void CheckpointStore::save_as_first(const CheckpointContent& content, int64_t least_good,
                                    SharedSave* together) {
  uint64_t bytes = content.model_bytes + (together ? together->state_bytes() : 0);
  for (const TensorToWrite& tensor : content.state) bytes += tensor.info.bytes;
  try {
    if (content.before) content.before();
    make_folders(folder_);
    make_room(bytes + bytes / 5, least_good);
    write_making_room(content, least_good, together);
    replace_link(at(folder_, RunFiles::kLatest), step_name(content.step), unfinished(RunFiles::kLatest));
    remove_outdated(content);
  } catch (const Error& error) {
    // A checkpoint that cannot be read back counts as not written.
    if (error.kind() != ErrorKind::kData) throw;
    throw Error(ErrorKind::kWrite, error.what());
  }
}

void CheckpointStore::remove_outdated(const CheckpointContent& content) {
  for (const int64_t step : steps())
    if (step == content.replaces && step != content.step) remove(step);
  if (!content.counts) return;
  for (const int64_t step : removable(policy_.keep_last))
    if (step != content.step) remove(step);
}

void CheckpointStore::make_room(uint64_t bytes, int64_t least_good) {
  if (!has_space(folder_, bytes))
    for (const int64_t step : removable(least_good)) {
      remove_for_room(step);
      if (has_space(folder_, bytes)) return;
    }
  require_space(folder_, bytes);
}

std::vector<int64_t> CheckpointStore::steps() const {
  std::vector<int64_t> steps;
  for (const std::string& name : names_in(folder_))
    if (const auto step = step_of(name)) steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

OpenedCheckpoint CheckpointStore::open(int64_t step, Partners* partners) {
  OpenedCheckpoint opened{step, folder_of(step), {}, nullptr};
  judged_[step] = false;
  const auto check = [&] {
    Manifest manifest = verified_manifest(opened.folder, step, partners);
    opened.state = open_state(opened.folder, manifest);
    opened.facts = manifest.facts;
    return strf("%08x", crc32c(as_byte_span(manifest_text(manifest))));
  };
  if (partners)
    check_together(*partners, check);
  else
    check();
  judged_[step] = true;
  return opened;
}

// Ranks of other hosts may see a change later than the first one.
std::vector<int64_t> CheckpointStore::seen_by_first(Partners& partners) const {
  const std::string mine = partners.rank() == 0 ? Json(steps()).dump() : "";
  return parse_json(partners.from_first(mine), "the checkpoints that rank 0 sees")
      .get<std::vector<int64_t>>();
}

std::optional<OpenedCheckpoint> CheckpointStore::newest_good(std::vector<std::string>* problems,
                                                             Partners* partners, const Wanted& wanted) {
  std::vector<int64_t> known = partners ? seen_by_first(*partners) : steps();
  for (; !known.empty(); known.pop_back()) {
    try {
      OpenedCheckpoint opened = open(known.back(), partners);
      if (!wanted || wanted(opened.facts)) return opened;
    } catch (const NewerFormat&) {
      throw;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData) throw;
      if (problems) problems->push_back(error.what());
    }
  }
  return std::nullopt;
}

bool CheckpointStore::is_good(int64_t step) {
  const auto known = judged_.find(step);
  if (known != judged_.end()) return known->second;
  try {
    open(step);
  } catch (const NewerFormat&) {
    judged_[step] = true;  // its own version can read it
  } catch (const Error&) {
  }
  return judged_[step];
}

// Returns the checkpoints that may be deleted while `good_ones` good ones stay, ascending.
std::vector<int64_t> CheckpointStore::removable(int64_t good_ones) {
  const auto is_milestone = [&](int64_t step) {
    return policy_.keep_every > 0 && step > 0 && step % policy_.keep_every == 0;
  };
  int64_t good = 0;
  std::vector<int64_t> known = steps(), older;
  for (; !known.empty(); known.pop_back()) {
    const int64_t step = known.back();
    if (good < good_ones)
      good += is_good(step);
    else if (!is_milestone(step))
      older.insert(older.begin(), step);
  }
  return older;
}

void CheckpointStore::remove(int64_t step) {
  remove_folder(folder_of(step));
  judged_.erase(step);
}

void CheckpointStore::remove_after(int64_t step) {
  for (const int64_t later : steps())
    if (later > step) remove(later);
}

void CheckpointStore::remove_for_room(int64_t step) {
  remove(step);
  if (made_room_) made_room_(step);
}

}  // namespace vitrail
