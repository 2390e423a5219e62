#include "report/palette.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tidepool {
namespace {

bool has_label(std::string_view name) {
  const auto all = palette();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Colour& c) { return c.name == name; });
  return found != all.end() && !found->label.empty();
}

TEST(Palette, EverythingDrawnHasAColourInTheLegend) {
  for (const TensorKind kind : kStackOrder) EXPECT_TRUE(has_label(colour_of(kind)));
  for (int d = 0; d <= static_cast<int>(Decision::recompute); ++d) {
    EXPECT_TRUE(has_label(colour_of(static_cast<Decision>(d))));
  }
  for (int k = 0; k <= static_cast<int>(RunKind::copy_in); ++k) {
    EXPECT_TRUE(has_label(colour_of(static_cast<RunKind>(k))));
  }
  EXPECT_TRUE(has_label("stall"));
}

TEST(Palette, EveryKindIsStackedOnce) {
  const std::set<TensorKind> kinds(std::begin(kStackOrder), std::end(kStackOrder));
  EXPECT_EQ(kinds.size(), LoadStep::kKinds);
}

TEST(Palette, NamesAndColoursAreUnique) {
  std::set<std::string_view> names;
  std::set<std::string_view> light;
  for (const Colour& c : palette()) {
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
    EXPECT_TRUE(light.insert(c.light).second) << c.name;
  }
}

}  // namespace
}  // namespace tidepool
