#include "trace/iteration.h"

#include <gtest/gtest.h>

#include "support/recording_builder.h"

namespace tidepool {
namespace {

using testing::RandomTraining;
using testing::RecordingBuilder;

void expect_iteration(const std::optional<Iteration>& found, std::int64_t start,
                      std::int64_t period, std::int64_t repeats) {
  ASSERT_TRUE(found);
  EXPECT_EQ(found->start, start);
  EXPECT_EQ(found->period, period);
  EXPECT_EQ(found->repeats, repeats);
}

/// Two equal layers, forward and backward, over two weights: 16 events. The layers have equal
/// sizes.
void train(RecordingBuilder& b, const std::vector<BlockId>& weights) {
  const BlockId x = b.malloc(100);
  b.write(x).read(weights[0]);
  const BlockId y = b.malloc(100);
  b.write(y).read(weights[1]);
  const BlockId g = b.malloc(100);
  b.write(g).read(y).free(y).read(x).free(x);
  b.write(weights[1]).write(weights[0]).read(g).free(g);
}

TEST(Iteration, FindsTwoRepetitions) {
  RecordingBuilder b;
  const std::vector<BlockId> weights{b.block(7), b.block(8)};
  for (int i = 0; i < 2; ++i) train(b, weights);
  expect_iteration(find_iteration(b.recording()), 0, 16, 2);
}

TEST(Iteration, SkipsWarmUpAndStartsAtAMalloc) {
  RecordingBuilder b;
  const std::vector<BlockId> weights{b.block(7), b.block(8)};
  b.write(weights[0]).write(weights[1]).read(weights[0]).write(weights[0]);
  b.free(b.malloc(3));
  for (int i = 0; i < 4; ++i) train(b, weights);
  // Up to the first iteration's reads the weights' last events were others than later on. What
  // repeats starts at the malloc behind them.
  expect_iteration(find_iteration(b.recording()), 6 + 6, 16, 3);
}

TEST(Iteration, AnIncompleteLastRepetitionAndWhatFollowsTrainingDoNotMatter) {
  RecordingBuilder b;
  const std::vector<BlockId> weights{b.block(7), b.block(8)};
  for (int i = 0; i < 5; ++i) train(b, weights);
  const BlockId x = b.malloc(100);
  b.write(x);
  expect_iteration(find_iteration(b.recording()), 0, 16, 5);
  b.free(x).free(weights[0]).free(weights[1]);
  expect_iteration(find_iteration(b.recording()), 0, 16, 5);
}

TEST(Iteration, RoundsOfAccumulationAreNoIteration) {
  RecordingBuilder b;
  const std::vector<BlockId> weights{b.block(7), b.block(8)};
  const BlockId sum = b.block(9);
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const BlockId x = b.malloc(100);
      b.write(x).read(weights[0]).write(sum).free(x);
    }
  };
  for (int i = 0; i < 3; ++i) {
    rounds(4);
    b.read(sum).write(weights[0]).write(weights[1]);
  }
  expect_iteration(find_iteration(b.recording()), 0, 23, 3);
  rounds(4);  // the recording ends between two rounds
  expect_iteration(find_iteration(b.recording()), 0, 23, 3);
}

TEST(Iteration, GrowingMemoryIsNoIteration) {
  RecordingBuilder b;
  const BlockId w = b.block(7);
  for (int i = 0; i < 8; ++i) {
    const BlockId x = b.malloc(10);
    b.write(x).read(w);
  }
  EXPECT_FALSE(find_iteration(b.recording()));
}

TEST(Iteration, NothingRepeatsInShortOrChangingRecordings) {
  RecordingBuilder b;
  EXPECT_FALSE(find_iteration(b.recording()));
  const BlockId w = b.block(7);
  b.read(w);
  EXPECT_FALSE(find_iteration(b.recording()));
  for (int i = 1; i < 20; ++i) {
    const BlockId x = b.malloc(i);
    b.write(x).free(x);
  }
  EXPECT_FALSE(find_iteration(b.recording()));
}

TEST(Iteration, ABlockOnlyAccessedHasNoIteration) {
  RecordingBuilder b;
  const BlockId w = b.block(7);
  for (int i = 0; i < 20; ++i) b.read(w).write(w);
  EXPECT_FALSE(find_iteration(b.recording())) << "an iteration starts at a malloc";
}

TEST(Iteration, OpNamesCount) {
  RecordingBuilder b;
  const BlockId w = b.block(7);
  b.recording().ops = {"a", "b"};
  for (std::int32_t i = 0; i < 4; ++i) {
    const BlockId x = b.malloc(10);
    b.event(EventKind::write, x, i % 2).event(EventKind::read, w, i % 2).free(x);
  }
  const auto found = find_iteration(b.recording());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->period, 8);
}

TEST(Iteration, RandomTrainings) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    RandomTraining training(seed);
    const auto events = [&] {
      return static_cast<std::int64_t>(training.tape.recording().events.size());
    };
    for (int i = 0; i < 3; ++i) training.iteration();
    const std::int64_t before = events();
    training.iteration();
    const std::int64_t period = events() - before;
    for (int i = 0; i < 3; ++i) training.iteration();
    const auto found = find_iteration(training.tape.recording());
    ASSERT_TRUE(found);
    EXPECT_EQ(found->period, period);
    EXPECT_GE(found->repeats, 3);
    EXPECT_EQ(training.tape.recording().events[static_cast<std::size_t>(found->start)].kind,
              EventKind::malloc);
  }
}

TEST(Iteration, AMillionEvents) {
  RecordingBuilder b;
  std::vector<BlockId> weights;
  for (int i = 0; i < 50'000; ++i) weights.push_back(b.block(4));
  for (int k = 0; k < 4; ++k) {
    for (const BlockId w : weights) {
      const BlockId x = b.malloc(64 + w);
      b.write(x).read(w).write(w).free(x);
    }
  }
  ASSERT_EQ(b.recording().events.size(), 1'000'000U);
  expect_iteration(find_iteration(b.recording()), 0, 250'000, 4);
}

TEST(Iteration, AMillionEventsThatAllLookAlike) {
  RecordingBuilder b;
  for (int i = 0; i < 333'333; ++i) {
    const BlockId x = b.malloc(64);
    b.write(x).free(x);
  }
  expect_iteration(find_iteration(b.recording()), 0, 3, 333'333);
}

}  // namespace
}  // namespace tidepool
