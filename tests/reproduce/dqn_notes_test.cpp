#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "reproduce/notes.h"

namespace tidepool::reproduce {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Json dqn_row_of(const char* workload, const char* family, const Json& overhead) {
  return {{"workload", workload},
          {"family", family},
          {"budget_fraction", 0.5},
          {"overhead", overhead},
          {"utilisation", {{"dqn", 0.9}, {"superneurons", 0.6}}}};
}

/// The notes below a table of these rows, as printed.
std::string dqn_notes_of(const std::vector<Json>& rows) {
  TableReport report("dqn", "a title", true);
  add_dqn_notes(rows, report);
  ::testing::internal::CaptureStdout();
  report.finish();
  return ::testing::internal::GetCapturedStdout();
}

Json overheads(const Json& swap, const Json& both, const Json& automatic, const Json& memonger) {
  return {{"dqn_swap", swap},        {"dqn", both},     {"auto", automatic}, {"memonger", memonger},
          {"superneurons", nullptr}, {"tflms", nullptr}};
}

TEST(DqnNotes, EachModeIsComparedWithBaselines) {
  const std::string notes = dqn_notes_of({
      dqn_row_of("vgg16", "vgg", overheads(0.4, 0.1, 0.1, 0.3)),
      dqn_row_of("vgg19", "vgg", overheads(0.2, 0.4, 0.1, 0.1)),
      dqn_row_of("unet", "unet", overheads(0.3, nullptr, 0.1, nullptr)),
  });
  EXPECT_THAT(notes,
              AllOf(HasSubstr("here dqn-swap less in 0 of 2 points, the same in 0; in 1 others"),
                    HasSubstr("here dqn less in 1 of 2 points, the same in 0; in 0 others"),
                    HasSubstr("not so: vgg19 at 50 % (+40.0 against +10.0 %)")));
  EXPECT_THAT(notes, HasSubstr("unet has more overhead than ResNet and VGG; here so in 1 of 1"));
}

TEST(DqnNotes, IterationTimesAreComparedWithAutos) {
  const std::string notes = dqn_notes_of({
      dqn_row_of("vgg16", "vgg", overheads(0.5, 0.0, 0.0, nullptr)),
      dqn_row_of("vgg19", "vgg", overheads(0.5, 0.296, 0.2, nullptr)),
  });
  EXPECT_THAT(notes, AllOf(HasSubstr("of dqn over that of auto: +4.00 % on average of 2 points "
                                     "(asked: within 5 %: yes), worst +8.00 % (vgg19 at 50 %)"),
                           HasSubstr("of dqn-swap over that of auto: +37.50 %")));
}

TEST(DqnNotes, APointWithoutAPlanOfItsOwnIsNamed) {
  const std::string notes =
      dqn_notes_of({dqn_row_of("vgg16", "vgg", overheads(nullptr, nullptr, 0.1, 0.3))});
  EXPECT_THAT(notes, Not(HasSubstr("over that of auto:")));
  EXPECT_THAT(dqn_notes_of({dqn_row_of("vgg16", "vgg", overheads(nullptr, nullptr, 0.1, 0.3)),
                            dqn_row_of("vgg19", "vgg", overheads(0.1, 0.1, 0.1, 0.3))}),
              HasSubstr("not so: vgg16 at 50 % (no plan)"));
}

TEST(DqnNotes, UtilisationIsOfBothAtEqualMemory) {
  EXPECT_THAT(dqn_notes_of({dqn_row_of("vgg16", "vgg", overheads(0.1, 0.1, 0.1, 0.3))}),
              HasSubstr("90.0 and 60.0 % on average, higher in 1 of 1 points"));
}

TEST(DqnNotes, WhoRunsWhatThePaperSaysOthersCannotIsListed) {
  EXPECT_THAT(dqn_notes_of({dqn_row_of("kmeans", "kmeans", overheads(0.1, 0.1, 0.1, nullptr))}),
              HasSubstr("kmeans: a plan of their own in some budget: auto, dqn, dqn_swap\""));
}

}  // namespace
}  // namespace tidepool::reproduce
