#include "pack/pack_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(std::string_view text) {
  const auto file = read_pack_csv(text, "b.csv");
  return file ? "no error" : file.error().message;
}

TEST(PackCsv, ReadsWhatMiniMallocReads) {
  const auto file = read_pack_csv("id,lower,upper,size\nb1,0,3,4\r\n\n b2 , -3, 9,5\n", "b.csv");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_THAT(file->ids, ElementsAre("b1", "b2"));
  EXPECT_THAT(file->problem.sizes, ElementsAre(4, 5));
  EXPECT_EQ(file->problem.lifetimes[1].lower, -3);
  EXPECT_EQ(file->problem.lifetimes[1].upper, 9);
  EXPECT_THAT(file->problem.starts, ElementsAre(1, 0));
}

TEST(PackCsv, ReadsWhatItWrites) {
  const auto file = read_pack_csv("size,id,upper,lower\n4,a,3,0\n", "b.csv");
  ASSERT_TRUE(file) << file.error().message;
  const std::string text = write_pack_csv(*file, {{8}, 12});
  EXPECT_EQ(text, "id,lower,upper,size,offset\na,0,3,4,8\n");
  EXPECT_TRUE(read_pack_csv(text, "b.csv"));
}

TEST(PackCsv, ErrorsNameFileLineAndField) {
  EXPECT_THAT(error_of(""), AllOf(HasSubstr("b.csv:1:"), HasSubstr("empty")));
  EXPECT_THAT(error_of("id,lower,upper\n"), AllOf(HasSubstr("b.csv:1:"), HasSubstr("'size'")));
  EXPECT_THAT(error_of("id,lower,upper,size,id\n"), HasSubstr("twice"));
  EXPECT_THAT(error_of("id,lower,upper,weight\n"), HasSubstr("'weight'"));
  const std::string head = "id,lower,upper,size\na,0,1,1\n";
  EXPECT_THAT(error_of(head + "b,0,1\n"), AllOf(HasSubstr("b.csv:3:"), HasSubstr("3 fields")));
  EXPECT_THAT(error_of(head + "b,x,1,1\n"), AllOf(HasSubstr("b.csv:3:"), HasSubstr("'lower'")));
  EXPECT_THAT(error_of(head + "b,0,0,1\n"), HasSubstr("'upper'"));
  EXPECT_THAT(error_of(head + "b,0,1,0\n"), HasSubstr("'size'"));
  EXPECT_THAT(error_of(head + "b,0,1,99999999999999999999\n"), HasSubstr("64 bits"));
  EXPECT_THAT(error_of(head + "b,0,1,9223372036854775807\n"), HasSubstr("counted"));
  EXPECT_THAT(error_of(head + "a,0,1,1\n"), HasSubstr("twice"));
  EXPECT_THAT(error_of(head + ",0,1,1\n"), HasSubstr("'id'"));
}

}  // namespace
}  // namespace tidepool
