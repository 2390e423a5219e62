#include "planners/toolkit/decision_reasons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/at.h"
#include "ir/load_profile.h"
#include "support/program_builder.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;

/// "cheap" is made of "dear"; both are idle for 4 us until they are read again.
class DecisionReasons : public ::testing::Test {
 protected:
  DecisionReasons() {
    using enum AccessMode;
    testing::ProgramBuilder b;
    dear_ = b.tensor("dear", 2000);
    cheap_ = b.tensor("cheap", 2000);
    const TensorId g = b.tensor("g", 64);
    b.device("make dear", {{dear_, write}}, Nanos{9000});
    b.last().random = true;
    b.device("make cheap", {{dear_, read}, {cheap_, write}}, Nanos{1000});
    b.device("turn", {{g, write}}, Nanos{4000});
    b.device("further", {{g, update}, {cheap_, read}}, Nanos{1000});
    b.device("last", {{g, update}, {dear_, read}}, Nanos{1000});
    program_ = b.build();
    machine_.set_links({1e9, Nanos{0}}, {5e8, Nanos{0}});
    index_.emplace(program_);
    strategy_ = keep_everything(program_, *index_, least_workspace_algorithms(program_));
  }
  /// The reason of a tensor's last gap, so decided.
  std::string reason(TensorId tensor, Decision decision) {
    const GapId gap{
        static_cast<std::int32_t>(at(index_->first_gap(tensor)) + index_->gaps(tensor).size() - 1)};
    Strategy s = strategy_;
    s.gaps[at(gap)] = decision;
    add_reasons(program_, *index_, machine_, s);
    EXPECT_EQ(s.reasons.size(), s.gaps.size());
    for (const std::string& r : s.reasons) EXPECT_FALSE(r.empty());
    return s.reasons[at(gap)];
  }

  Program program_;
  Machine machine_;
  std::optional<AccessIndex> index_;
  Strategy strategy_;
  TensorId dear_, cheap_;
};

TEST_F(DecisionReasons, NameWhatCopiesCostAndHowLongTheGapIs) {
  EXPECT_EQ(reason(cheap_, Decision::swap), "its copies cost " + format_time(Nanos{6000}) +
                                                ", and the gap is " + format_time(Nanos{4000}) +
                                                " long");
  EXPECT_EQ(reason(dear_, Decision::drop), "the host has it: only the copy in costs " +
                                               format_time(Nanos{4000}) + ", and the gap is " +
                                               format_time(Nanos{5000}) + " long");
}

TEST_F(DecisionReasons, NameWhatRunningAgainCosts) {
  EXPECT_EQ(reason(cheap_, Decision::recompute),
            "running its producers again (1 op) costs " + format_time(Nanos{1000}) +
                ", less than its copies (" + format_time(Nanos{6000}) + ")");
  EXPECT_THAT(reason(dear_, Decision::recompute), HasSubstr(format_time(Nanos{9000}) + ", and"));
}

TEST_F(DecisionReasons, LeaveThoseThatAreThereAndOtherPrograms) {
  strategy_.reasons.assign(strategy_.gaps.size(), "");
  strategy_.reasons[0] = "because";
  add_reasons(program_, *index_, machine_, strategy_);
  EXPECT_EQ(strategy_.reasons[0], "because");
  EXPECT_EQ(strategy_.reasons[1], "kept: the load fits with it");
  Strategy other;
  other.gaps.resize(1);
  add_reasons(program_, *index_, machine_, other);
  EXPECT_TRUE(other.reasons.empty());
}

}  // namespace
}  // namespace tidepool
