// The small tables that formats share: labels, numbers of classes, names read from a file.
#include "data/datasets/tables.h"

#include "dataset_files.h"

namespace vitrail {
namespace {

using namespace test;
using Labels = std::vector<int32_t>;

Labels at(const LabelTable& table, size_t index) {
  const auto labels = table[index];
  return {labels.begin(), labels.end()};
}

TEST(LabelTable, SeveralLabelsAreKeptInAscendingOrder) {
  LabelTable table(true);
  for (const Labels& labels : {Labels{3, 0, 2}, Labels{}, Labels{1}, Labels{2, 1}}) table.add(labels);
  EXPECT_EQ(at(table, 0), (Labels{0, 2, 3}));
  EXPECT_EQ(at(table, 1), Labels{});
  EXPECT_EQ(at(table, 2), Labels{1});
  EXPECT_EQ(at(table, 3), (Labels{1, 2}));
  table.renumber(Labels{3, 2, 1, 0});
  EXPECT_EQ(at(table, 0), (Labels{0, 1, 3}));
  EXPECT_EQ(at(table, 1), Labels{});
  EXPECT_EQ(at(table, 2), Labels{2});
  EXPECT_EQ(at(table, 3), (Labels{1, 2}));
}

TEST(LabelTable, OneLabelEachWhereOneIsMeant) {
  LabelTable table(false);
  for (const int32_t label : {2, 0, 1}) table.add(Labels{label});
  table.renumber(Labels{5, 6, 7});
  EXPECT_EQ(at(table, 0), Labels{7});
  EXPECT_EQ(at(table, 2), Labels{6});
  EXPECT_THROW(table.add(Labels{1, 2}), Error);
  EXPECT_THROW(table.add(Labels{}), Error);
}

TEST(ClassNames, AreNumberedAsTheyComeAndSortedInTheEnd) {
  ClassNames names;
  for (const auto& [name, number] : {std::pair{"cow", 0}, {"ape", 1}, {"cow", 0}, {"bee", 2}})
    EXPECT_EQ(names.number(name), number) << name;
  std::vector<std::string> classes;
  EXPECT_EQ(names.sort(classes), (Labels{2, 0, 1}));
  EXPECT_EQ(classes, (std::vector<std::string>{"ape", "bee", "cow"}));
  EXPECT_EQ(numbered_classes(3), (std::vector<std::string>{"0", "1", "2"}));
}

TEST(ReadClassNames, TakesLinesOfAnySystem) {
  const DataFolder folder;
  const std::vector<std::string> wanted = {"ape", "", "cow shed"};
  for (const char* text :
       {"ape\n\ncow shed\n", "ape\r\n\r\ncow shed\r\n", "ape\n\ncow shed", "ape\n\ncow shed\n\n\n"})
    EXPECT_EQ(read_class_names(folder.file("labels.txt", text)), wanted) << text;
  EXPECT_TRUE(read_class_names(folder.file("labels.txt", "")).empty());
  EXPECT_THROW(read_class_names(folder.file("labels.txt", "\xff\xfe")), Error);
}

}  // namespace
}  // namespace vitrail
