#include "passes/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "graph/builder.h"
#include "ops/grouped.h"
#include "ops/persistent.h"
#include "ops/update/sgd.h"
#include "tiny_training.h"

namespace vitrail {
namespace {

// Two parameters and a low-precision copy of each, updated in turn as the trainer records them.
Program two_updates() {
  Builder b;
  b.set_phase(Phase::kUpdate);
  const ValueId control = b.input("control", control_desc());
  for (const char* name : {"w", "v"}) {
    const TensorDesc desc{DType::kF32, {{'F', 3}, {'D', 4}}};
    const ValueId param = b.parameter(name, desc),
                  sum = b.state("grad/" + std::string(name), desc, Category::kGradients);
    b.add_all<SgdUpdateOp>({param, sum, control}, name, UpdateScale{}, 0.0, false);
    const ValueId copy =
        b.state(std::string(name) + "@bf16", {DType::kBF16, desc.shape}, Category::kParameters);
    b.add_all<CopyIntoOp>({copy, param}, std::string(name) + "@bf16");
  }
  return b.finish();
}

bool every_kind(std::string_view) {
  return true;
}

TEST(GroupUpdates, MakesOneNodeOfEveryKindWhereItsFirstStood) {
  EXPECT_EQ(to_string(group_updates(two_updates(), every_kind)),
            "input control f64[Z6]\n"
            "grouped sgd_update{2 parts}(w, grad/w, control, v, grad/v, control)  # grouped sgd_update\n"
            "grouped copy_into{2 parts}(w@bf16, w, v@bf16, v)  # grouped copy_into\n");
}

TEST(JoinCopies, UpdatesWriteTheCopiesOfTheirParameters) {
  const Program joined = join_copies(two_updates(), every_kind);
  EXPECT_EQ(to_string(joined),
            "input control f64[Z6]\n"
            "sgd_update+copy_into{lr*1 momentum=0}(w, grad/w, control, w@bf16)  # w\n"
            "sgd_update+copy_into{lr*1 momentum=0}(v, grad/v, control, v@bf16)  # v\n");
  EXPECT_TRUE(std::ranges::equal(joined.nodes[0].op->updates(), std::vector{0, 1, 3}));
  EXPECT_EQ(to_string(join_copies(joined, every_kind)), to_string(joined));
}

TEST(JoinCopies, StayApartWithoutAKernel) {
  const auto plain_only = [](std::string_view kind) { return kind == "sgd_update"; };
  EXPECT_EQ(to_string(join_copies(two_updates(), plain_only)), to_string(two_updates()));
}

// A copy that something else reads in between, alone or with all of its container, is written where it was.
TEST(JoinCopies, StayApartWhereTheCopyIsReadBefore) {
  for (const bool whole : {false, true}) {
    Program program = two_updates();
    const Node copy = program.nodes[1];
    Value container = program.values[copy.ins[0]];
    container.name = program.values[copy.ins[0]].container = "flat";
    program.values.push_back(container);
    Node reader = copy;
    const auto last = static_cast<ValueId>(program.values.size() - 1);
    reader.ins = {program.nodes[2].ins[0], whole ? last : copy.ins[0]};  // v from the copy of w
    program.nodes.insert(program.nodes.begin() + 1, reader);
    const Program joined = join_copies(program, every_kind);
    ASSERT_EQ(joined.nodes.size(), 4u) << whole;
    EXPECT_EQ(joined.nodes[0].op->kind(), "sgd_update");
    EXPECT_EQ(joined.nodes[2].op->kind(), "copy_into");
    EXPECT_EQ(joined.nodes[3].op->kind(), "sgd_update+copy_into");
  }
}

// A master in 16 bits is rounded, and the copy made of that.
TEST(JoinCopies, StayApartWhereTheMasterIsRounded) {
  Program program = two_updates();
  for (Value& value : program.values)
    if (value.desc.dtype == DType::kF32) value.desc.dtype = DType::kF16;
  EXPECT_EQ(to_string(join_copies(program, every_kind)), to_string(program));
}

TEST(GroupUpdates, LeavesOtherKindsAndSingleNodes) {
  const auto sgd_only = [](std::string_view kind) { return kind == "sgd_update"; };
  EXPECT_EQ(to_string(group_updates(two_updates(), sgd_only)),
            "input control f64[Z6]\n"
            "grouped sgd_update{2 parts}(w, grad/w, control, v, grad/v, control)  # grouped sgd_update\n"
            "copy_into(w@bf16, w)  # w@bf16\n"
            "copy_into(v@bf16, v)  # v@bf16\n");
  Program one = two_updates();
  one.nodes.resize(2);
  EXPECT_EQ(to_string(group_updates(one, every_kind)), to_string(one));
}

// One kernel runs both.
TEST(GroupUpdates, UpdatesWithACopyAndWithoutAreOneNode) {
  Program program = two_updates();
  program.nodes.pop_back();
  EXPECT_EQ(to_string(group_updates(join_copies(program, every_kind), every_kind)),
            "input control f64[Z6]\n"
            "grouped sgd_update+copy_into{2 parts}(w, grad/w, control, w@bf16, v, grad/v, control)  "
            "# grouped sgd_update+copy_into\n");
}

TEST(GroupUpdates, TheWorkAndWhatIsUpdatedStay) {
  const Program apart = two_updates(), joined = group_updates(apart, every_kind);
  EXPECT_EQ(joined.cost().flops, apart.cost().flops);
  std::set<std::string> updated;
  for (const Node& node : joined.nodes)
    for (int input : node.op->updates())
      updated.insert(joined.values[node.ins[static_cast<size_t>(input)]].name);
  EXPECT_EQ(updated, (std::set<std::string>{"w", "v", "grad/w", "grad/v", "w@bf16", "v@bf16"}));
}

// The sums of a bucket are one node, so that its exchange can begin, and its name ends with the bucket's.
TEST(GroupUpdates, EachBucketHasANodeOfItsOwn) {
  Program apart = two_updates();
  const auto sgd_only = [](std::string_view kind) { return kind == "sgd_update"; };
  const auto names = [&] {
    std::vector<std::string> given;
    for (const Node& node : group_updates(apart, sgd_only).nodes) given.push_back(node.name);
    return given;
  };
  const auto container_of = [&](size_t node) -> std::string& {
    return apart.values[apart.nodes[node].ins[0]].container;
  };
  container_of(0) = container_of(2) = "bucket 7";
  EXPECT_EQ(names(), (std::vector<std::string>{"grouped sgd_update bucket 7", "w@bf16", "v@bf16"}));
  container_of(2) = "bucket 8";
  EXPECT_EQ(names(), (std::vector<std::string>{"w", "w@bf16", "v", "v@bf16"}));
}

// Gradients are computed one by one, so they can only be added to their sums together when the last exists.
TEST(GroupUpdates, SumsAreAddedToWhereTheLastStood) {
  const Program apart = record_step(tiny_vit(1));
  const auto sums = [](std::string_view kind) { return kind == "accumulate"; };
  EXPECT_THROW(group_updates(apart, sums), Error) << "what its members read is not there yet";
  const Program joined = group_updates(apart, sums, GroupAt::kLast);
  EXPECT_EQ(joined.nodes.back().op->kind(), "grouped accumulate");
  EXPECT_EQ(dynamic_cast<const GroupedOp&>(*joined.nodes.back().op).parts().size(),
            static_cast<size_t>(count_kinds(apart).at("accumulate")));
  EXPECT_FALSE(count_kinds(joined).contains("accumulate"));
}

}  // namespace
}  // namespace vitrail
