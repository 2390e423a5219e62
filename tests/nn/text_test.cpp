// Data of text: windows, masks, files.
#include "nn/data/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "nn/data/synthetic_text.h"
#include "support/process.h"

namespace tidepool::nn {
namespace {

using ::testing::HasSubstr;

std::vector<std::int32_t> field_of(const SampleSource& data, std::size_t field,
                                   std::int64_t sample) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(data.fields()[field].type.elements()));
  data.read(field, sample, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

TEST(TokenSamples, LabelsAreTheNextTokens) {
  const SyntheticText data({16}, 256, 50);
  for (std::int64_t sample = 0; sample < data.size(); ++sample) {
    const auto tokens = field_of(data, 0, sample), labels = field_of(data, 1, sample);
    EXPECT_TRUE(std::equal(labels.begin(), labels.end() - 1, tokens.begin() + 1));
    EXPECT_EQ(std::count(tokens.begin(), tokens.end(), kMaskToken), 0);
  }
}

TEST(TokenSamples, MaskTheSameNumberOfPlacesInEverySample) {
  EXPECT_EQ(masked_tokens(128), 19);
  EXPECT_EQ(masked_tokens(3), 1);
  constexpr std::int64_t kSamples = 2000;
  const SyntheticText masked({40, true, 5}, 256, kSamples), plain({40, false, 5}, 256, kSamples);
  std::int64_t replaced = 0, kept = 0, other = 0;
  std::vector<int> places(40);
  for (std::int64_t sample = 0; sample < kSamples; ++sample) {
    const auto text = field_of(plain, 0, sample);
    const auto tokens = field_of(masked, 0, sample), labels = field_of(masked, 1, sample);
    EXPECT_EQ(40 - std::count(labels.begin(), labels.end(), -1), masked_tokens(40));
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (labels[i] < 0) {
        EXPECT_EQ(tokens[i], text[i]);
        continue;
      }
      EXPECT_EQ(labels[i], text[i]);
      ++places[i];
      ++(tokens[i] == kMaskToken ? replaced : tokens[i] == text[i] ? kept : other);
    }
  }
  const double total = static_cast<double>(masked_tokens(40) * kSamples);  // 12000
  EXPECT_NEAR(static_cast<double>(replaced) / total, 0.8, 0.02);
  EXPECT_NEAR(static_cast<double>(kept) / total, 0.1, 0.015);
  EXPECT_NEAR(static_cast<double>(other) / total, 0.1, 0.015);
  EXPECT_GT(*std::min_element(places.begin(), places.end()), 220) << "300 are expected";
}

TEST(TokenSamples, DependOnSeedAndSampleOnly) {
  const SyntheticText a({16, true, 1}, 256, 50), again({16, true, 1}, 256, 500),
      b({16, true, 2}, 256, 50);
  int same = 0;
  for (std::int64_t sample = 0; sample < 50; ++sample) {
    for (const std::size_t field : {0, 1}) {
      EXPECT_EQ(field_of(a, field, sample), field_of(again, field, sample));
      same += field_of(a, field, sample) == field_of(b, field, sample);
    }
  }
  EXPECT_LT(same, 5);
}

class TextFiles : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_.path() / name, std::ios::binary) << content;
  }
  [[nodiscard]] auto load(Split split, std::int64_t sequence) const {
    return load_text(split, {sequence}, folder_.path().string());
  }
  [[nodiscard]] std::string error(std::int64_t sequence) const {
    const auto data = load(Split::train, sequence);
    return data ? "" : data.error().message;
  }

  tidepool::testing::TemporaryFolder folder_;
};

TEST_F(TextFiles, AreReadInTheOrderOfTheirNames) {
  write("b.txt", "efgh");
  write("a.txt", "abcd");
  write("c.md", "xyz");
  const auto train = load(Split::train, 3), test = load(Split::test, 3);
  ASSERT_TRUE(train && test) << train.error().message;
  EXPECT_EQ((*train)->size(), 1);
  EXPECT_EQ(field_of(**train, 0, 0), (std::vector<std::int32_t>{'a', 'b', 'c'}));
  EXPECT_EQ(field_of(**train, 1, 0), (std::vector<std::int32_t>{'b', 'c', 'd'}));
  EXPECT_EQ(field_of(**test, 0, 0), (std::vector<std::int32_t>{'e', 'f', 'g'}));
  EXPECT_EQ(field_of(**test, 1, 0), (std::vector<std::int32_t>{'f', 'g', 'h'}));
}

TEST_F(TextFiles, WindowsStartAnywhereInTheirSplit) {
  std::string text;
  for (int i = 0; i < 250; ++i) text += static_cast<char>(1 + i);
  write("all.txt", text);
  const auto train = load(Split::train, 2), test = load(Split::test, 2);
  ASSERT_TRUE(train && test);
  EXPECT_EQ((*train)->size(), 225 / 2);
  EXPECT_EQ((*test)->size(), 25 / 2);
  std::set<std::int32_t> starts;
  for (std::int64_t i = 0; i < (*train)->size(); ++i) {
    const auto tokens = field_of(**train, 0, i), labels = field_of(**train, 1, i);
    EXPECT_EQ(tokens[1], tokens[0] + 1);
    EXPECT_LE(labels[1], 225) << "the rest is held out";
    starts.insert(tokens[0]);
  }
  EXPECT_GT(starts.size(), 60U);
  for (std::int64_t i = 0; i < (*test)->size(); ++i) EXPECT_GT(field_of(**test, 0, i)[0], 225);
}

TEST_F(TextFiles, SayWhatIsMissing) {
  EXPECT_THAT(error(8), HasSubstr("has no files that end in .txt"));
  write("short.txt", "0123456789abcdefg");
  EXPECT_THAT(error(8), HasSubstr("17 bytes of text are too few for sequences of 8: at least 18"));
  EXPECT_EQ(error(7), "");
  write("picture.txt", std::string("\x89PNG\0\1", 6));
  EXPECT_THAT(error(7), HasSubstr("picture.txt: is no text: byte 4 is 0"));
  const auto missing = load_text(Split::train, {8}, "/no/such/folder");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::bad_input);
  EXPECT_THAT(missing.error().message, HasSubstr("/no/such/folder: cannot open the folder"));
}

TEST(DebianText, IsThereWithoutLinks) {
  const auto train = load_text(Split::train, {64});
  if (!std::filesystem::exists(kTextFolder)) GTEST_SKIP() << kTextFolder << " is not there";
  ASSERT_TRUE(train) << train.error().message;
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kTextFolder)) {
    if (!entry.is_symlink()) bytes += entry.file_size();
  }
  EXPECT_EQ((*train)->size(), static_cast<std::int64_t>(bytes - bytes / 10) / 64);
  const auto tokens = field_of(**train, 0, 3);
  EXPECT_GT(std::count(tokens.begin(), tokens.end(), ' '), 0);
}

}  // namespace
}  // namespace tidepool::nn
