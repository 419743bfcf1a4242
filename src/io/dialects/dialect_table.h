// The four dialects as data: which tensor name stands for which parameter, and in what layout. Each has one
// table (timm.cpp, hf.cpp, torchvision.cpp, google.cpp), for reading and for writing.
#pragma once

#include <span>
#include <string_view>

#include "io/model_files.h"

namespace vitrail {

// The form in which a row is written; every row is read. A dialect has at most two forms: Hugging Face's ViT
// and DeiT, google's vit_jax and big_vision.
enum class Form { kAny, kFirst, kSecond, kReadOnly };

struct NameRow {
  const char* source;  // '@' stands for the file's prefix, {i} for the block's number
  const char* layout;  // see layout.h
  const char* param;   // canonical name
  int part = 0;        // index of the parameter's T dim, when the layout has none
  Form form = Form::kAny;
};

struct IgnoredName {
  const char* source;  // as in NameRow; a last '*' matches any rest
  const char* reason;
};

struct DialectTable {
  Dialect dialect;
  const char* key;  // the row's source that identifies the dialect: the patch embedding's kernel
  std::span<const char* const> prefixes;  // what '@' may stand for
  const char* written_prefix[2];          // '@' when written in the first and second form
  std::span<const NameRow> rows;
  std::span<const IgnoredName> ignored;
  std::span<const std::string_view> heads;  // modules that fine-tuning replaces
  const char* stacked = nullptr;  // "from>to": name part of one block and of all blocks in one tensor
};

extern const DialectTable kTimmTable, kHfTable, kTorchvisionTable, kGoogleTable;

const DialectTable& dialect_table(Dialect dialect);
std::span<const DialectTable* const> dialect_tables();

}  // namespace vitrail
