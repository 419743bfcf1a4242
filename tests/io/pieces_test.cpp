// State in pieces: whatever way tensors are cut, they are read as they were; pieces that do not fit together
// are refused by name.
#include "io/checkpoint/pieces.h"

#include <gtest/gtest.h>

#include <numeric>

#include "io/safetensors.h"
#include "io/samples.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

// The elements of a whole tensor that a part holds, by counting through the box.
std::vector<int64_t> elements_of(const TensorPart& part) {
  std::vector<int64_t> all;
  for (int64_t element = 0; element < part.whole_elems(); ++element) {
    bool inside = true;
    int64_t rest = element;
    for (size_t dim = part.shape.size(); dim-- > 0; rest /= part.shape[dim]) {
      const int64_t at = rest % part.shape[dim] - part.offset[dim];
      inside = inside && at >= 0 && at < part.local[dim];
    }
    if (inside) all.push_back(element);
  }
  return {all.begin() + part.first, all.begin() + part.first + part.count};
}

TensorPart part(std::vector<int64_t> shape, std::vector<int64_t> offset, std::vector<int64_t> local,
                int64_t first = 0, int64_t count = -1) {
  TensorPart made{std::move(shape), std::move(offset), std::move(local), first, count};
  if (count < 0) made.count = made.box_elems() - first;
  return made;
}

const TensorPart kParts[] = {
    TensorPart::whole({}),
    TensorPart::whole({7}),
    part({7}, {2}, {3}),
    part({4, 6}, {1, 0}, {2, 6}),
    part({4, 6}, {0, 2}, {4, 3}),
    part({4, 6}, {1, 1}, {3, 4}, 2, 7),
    part({3, 4, 5}, {0, 1, 0}, {3, 2, 5}),
    part({3, 4, 5}, {0, 1, 0}, {3, 2, 5}, 9, 12),
    part({3, 4, 2, 3}, {1, 0, 0, 1}, {2, 4, 2, 1}, 1, 14),
    part({4, 6}, {2, 0}, {0, 6}, 0, 0),
    part({4, 6}, {0, 0}, {4, 6}, 5, 0),
};

TEST(TensorPart, RunsAreItsElementsInOrder) {
  for (const TensorPart& p : kParts) {
    SCOPED_TRACE(to_json(p).dump());
    const std::vector<int64_t> wanted = elements_of(p);
    for (int64_t begin = 0; begin <= p.whole_elems(); ++begin)
      for (int64_t end = begin; end <= p.whole_elems(); ++end) {
        std::vector<int64_t> found, expected;
        for (const auto& run : runs_in(p, begin, end))
          for (int64_t i = 0; i == 0 || i < run.count; ++i) {
            ASSERT_GT(run.count, 0) << "none is empty";
            ASSERT_EQ(wanted.at(static_cast<size_t>(run.at + i)), run.from + i);
            found.push_back(run.from + i);
          }
        for (const int64_t element : wanted)
          if (element >= begin && element < end) expected.push_back(element);
        ASSERT_EQ(found, expected) << begin << " to " << end;
      }
    EXPECT_EQ(part_from(to_json(p)), p);
  }
}

TEST(TensorPart, WhatIsNoPartIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "\"shape\""},
      {R"({"shape": [2], "offset": [0], "local": [2]})", "\"range\""},
      {R"({"shape": [2], "offset": [0], "local": [2], "range": [0]})", "first and count"},
      {R"({"shape": [2], "offset": [0, 0], "local": [2], "range": [0, 2]})", "2 offsets"},
      {R"({"shape": [2], "offset": [1], "local": [2], "range": [0, 2]})", "beyond dim 0"},
      {R"({"shape": [0], "offset": [0], "local": [0], "range": [0, 0]})", "beyond dim 0"},
      {R"({"shape": [2], "offset": [0], "local": [2], "range": [1, 2]})", "elements 1 to 3 of 2"},
      {R"({"shape": [2], "offset": [-1], "local": [2], "range": [0, 2]})", "no count"},
      {R"({"shape": [2], "offset": [18446744073709551615], "local": [2], "range": [0, 2]})", "no count"},
      {R"({"shape": [4294967296, 4294967296], "offset": [0, 0], "local": [1, 1], "range": [0, 1]})",
       "too many"},
      {R"({"shape": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1], "offset": [], "local": [], "range": [0, 1]})",
       "at most 16"},
  };
  for (const auto& [json, says] : cases) {
    SCOPED_TRACE(json);
    expect_refusal(says, [json = json] { part_from(parse_json(json, "test")); });
  }
}

// Element i of every tensor is i.
PartToWrite counted(const std::string& name, const TensorPart& p) {
  return part_to_write(name, DType::kI32, p, [p](std::span<std::byte> target) {
    std::vector<int32_t> values;
    for (const int64_t element : elements_of(p)) values.push_back(static_cast<int32_t>(element));
    const auto bytes = std::as_bytes(std::span(values));
    ASSERT_EQ(bytes.size(), target.size());
    std::copy(bytes.begin(), bytes.end(), target.begin());
  });
}

std::vector<int32_t> read_elements(const TensorSource& source, size_t index, int64_t from, int64_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  source.read_part(index, static_cast<size_t>(from) * 4, std::as_writable_bytes(std::span(values)));
  return values;
}

// "w" of 4 x 6 and "v" of 5, cut in three; what a rank holds is given for each.
using Cut = std::vector<std::vector<std::pair<const char*, TensorPart>>>;
const TensorPart kV = TensorPart::whole({5});
const Cut kCuts[] = {
    {{{"w", part({4, 6}, {0, 0}, {4, 2})}, {"v", kV}},
     {{"w", part({4, 6}, {0, 2}, {4, 3})}},
     {{"w", part({4, 6}, {0, 5}, {4, 1})}}},
    {{{"w", part({4, 6}, {0, 0}, {4, 6}, 0, 11)}}, {}, {{"w", part({4, 6}, {0, 0}, {4, 6}, 11)}, {"v", kV}}},
    {{{"w", part({4, 6}, {0, 0}, {4, 3}, 0, 5)}},
     {{"w", part({4, 6}, {0, 3}, {4, 3})}, {"v", kV}},
     {{"w", part({4, 6}, {0, 0}, {4, 3}, 5)}}},
    {{{"w", part({4, 6}, {2, 0}, {2, 6})}, {"v", part({5}, {0}, {5}, 3, 2)}},
     {{"w", part({4, 6}, {0, 0}, {2, 6})}},
     {{"v", part({5}, {0}, {5}, 0, 3)}}},
};

void write_cut(const std::string& folder, const Cut& cut, const std::string& save = "one") {
  for (size_t rank = 0; rank < cut.size(); ++rank) {
    std::vector<PartToWrite> parts;
    for (const auto& [name, p] : cut[rank]) parts.push_back(counted(name, p));
    const FileRecord record =
        write_piece(folder, {save, static_cast<int64_t>(rank), static_cast<int64_t>(cut.size())}, parts);
    EXPECT_EQ(record.name, piece_name(static_cast<int64_t>(rank), static_cast<int64_t>(cut.size())));
    EXPECT_EQ(record.bytes, fs::file_size(folder + "/" + record.name));
  }
}

TEST(Pieces, AreReadWholeAndByRanges) {
  for (const Cut& cut : kCuts) {
    const TempFolder folder;
    write_cut(folder.path().string(), cut);
    const auto source = open_pieces(folder.path().string(), "one", 3);
    EXPECT_EQ(source->files().size(), 3u);
    ASSERT_EQ(source->tensors().size(), 2u);
    std::vector<std::byte> three(3), four(4);
    EXPECT_THROW(source->read_part(0, 0, three), Error) << "whole elements alone";
    EXPECT_THROW(source->read_part(0, 1, four), Error);
    for (const TensorInfo& info : source->tensors()) {
      const size_t index = *source->find(info.name);
      const int64_t elems = info.name == "w" ? 24 : 5;
      EXPECT_EQ(info.shape, info.name == "w" ? (std::vector<int64_t>{4, 6}) : std::vector<int64_t>{5});
      for (int64_t from = 0; from < elems; ++from)
        for (int64_t count = 0; from + count <= elems; ++count) {
          std::vector<int32_t> wanted(static_cast<size_t>(count));
          std::iota(wanted.begin(), wanted.end(), static_cast<int32_t>(from));
          ASSERT_EQ(read_elements(*source, index, from, count), wanted) << info.name;
        }
    }
  }
}

TEST(Pieces, ElementsInNoneOrInTwoAreRefused) {
  const struct {
    Cut cut;
    const char* says;
  } cases[] = {
      {{{{"v", part({5}, {0}, {2})}}, {{"v", part({5}, {3}, {2})}}},
       "elements of v from 2 on are in no piece"},
      {{{{"v", part({5}, {1}, {4})}}, {}}, "elements of v from 0 on are in no piece"},
      {{{{"v", part({5}, {0}, {5}, 0, 4)}}, {}}, "elements of v from 4 on are in no piece"},
      {{{{"v", part({5}, {0}, {3})}}, {{"v", part({5}, {2}, {3})}}},
       "elements of v from 2 on are in state-00000-of-00002.safetensors and in "
       "state-00001-of-00002.safetensors"},
      {{{{"v", kV}}, {{"v", kV}}}, "elements of v from 0 on are in"},
      {{{{"w", part({4, 6}, {0, 0}, {4, 4})}}, {{"w", part({4, 6}, {0, 3}, {4, 3})}}}, "from 3 on are in"},
      {{{{"v", part({5}, {0}, {3})}}, {{"v", part({6}, {3}, {2})}}}, "another type or shape"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.says);
    const TempFolder folder;
    write_cut(folder.path().string(), c.cut);
    expect_refusal(c.says, [&] { open_pieces(folder.path().string(), "one", 2); });
  }
}

TEST(Pieces, AreOfOneTypeAndNamedByTheFirst) {
  const TempFolder folder;
  const std::string here = folder.path().string();
  write_piece(here, {"one", 0, 2}, {counted("v", part({5}, {0}, {3}))});
  PartToWrite floats = counted("v", part({5}, {3}, {2}));
  floats.tensor.info.dtype = DType::kF32;  // of as many bytes
  write_piece(here, {"one", 1, 2}, {floats});
  expect_refusal("v has another type or shape than in the pieces before",
                 [&] { open_pieces(here, "one", 2); });
  write_piece(here, {"one", 1, 2}, {});
  expect_refusal(folder / piece_name(0, 2) + ": elements of v from 3 on are in no piece",
                 [&] { open_pieces(here, "one", 2); });
}

TEST(Pieces, FilesThatDoNotBelongTogetherAreRefused) {
  const TempFolder folder, other;
  const std::string here = folder.path().string();
  const std::string first = folder / piece_name(0, 3), second = folder / piece_name(1, 3);
  write_cut(other.path().string(), kCuts[0], "two");
  const std::function<void()> faults[] = {
      [&] { fs::remove(second); },
      [&] { fs::copy_file(first, second, fs::copy_options::overwrite_existing); },
      [&] { fs::copy_file(other / piece_name(1, 3), second, fs::copy_options::overwrite_existing); },
      [&] { fs::resize_file(second, fs::file_size(second) - 1); },
      [&] { fs::resize_file(second, 5); },
      [&] { write_safetensors(second, {}); },
      [&] {
        write_piece(here, {"one", 1, 4}, {}), fs::rename(folder / piece_name(1, 4), second);
      },
  };
  const char* says[] = {"",
                        "another piece than its name says",
                        "another save",
                        "00001-of-00003",
                        "at least 8",
                        "no piece of a save",
                        "another piece than its name says"};
  for (size_t i = 0; i < std::size(faults); ++i) {
    SCOPED_TRACE(i);
    write_cut(here, kCuts[0]);
    EXPECT_NO_THROW(open_pieces(here, "one", 3));
    faults[i]();
    expect_refusal(says[i], [&] { open_pieces(here, "one", 3); });
  }
}

TEST(Pieces, HostileMetadataIsRefused) {
  const std::string mark = R"({"save": "one", "rank": 0, "of": 1})";
  const std::pair<std::string, const char*> cases[] = {
      {"{}", "which part of v"},
      {"[]", "not an object"},
      {"{", "vitrail_parts"},
      {R"({"v": 7})", "\"shape\""},
      {R"({"v": {"shape": [9], "offset": [0], "local": [9], "range": [0, 9]}})",
       "has 5 elements, its part 9"},
      {R"({"v": {"shape": [4], "offset": [0], "local": [4], "range": [0, 4]}})",
       "has 5 elements, its part 4"},
      {R"({"v": {"shape": [9], "offset": [0], "local": [9], "range": [0, 5]}})", "from 5 on are in no piece"},
  };
  const TempFolder folder;
  for (const auto& [parts, says] : cases) {
    SCOPED_TRACE(parts);
    const TensorToWrite v = counted("v", kV).tensor;
    write_safetensors(folder / piece_name(0, 1), {v}, {{"vitrail_piece", mark}, {"vitrail_parts", parts}});
    expect_refusal(says, [&] { open_pieces(folder.path().string(), "one", 1); });
  }
}

}  // namespace
}  // namespace vitrail::testing
