#include "io/dialects/bind.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "io/dialects/find_dialect.h"

namespace vitrail {

namespace {

constexpr int64_t kMaxBlocks = 1024;

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
    ++p;
    ++n;
  }
  return n == name.size() ? std::optional(found) : std::nullopt;
}

// torch's programs wrap parts of a model too: a block that is recomputed, an MLP that is compiled.
std::string without_inner_wrappers(std::string_view name) {
  std::string plain(name);
  for (const char* wrapper : {"_checkpoint_wrapped_module.", "_fsdp_wrapped_module.", "_orig_mod."})
    for (size_t at = 0; (at = plain.find(wrapper, at)) != plain.npos;) plain.erase(at, strlen(wrapper));
  return plain;
}

std::string expand(const char* source, const std::string& prefix) {
  return source[0] == '@' ? prefix + (source + 1) : source;
}

class Binder {
 public:
  Binder(const TensorSource& source, FoundDialect found) : source_(source), found_(std::move(found)) {
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
    bind_exchanged_head();
    if (!unexpected_.empty()) refuse_unexpected();
    return std::move(binding_);
  }

 private:
  void bind(size_t index) {
    std::string_view name = source_.tensors()[index].name;
    if (!name.starts_with(found_.wrapper)) {
      if (!ignore(names_beside_the_model(), "", name)) unexpected_.emplace_back(name);
      return;
    }
    name.remove_prefix(found_.wrapper.size());
    const std::string plain = without_inner_wrappers(name);
    name = plain;
    // transformers 5 saves the blocks of ViT-MSN, and nothing else of it, without the prefix.
    const std::string prefixed = found_.prefix + plain;
    if (found_.table->dialect == Dialect::kHf && name.starts_with("encoder.layer.")) name = prefixed;
    for (size_t r = 0; r < patterns_.size(); ++r) {
      if (const auto found = match(patterns_[r], name)) return add(index, r, found->block);
      if (const auto at = patterns_[r].find(from_); !from_.empty() && at != std::string::npos) {
        std::string stacked = patterns_[r];
        if (stacked.replace(at, from_.size(), to_) == name) return add_stacked(index, r);
      }
    }
    if (is_of_head(name))
      head_.push_back(index);
    else if (!ignore(found_.table->ignored, found_.prefix, name))
      unexpected_.emplace_back(name);
  }

  bool is_of_head(std::string_view name) const {
    return std::any_of(found_.table->heads.begin(), found_.table->heads.end(), [&](std::string_view head) {
      return name.starts_with(head) && name.substr(head.size()).starts_with('.');
    });
  }

  // Binds a head that fine-tuning replaced: one linear layer, whatever its name within the head
  // ("heads.1.weight" after a dropout).
  void bind_exchanged_head() {
    if (head_.empty()) return;
    std::string layers, weight;
    for (const size_t index : head_) {
      const std::string& name = source_.tensors()[index].name;
      if (!name.ends_with(".weight")) continue;
      weight = name;
      layers += (layers.empty() ? "" : ", ") + quoted(name);
    }
    const std::string bias = weight.substr(0, weight.size() - std::min(weight.size(), size_t{6})) + "bias";
    for (const size_t index : head_) {
      const TensorInfo& tensor = source_.tensors()[index];
      const bool is_weight = tensor.name == weight && tensor.shape.size() == 2;
      const std::string param = is_weight ? "head.weight" : "head.bias";
      if ((!is_weight && tensor.name != bias) || binding_.has(param))
        throw Error(
            ErrorKind::kData,
            strf("the head is not one linear layer: it has %s, and what is done between its layers is "
                 "not in the file",
                 layers.empty() ? quoted(tensor.name).c_str() : layers.c_str()),
            "a model whose head is one nn.Linear, with or without a dropout before it");
      add(index, row_for(param), -1);
    }
    binding_.notes.push_back(
        strf("the head is %s alone: a dropout before it changes nothing, anything else is not in the file",
             quoted(weight).c_str()));
  }

  size_t row_for(std::string_view param) const {
    const auto rows = found_.table->rows;
    const auto at =
        std::find_if(rows.begin(), rows.end(), [&](const NameRow& row) { return row.param == param; });
    VT_CHECK(at != rows.end(), "the dialect's table has no row for a head");
    return static_cast<size_t>(at - rows.begin());
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
  FoundDialect found_;
  std::string from_, to_;  // name parts of one block and of all blocks stacked
  std::vector<std::string> patterns_, unexpected_;
  std::vector<size_t> head_;  // tensors within the head under names of their own
  Binding binding_;
};

// A classifier's file may carry the base model's pooler, which the classifier does not use.
void drop_unused_pooler(Binding* binding) {
  if (binding->table->dialect != Dialect::kHf || !binding->has("head.weight")) return;
  if (binding->pieces.erase("pre_logits.fc.weight") + binding->pieces.erase("pre_logits.fc.bias") > 0)
    binding->notes.push_back("pooler.dense left out: the classifier does not use it");
}

// transformers' base model pools its first token, which without a class token is an ordinary patch.
void require_class_token(const Binding& binding) {
  VT_REQUIRE(binding.table->dialect != Dialect::kHf || binding.has("cls_token") || binding.has("head.weight"),
             ErrorKind::kData,
             "the model has neither a class token nor a classifier: nothing stands for the image");
}

// Without a head of its own, the distillation token of transformers' DeiT is one more token that the class
// token can attend to, like a register with a position.
void take_unread_token_as_register(Binding* binding) {
  if (binding->table->dialect != Dialect::kHf || binding->has("head_dist.weight")) return;
  auto token = binding->pieces.extract("dist_token");
  if (token.empty()) return;
  token.key() = "reg_token";
  binding->pieces.insert(std::move(token));
  binding->notes.push_back("the distillation token has no head: it is one more token beside the others");
}

// timm's distilled ViT may have registers and a norm after pooling, which its forward pass leaves out.
void drop_what_distilled_leaves_out(Binding* binding) {
  if (binding->table->dialect != Dialect::kTimm || !binding->has("dist_token")) return;
  for (const char* name : {"reg_token", "fc_norm.weight", "fc_norm.bias"})
    if (binding->pieces.erase(name) > 0)
      binding->notes.push_back(strf("%s left out: timm's distilled ViT does not use it", name));
}

// A linear layer without a bias is the same as one with a bias of zeros. Either all layers of the blocks lack
// theirs, or the file is incomplete.
void add_absent_biases(Binding* binding) {
  constexpr const char* kOfBlocks[] = {"attn.proj.bias", "mlp.fc1.bias", "mlp.fc2.bias"};
  const auto absent = [&](const std::string& bias) {
    return !binding->has(bias) && binding->has(bias.substr(0, bias.size() - 4) + "weight");
  };
  for (const char* bias : {"patch_embed.proj.bias", "head.bias", "head_dist.bias"})
    if (absent(bias) && !(binding->has("norm_pre.weight") && bias[0] == 'p')) binding->zeros.insert(bias);
  std::set<std::string> of_blocks;
  for (int64_t i = 0; i < binding->depth; ++i)
    for (const char* bias : kOfBlocks)
      if (const std::string name = strf("blocks.%lld.%s", static_cast<long long>(i), bias); absent(name))
        of_blocks.insert(name);
  if (of_blocks.size() == std::size(kOfBlocks) * static_cast<size_t>(binding->depth))
    binding->zeros.merge(of_blocks);
  if (!binding->zeros.empty())
    binding->notes.push_back(
        strf("%s and %zu more: no bias", binding->zeros.begin()->c_str(), binding->zeros.size() - 1));
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
  require_class_token(binding);
  take_unread_token_as_register(&binding);
  drop_what_distilled_leaves_out(&binding);
  add_absent_biases(&binding);
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
