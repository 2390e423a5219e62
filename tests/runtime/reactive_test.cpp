#include "runtime/reactive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>

#include "ir/load_profile.h"
#include "runtime/profiler.h"
#include "support/fake_device.h"
#include "support/program_builder.h"
#include "support/random_program.h"
#include "support/tag_runner.h"

namespace tidepool {
namespace {

using testing::random_program;
using testing::run_in_order;
using testing::TagRunner;

constexpr std::int64_t kReactiveIterations = 3;

TEST(Reactive, ValuesAreThoseOfTheProgramAtEveryBudgetThatCanRunIt) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = random_program(seed, {5, 64});
    const auto algorithms = least_workspace_algorithms(program);
    TagRunner meaning(program);
    run_in_order(program, algorithms, kReactiveIterations, meaning);
    const Bytes least = smallest_budget(program, 64).bytes;
    for (const Bytes budget : {least, least + least / 4, 2 * least, 10 * least}) {
      FakeDevice device(FakeScript{}, 64);
      TagRunner runner(program);
      Reactive reactive(program, algorithms, {budget, Reactive::enough_host_bytes(program, 64)},
                        device, runner);
      reactive.enter();
      reactive.run(kReactiveIterations);
      reactive.exit();
      EXPECT_LE(reactive.arena_peak(), budget);
      EXPECT_EQ(runner.seen(), meaning.seen());
      EXPECT_EQ(runner.final_values(), meaning.final_values());
      EXPECT_EQ(reactive.timings().size(), static_cast<std::size_t>(kReactiveIterations));
    }
  }
}

TEST(Reactive, ATooSmallHostArenaIsATypedErrorThatNamesTheTensor) {
  const Program program = random_program(3, {5, 64});
  const auto algorithms = least_workspace_algorithms(program);
  FakeDevice device(FakeScript{}, 64);
  TagRunner runner(program);
  Reactive reactive(program, algorithms, {smallest_budget(program, 64).bytes, 64}, device, runner);
  try {
    reactive.enter();
    reactive.run(1);
    FAIL() << "nothing was thrown";
  } catch (const HostArenaFull& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("the host arena of 64 B"),
                                               ::testing::HasSubstr("tensor '")));
  }
}

TEST(Reactive, InsideATightHostBudgetItIsRightOrSaysThatTheArenaIsFull) {
  int right = 0;
  int full = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = random_program(seed, {5, 64});
    const auto algorithms = least_workspace_algorithms(program);
    TagRunner meaning(program);
    run_in_order(program, algorithms, kReactiveIterations, meaning);
    const Bytes least = smallest_budget(program, 64).bytes;
    const Bytes enough = Reactive::enough_host_bytes(program, 64);
    for (const Bytes host : {enough - 64, enough * 3 / 4, enough / 2, enough / 4}) {
      FakeDevice device(FakeScript{}, 64);
      TagRunner runner(program);
      try {
        Reactive reactive(program, algorithms, {least + least / 2, host}, device, runner);
        reactive.enter();
        reactive.run(kReactiveIterations);
        reactive.exit();
      } catch (const HostArenaFull&) {
        ++full;
        continue;
      }
      ++right;
      EXPECT_EQ(runner.seen(), meaning.seen());
      EXPECT_EQ(runner.final_values(), meaning.final_values());
    }
  }
  EXPECT_GT(right, 0);
  EXPECT_GT(full, 0);
}

/// Counts bytes that go to the file and come from it.
class FileCountingDevice : public FakeDevice {
 public:
  FileCountingDevice() : FakeDevice(FakeScript{}, 64) {}
  void copy(StreamId stream, Location to, Location from, Bytes bytes) override {
    if (to.space == AwayPlaces::kFileSpace) written += bytes;
    if (from.space == AwayPlaces::kFileSpace) read += bytes;
    FakeDevice::copy(stream, to, from, bytes);
  }
  Bytes written = 0;
  Bytes read = 0;
};

TEST(Reactive, WithAFileValuesAreThoseOfTheProgramAndLittleLiesOnTheHost) {
  int smaller = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = random_program(seed, {5, 64});
    const auto algorithms = least_workspace_algorithms(program);
    TagRunner meaning(program);
    run_in_order(program, algorithms, kReactiveIterations, meaning);
    const Bytes least = smallest_budget(program, 64).bytes;
    const Bytes host = Reactive::enough_host_bytes(program, 64, {}, Away::file);
    if (host < Reactive::enough_host_bytes(program, 64)) ++smaller;
    const Bytes file = Reactive::enough_file_bytes(program, 64);
    if (file == 0) continue;
    for (const Bytes budget : {least, 2 * least}) {
      FileCountingDevice device;
      TagRunner runner(program);
      Reactive reactive(program, algorithms, {budget, host, file}, device, runner);
      reactive.enter();
      reactive.run(kReactiveIterations);
      reactive.exit();
      EXPECT_EQ(runner.seen(), meaning.seen());
      EXPECT_EQ(runner.final_values(), meaning.final_values());
      EXPECT_GT(device.written + device.read, budget == least ? 0 : -1);
    }
  }
  EXPECT_GT(smaller, 40);
}

/// Copies join the file with the host alone; counts those that stay on the host, which begins with
/// `reserved` bytes for others.
class FileBehindHostDevice : public FileCountingDevice {
 public:
  explicit FileBehindHostDevice(Bytes reserved) : reserved_(reserved) {}
  void copy(StreamId stream, Location to, Location from, Bytes bytes) override {
    const bool file = to.space == AwayPlaces::kFileSpace || from.space == AwayPlaces::kFileSpace;
    EXPECT_FALSE(file && (to.space == 0 || from.space == 0)) << "past the host";
    const bool kept = to.space == AwayPlaces::kHostSpace && to.offset >= reserved_;
    if (from.space == 0 && kept) ++kept_on_host;
    FileCountingDevice::copy(stream, to, from, bytes);
  }
  int kept_on_host = 0;

 private:
  Bytes reserved_;
};

TEST(Reactive, WithAFileBehindTheHostTheFileTakesWhatTheHostCannotHold) {
  int kept = 0, with_file = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = random_program(seed, {5, 2048});
    const auto algorithms = least_workspace_algorithms(program);
    TagRunner meaning(program);
    run_in_order(program, algorithms, kReactiveIterations, meaning);
    const Bytes device_bytes = smallest_budget(program, 64).bytes;
    const Bytes least = Reactive::enough_host_bytes(program, 64, {}, Away::host_then_file);
    const Bytes enough = Reactive::enough_file_bytes(program, 64, {}, Away::host_then_file);
    for (const Bytes host : {least, least + Reactive::enough_host_bytes(program, 64) / 4}) {
      for (const Bytes file : {enough, enough * 3 / 4 / 4096 * 4096}) {
        if (file == 0) continue;
        FileBehindHostDevice device(least);
        TagRunner runner(program);
        try {
          Reactive reactive(program, algorithms, {device_bytes, host, file, true}, device, runner);
          reactive.enter();
          reactive.run(kReactiveIterations);
          reactive.exit();
        } catch (const FileFull&) {
          EXPECT_LT(file, enough);
          continue;
        }
        EXPECT_EQ(runner.seen(), meaning.seen());
        EXPECT_EQ(runner.final_values(), meaning.final_values());
        kept += device.kept_on_host > 0 ? 1 : 0;
        with_file += device.written > 0 && device.read > 0 ? 1 : 0;
      }
    }
    FakeDevice device(FakeScript{}, 64);
    TagRunner runner(program);
    if (enough == 0) continue;
    EXPECT_THROW(
        Reactive(program, algorithms, {device_bytes, least - 64, enough, true}, device, runner),
        HostArenaFull);
  }
  EXPECT_GT(kept, 40);
  EXPECT_GT(with_file, 100);
}

TEST(Reactive, InsideATightFileItIsRightOrNamesTheTensor) {
  int right = 0;
  int full = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = random_program(seed, {5, 64});
    const auto algorithms = least_workspace_algorithms(program);
    TagRunner meaning(program);
    run_in_order(program, algorithms, kReactiveIterations, meaning);
    const Bytes least = smallest_budget(program, 64).bytes;
    const Bytes host = Reactive::enough_host_bytes(program, 64, {}, Away::file);
    const Bytes enough = Reactive::enough_file_bytes(program, 64);
    for (const Bytes file : {enough - 64, enough / 2, enough / 4}) {
      if (file <= 0) continue;
      FileCountingDevice device;
      TagRunner runner(program);
      try {
        Reactive reactive(program, algorithms, {least + least / 2, host, file}, device, runner);
        reactive.enter();
        reactive.run(kReactiveIterations);
        reactive.exit();
      } catch (const DeviceError& error) {
        EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("the file of"),
                                                   ::testing::HasSubstr("tensor '")));
        ++full;
        continue;
      }
      ++right;
      EXPECT_EQ(runner.seen(), meaning.seen());
      EXPECT_EQ(runner.final_values(), meaning.final_values());
    }
  }
  EXPECT_GT(right, 0);
  EXPECT_GT(full, 0);
}

TEST(Reactive, WithoutRoomForValuesOnTheirWayToTheFileItSaysSo) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId w = b.tensor("w", 4096, true);
  b.device("learn", {{w, update}}, Nanos{1});
  const Program program = b.build();
  EXPECT_EQ(Reactive::enough_host_bytes(program, 64, {}, Away::file), 4096);
  EXPECT_EQ(Reactive::enough_file_bytes(program, 64), 4096);
  FakeDevice device(FakeScript{}, 64);
  TagRunner runner(program);
  EXPECT_THROW(
      Reactive(program, least_workspace_algorithms(program), {4096, 64, 4096}, device, runner),
      HostArenaFull);
}

/// Sees what ops read; writes 7 in every byte of what they write.
class WatchingRunner : public OpRunner {
 public:
  explicit WatchingRunner(const Program& program) : program_(program) {}
  void launch(const OpCall& call, NativeStream /*stream*/) override {
    const Op& op = program_.ops[static_cast<std::size_t>(call.op)];
    for (std::size_t k = 0; k < op.accesses.size(); ++k) {
      const Tensor& tensor = program_.tensors[static_cast<std::size_t>(op.accesses[k].tensor)];
      const auto bytes = static_cast<std::size_t>(tensor.bytes);
      if (op.accesses[k].mode != AccessMode::write) {
        read[op.name + " " + tensor.name].assign(call.pointers[k], call.pointers[k] + bytes);
      }
      if (op.accesses[k].mode != AccessMode::read) {
        std::fill_n(call.pointers[k], bytes, std::byte{7});
      }
    }
  }
  void load(TensorId tensor, std::byte* to) override {
    const Bytes bytes = program_.tensors[static_cast<std::size_t>(tensor)].bytes;
    std::fill_n(to, bytes, std::byte{3});
  }
  void store(TensorId /*tensor*/, const std::byte* /*from*/) override {}

  std::map<std::string, std::vector<std::byte>> read;  ///< "op tensor": in the last iteration

 private:
  const Program& program_;
};

/// Between its write and its read, x does not fit beside y.
class MadeUpValues : public ::testing::Test {
 protected:
  static constexpr Bytes kSize = 4096;
  MadeUpValues() {
    using enum AccessMode;
    testing::ProgramBuilder b;
    const TensorId x = b.tensor("x", kSize);
    const TensorId y = b.tensor("y", kSize);
    const TensorId w = b.tensor("w", 64, true);
    b.device("make x", {{x, write}}, Nanos{1});
    b.device("make y", {{y, write}}, Nanos{1});
    b.device("use y", {{y, read}}, Nanos{1});
    b.device("learn", {{x, read}, {w, update}}, Nanos{1});
    b.device("use y again", {{y, read}, {w, read}}, Nanos{1});
    program_ = b.build();
  }
  void run(const std::vector<char>& made_up) {
    const Bytes host = Reactive::enough_host_bytes(program_, 64, made_up);
    FakeDevice device(FakeScript{}, 64);
    Reactive reactive(program_, least_workspace_algorithms(program_), {kSize + 64, host}, device,
                      runner_, made_up);
    reactive.enter();
    reactive.run(2);
    EXPECT_EQ(reactive.arena_peak(), kSize + 64);
    EXPECT_EQ(reactive.timings().size(), 2U);
  }
  Program program_;
  WatchingRunner runner_{program_};
};

TEST_F(MadeUpValues, AreOrdinaryNumbersWhereTheRightOnesAreGone) {
  run({1, 1, 0});
  std::array<float, kSize / sizeof(float)> numbers{};
  for (const char* absent : {"learn x", "use y again y"}) {
    const auto& bytes = runner_.read[absent];
    ASSERT_EQ(bytes.size(), sizeof numbers) << absent;
    std::memcpy(numbers.data(), bytes.data(), sizeof numbers);
    for (const float number : numbers) {
      EXPECT_GE(std::abs(number), 0.1F);
      EXPECT_LE(std::abs(number), 1.0F);
    }
    EXPECT_TRUE(std::ranges::any_of(numbers, [](float number) { return number < 0; }));
    EXPECT_TRUE(std::ranges::any_of(numbers, [](float number) { return number > 0; }));
  }
  EXPECT_EQ(runner_.read["use y y"][0], std::byte{7}) << "it was there still";
}

TEST_F(MadeUpValues, OthersAreRightAndPersistentOnesTheFirst) {
  run({1, 0, 0});
  EXPECT_EQ(runner_.read["use y again y"][0], std::byte{7}) << "not made up";
  EXPECT_EQ(runner_.read["learn w"][0], std::byte{3});
  EXPECT_EQ(runner_.read["use y again w"][0], std::byte{3}) << "what was learned is forgotten";
  run({});
  EXPECT_EQ(runner_.read["learn x"][0], std::byte{7});
  EXPECT_EQ(runner_.read["use y again w"][0], std::byte{7});
}

TEST_F(MadeUpValues, NeedNoHostBytes) {
  EXPECT_EQ(Reactive::enough_host_bytes(program_, 64), 2 * kSize + 64);
  EXPECT_EQ(Reactive::enough_host_bytes(program_, 64, std::vector<char>{1, 1, 0}), kMiB + 64)
      << "a constant part that all are filled from, and w";
  FakeDevice device(FakeScript{}, 64);
  EXPECT_THROW(Reactive(program_, least_workspace_algorithms(program_), {kSize + 64, 64}, device,
                        runner_, {1, 1, 0}),
               HostArenaFull);
}

TEST(ApplyOpTimings, TakesTheMedianOfEachOpFromItsOwnStart) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId x = b.tensor("x", 64);
  b.host("feed", {{x, write}}, Nanos{1});
  b.device("A", {{x, read}}, Nanos{2});
  b.device("B", {{x, read}}, Nanos{3});
  Program program = b.build();
  const auto timing = [](int start, int end) { return OpTiming{Nanos{start}, Nanos{end}}; };
  const std::vector<std::int32_t> algorithms{0, 0, 0};
  apply_op_timings(algorithms, {}, program);
  EXPECT_EQ(program.ops[1].algorithms[0].time, Nanos{2}) << "nothing was measured";
  apply_op_timings(algorithms,
                   {{timing(0, 9), timing(10, 30), timing(50, 57)},
                    {timing(60, 61), timing(70, 100), timing(200, 207)},
                    {timing(300, 301), timing(310, 329), timing(400, 500)}},
                   program);
  EXPECT_EQ(program.ops[0].algorithms[0].time, Nanos{1}) << "host ops are not measured";
  EXPECT_EQ(program.ops[1].algorithms[0].time, Nanos{20});
  EXPECT_EQ(program.ops[2].algorithms[0].time, Nanos{7});
}

TEST(Segments, NeighbouringFreeRangesBecomeOne) {
  Segments segments(1000, 8);
  const auto a = segments.allocate(100);
  const auto b = segments.allocate(200);
  const auto c = segments.allocate(300);
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(*b, 104);
  segments.free(*a);
  segments.free(*c);
  EXPECT_EQ(segments.largest_free(), 1000 - 304);
  segments.free(*b);
  EXPECT_EQ(segments.largest_free(), 1000);
  EXPECT_EQ(segments.used(), 0);
  EXPECT_FALSE(segments.allocate(1001));
}

}  // namespace
}  // namespace tidepool
