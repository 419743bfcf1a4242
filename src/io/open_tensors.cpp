// Opens weights of any container: it is recognised by its first bytes, or refused by name.
#include <filesystem>

#include "base/bytes.h"
#include "base/text.h"
#include "io/model_files.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "io/sealed_folder.h"
#include "io/sharded_tensors.h"
#include "io/torch_file.h"

namespace vitrail {

namespace {

// Formats that are recognised by their first bytes, and refused by name.
struct RefusedRow {
  std::string_view magic, what, hint;
};
constexpr RefusedRow kRefused[] = {
    {"version https://git-lfs", "a Git LFS pointer, not the weights themselves",
     "run git lfs pull in its folder"},
    {"\x93NUMPY", "a single numpy array, expected an .npz of named arrays", "np.savez it under its name"},
    {"\x89HDF", "an HDF5 file, which is not read", "convert it to safetensors"},
    {"GGUF", "a GGUF file, which is not read", "take the safetensors form of the model"},
    {"\x1f\x8b", "compressed by gzip", "gunzip it first"},
    {"<!DOCTYPE", "a web page, probably a failed download", "fetch it again"},
    {"<html", "a web page, probably a failed download", "fetch it again"},
};
constexpr std::string_view kZip = "PK\x03\x04", kEmptyZip = "PK\x05\x06";
constexpr size_t kMagicBytes = 32;

std::unique_ptr<TensorSource> open_zip(std::shared_ptr<const ByteSource> bytes) {
  const std::string name = bytes->name();
  auto zip = with_context(name, [&] { return std::make_unique<ZipReader>(std::move(bytes)); });
  return looks_like_torch(*zip) ? open_torch(std::move(zip), name) : open_npz(std::move(zip), name);
}

std::string magic_of(const ByteSource& bytes) {
  std::string start(static_cast<size_t>(std::min<uint64_t>(bytes.size(), kMagicBytes)), '\0');
  bytes.read_at(0, std::as_writable_bytes(std::span(start)));
  return start;
}

// A safetensors file begins with the length of its header, then the header.
bool is_safetensors(const std::string& magic) {
  return magic.size() > 8 && magic[8] == '{';
}

std::unique_ptr<TensorSource> open_weights(const std::string& path) {
  std::shared_ptr<const ByteSource> bytes = open_sealed(path);
  const std::string magic = magic_of(*bytes);
  for (const RefusedRow& row : kRefused)
    if (magic.starts_with(row.magic))
      throw Error(ErrorKind::kData, strf("%s is %s", path.c_str(), std::string(row.what).c_str()),
                  std::string(row.hint));
  if (magic.starts_with(kTorchLegacyMagic)) return open_torch_legacy(std::move(bytes));
  if (magic.starts_with(kZip) || magic.starts_with(kEmptyZip)) return open_zip(std::move(bytes));
  if (is_safetensors(magic)) return open_safetensors(std::move(bytes));
  throw Error(ErrorKind::kData,
              strf("%s begins with %s: neither safetensors, npz nor a torch file", path.c_str(),
                   quoted(magic.substr(0, 8)).c_str()),
              "check that the download is complete and is a weight file");
}

// Opens an index of shards; any other JSON, such as a log or a config, looks like one until it is read.
std::unique_ptr<TensorSource> open_index(const std::string& path) {
  try {
    return open_sharded(path, open_weights);
  } catch (const Error& error) {
    if (!error.hint().empty()) throw;
    throw Error(error.kind(), error.what(), "give the folder of the model, or its weight file");
  }
}

// Opens weights, or the index of several files of them.
std::unique_ptr<TensorSource> open_file(const std::string& path) {
  const std::string magic = magic_of(*open_sealed(path));
  return magic.starts_with('{') && !is_safetensors(magic) ? open_index(path) : open_weights(path);
}

std::unique_ptr<TensorSource> open_folder(const std::string& path) {
  constexpr const char* kNames[] = {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                                    "pytorch_model.bin.index.json"};
  for (const char* name : kNames) {
    const auto file = std::filesystem::path(path) / name;
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) return open_file(file.string());
  }
  throw Error(ErrorKind::kData,
              strf("%s holds no model.safetensors or pytorch_model.bin, and no index of either's shards",
                   path.c_str()),
              "give the weight file itself");
}

}  // namespace

std::unique_ptr<TensorSource> open_tensors(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? open_folder(path) : open_file(path);
}

}  // namespace vitrail
