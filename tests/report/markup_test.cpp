#include "report/markup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Markup, WhatMarkupIsMadeOfIsEscaped) {
  EXPECT_EQ(escape_markup("<script>\"&'"), "&lt;script&gt;&quot;&amp;&#39;");
  EXPECT_EQ(escape_markup("conv1.forward ✓ é"), "conv1.forward ✓ é");
  EXPECT_EQ(escape_markup("two\nlines\tand a tab"), "two\nlines\tand a tab");
}

TEST(Markup, WhatNoDocumentMayContainIsReplaced) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(escape_markup(std::string_view("a\0b", 3)), "a" + r + "b");
  EXPECT_EQ(escape_markup("\x1b[31m"), r + "[31m");
  EXPECT_EQ(escape_markup("\xff"), r);
  EXPECT_EQ(escape_markup("\xc3"), r) << "cut off";
  EXPECT_EQ(escape_markup("\xc0\xaf"), r + r) << "longer than need be";
  EXPECT_EQ(escape_markup("\xed\xa0\x80"), r + r + r) << "half of a pair";
  EXPECT_EQ(escape_markup("\xef\xbf\xbe"), r + r + r) << "no character of XML";
  EXPECT_EQ(escape_markup("\xf4\x90\x80\x80"), r + r + r + r) << "beyond the last character";
}

TEST(Markup, JsonInAScriptCannotEndIt) {
  const Json json = {{"name", "</script><!--"}};
  const std::string text = escape_json_in_script(json.dump());
  EXPECT_THAT(text, Not(HasSubstr("<")));
  EXPECT_EQ(Json::parse(text), json);
}

}  // namespace
}  // namespace tidepool
