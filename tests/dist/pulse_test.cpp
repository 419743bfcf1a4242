#include "dist/pulse.h"

#include <gtest/gtest.h>

namespace vitrail {
namespace {

TEST(PulseFacts, KeepsWhatARankDoes) {
  const char* names[] = {"init", "forward", "reduction", "update", "evaluation", "save"};
  for (size_t i = 0; i < std::size(names); ++i) EXPECT_STREQ(to_string(static_cast<RankPhase>(i)), names[i]);
  Pulse pulse;
  std::vector<std::pair<RankPhase, int64_t>> entered;
  pulse.on_enter = [&](RankPhase phase, int64_t step) { entered.emplace_back(phase, step); };
  pulse.begin_step(7);
  pulse.at_node("norm");
  {
    const ReductionScope scope(&pulse);
    EXPECT_STREQ(pulse.state().node, "norm") << "a reduction keeps it";
  }
  EXPECT_STREQ(pulse.state().node, "") << "back in the forward phase";
  pulse.end_step();
  EXPECT_EQ(pulse.state().step, 7);
  EXPECT_EQ(pulse.state().made, 7);
  EXPECT_EQ(pulse.state().posts, 4u) << "three phases and a node";
  EXPECT_EQ(entered, (std::vector<std::pair<RankPhase, int64_t>>{
                         {RankPhase::kForward, 7}, {RankPhase::kReduction, 7}, {RankPhase::kForward, 7}}));
  {
    const PhaseScope save(&pulse, RankPhase::kSave);
    const ReductionScope none(&pulse);
    EXPECT_EQ(pulse.phase(), RankPhase::kSave);
  }
  EXPECT_EQ(pulse.phase(), RankPhase::kForward);
  uint64_t since = 0;
  EXPECT_EQ(pulse.events(since).size(), 5u);
  EXPECT_EQ(since, 5u);
  pulse.note("a word");
  pulse.add_log_event("news");
  const auto events = pulse.events(since);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].text, "a word");
  EXPECT_EQ(events[0].step, 7);
  EXPECT_EQ(pulse.take_log_events(), std::vector<std::string>{"news"});
  EXPECT_TRUE(pulse.take_log_events().empty());
  for (int i = 0; i < 100; ++i) pulse.note(std::to_string(i));
  uint64_t from_start = 0;
  const auto last = pulse.events(from_start);
  ASSERT_EQ(last.size(), Pulse::kEvents);
  EXPECT_EQ(last.front().text, "36");
  EXPECT_EQ(from_start, 107u);
  EXPECT_EQ(pulse.keep("x"), pulse.keep("x"));
}

// A run that goes back to a checkpoint makes steps again that it had made.
TEST(PulseFacts, KeepsTheFurthestStepThatWasMade) {
  Pulse pulse;
  EXPECT_EQ(pulse.state().made, 0);
  for (const auto& [step, made] : {std::pair<int64_t, int64_t>{6, 6}, {7, 7}, {4, 7}, {8, 8}}) {
    pulse.begin_step(step);
    EXPECT_EQ(pulse.state().step, step);
    pulse.end_step();
    EXPECT_EQ(pulse.state().made, made) << step;
  }
}

}  // namespace
}  // namespace vitrail
