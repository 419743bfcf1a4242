#include "io/dialects/bind.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "io/dialects/refusals.h"

namespace vitrail {

namespace {

constexpr int64_t kMaxBlocks = 1024;
// Wrappers that training programs put before every name.
constexpr std::string_view kWrappers[] = {"module.", "model.", "state_dict.", "_orig_mod.", "timm_model."};
// What training checkpoints hold beside the model, outside the wrapper.
constexpr IgnoredName kBesideTheModel[] = {
    {"optimizer*", "optimizer state"},   {"model_ema*", "averaged weights"}, {"ema*", "averaged weights"},
    {"lr_scheduler*", "training state"}, {"scaler*", "training state"},      {"amp*", "training state"},
};

struct Match {
  int64_t block = -1;
};

// Matches a name against a pattern with at most one {i} and, at its end, at most one '*'.
std::optional<Match> match(std::string_view pattern, std::string_view name) {
  Match found;
  size_t n = 0;
  for (size_t p = 0; p < pattern.size();) {
    if (pattern[p] == '*') return found;
    if (pattern.substr(p, 3) == "{i}") {
      const size_t first = n;
      int64_t value = 0;
      while (n < name.size() && name[n] >= '0' && name[n] <= '9' && value < kMaxBlocks)
        value = value * 10 + (name[n++] - '0');
      if (n == first || value >= kMaxBlocks || (name[first] == '0' && n > first + 1)) return std::nullopt;
      found.block = value;
      p += 3;
      continue;
    }
    if (n >= name.size() || name[n] != pattern[p]) return std::nullopt;
    ++p, ++n;
  }
  return n == name.size() ? std::optional(found) : std::nullopt;
}

std::string expand(const char* source, const std::string& prefix) {
  return source[0] == '@' ? prefix + (source + 1) : source;
}

std::string_view strip_wrappers(std::string_view name, std::string_view* rest) {
  std::string_view left = name;
  for (bool again = true; again;) {
    again = false;
    for (std::string_view wrapper : kWrappers)
      if (left.starts_with(wrapper)) {
        left.remove_prefix(wrapper.size());
        again = true;
      }
  }
  *rest = left;
  return name.substr(0, name.size() - left.size());
}

struct Found {
  const DialectTable* table = nullptr;
  std::string wrapper, prefix;
};

Found find_dialect(const TensorSource& source) {
  for (const DialectTable* table : dialect_tables())
    for (const TensorInfo& tensor : source.tensors()) {
      std::string_view rest;
      const std::string_view wrapper = strip_wrappers(tensor.name, &rest);
      for (const char* prefix : table->prefixes)
        if (rest == prefix + std::string(table->key)) return {table, std::string(wrapper), prefix};
    }
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(source.tensors().size(), 4); ++i)
    names += (i ? ", " : "") + quoted(source.tensors()[i].name);
  throw Error(ErrorKind::kData,
              "the tensors are not named as timm, Hugging Face, torchvision or google name a ViT's (found " +
                  (names.empty() ? "none" : names) + ")",
              "vitrail inspect shows all of them");
}

class Binder {
 public:
  Binder(const TensorSource& source, Found found) : source_(source), found_(std::move(found)) {
    binding_.table = found_.table;
    binding_.prefix = found_.prefix;
    for (const NameRow& row : found_.table->rows) patterns_.push_back(expand(row.source, found_.prefix));
    if (found_.table->stacked) {
      const std::string rule = found_.table->stacked;
      from_ = rule.substr(0, rule.find('>'));
      to_ = rule.substr(rule.find('>') + 1) + "/";
      from_ += "/";
    }
  }

  Binding run() {
    for (size_t i = 0; i < source_.tensors().size(); ++i) bind(i);
    if (!unexpected_.empty()) refuse_unexpected();
    return std::move(binding_);
  }

 private:
  void bind(size_t index) {
    std::string_view name = source_.tensors()[index].name;
    if (!name.starts_with(found_.wrapper)) {
      if (!ignore(kBesideTheModel, "", name)) unexpected_.emplace_back(name);
      return;
    }
    name.remove_prefix(found_.wrapper.size());
    for (size_t r = 0; r < patterns_.size(); ++r) {
      if (const auto found = match(patterns_[r], name)) return add(index, r, found->block);
      if (const auto at = patterns_[r].find(from_); !from_.empty() && at != std::string::npos) {
        std::string stacked = patterns_[r];
        if (stacked.replace(at, from_.size(), to_) == name) return add_stacked(index, r);
      }
    }
    if (!ignore(found_.table->ignored, found_.prefix, name)) unexpected_.emplace_back(name);
  }

  void add(size_t index, size_t r, int64_t block, int64_t slice = -1) {
    const NameRow& row = found_.table->rows[r];
    const std::string param = with_block(row.param, block);
    std::vector<Piece>& pieces = binding_.pieces[param];
    for (const Piece& other : pieces)
      VT_REQUIRE(other.row->part != row.part, ErrorKind::kData, "%s and %s both stand for %s",
                 quoted(source_.tensors()[other.tensor].name).c_str(),
                 quoted(source_.tensors()[index].name).c_str(), param.c_str());
    pieces.push_back({index, &row, slice});
    binding_.depth = std::max(binding_.depth, block + 1);
  }

  void add_stacked(size_t index, size_t r) {
    const TensorInfo& tensor = source_.tensors()[index];
    const int64_t blocks = tensor.shape.empty() ? 0 : tensor.shape[0];
    VT_REQUIRE(blocks >= 1 && blocks <= kMaxBlocks, ErrorKind::kData,
               "%s stacks %lld blocks; between 1 and %lld are supported", quoted(tensor.name).c_str(),
               static_cast<long long>(blocks), static_cast<long long>(kMaxBlocks));
    for (int64_t i = 0; i < blocks; ++i) add(index, r, i, i);
  }

  bool ignore(std::span<const IgnoredName> rows, const std::string& prefix, std::string_view name) {
    for (const IgnoredName& row : rows) {
      if (!match(expand(row.source, prefix), name)) continue;
      const std::string note =
          strf("%s left out: %s", row.source[0] == '@' ? row.source + 1 : row.source, row.reason);
      if (std::find(binding_.notes.begin(), binding_.notes.end(), note) == binding_.notes.end())
        binding_.notes.push_back(note);
      return true;
    }
    return false;
  }

  [[noreturn]] void refuse_unexpected() const {
    std::string names;
    for (size_t i = 0; i < std::min<size_t>(unexpected_.size(), 5); ++i)
      names += (i ? ", " : "") + quoted(unexpected_[i]);
    if (unexpected_.size() > 5) names += strf(" and %zu more", unexpected_.size() - 5);
    throw Error(
        ErrorKind::kData,
        strf("not a plain ViT: in %s names, unexpected %s", enum_name(found_.table->dialect), names.c_str()),
        "vitrail inspect shows all tensors");
  }

  const TensorSource& source_;
  Found found_;
  std::string from_, to_;  // name parts of one block and of all blocks stacked
  std::vector<std::string> patterns_, unexpected_;
  Binding binding_;
};

// A classifier's file may carry the base model's pooler, which the classifier does not use.
void drop_unused_pooler(Binding* binding) {
  if (binding->table->dialect != Dialect::kHf || !binding->has("head.weight")) return;
  if (binding->pieces.erase("pre_logits.fc.weight") + binding->pieces.erase("pre_logits.fc.bias") > 0)
    binding->notes.push_back("pooler.dense left out: the classifier does not use it");
}

}  // namespace

std::string with_block(const char* pattern, int64_t block) {
  std::string text = pattern;
  if (const auto at = text.find("{i}"); at != std::string::npos) text.replace(at, 3, std::to_string(block));
  return text;
}

Binding bind_tensors(const TensorSource& source) {
  refuse_other_families(source);
  Binding binding = Binder(source, find_dialect(source)).run();
  drop_unused_pooler(&binding);
  return binding;
}

const DialectTable& dialect_table(Dialect dialect) {
  for (const DialectTable* table : dialect_tables())
    if (table->dialect == dialect) return *table;
  throw Error(ErrorKind::kInternal, "a dialect has no table");
}

std::span<const DialectTable* const> dialect_tables() {
  static const DialectTable* const tables[] = {&kTimmTable, &kHfTable, &kTorchvisionTable, &kGoogleTable};
  return tables;
}

}  // namespace vitrail
