// Clause 6 for single placements against its definition: of two uses of a tensor at different
// places of a device, the earlier one is over before the later one starts, whatever the speed.
#include "check/placements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/at.h"
#include "base/random.h"
#include "check/check.h"
#include "lower/lower.h"
#include "support/odd_program.h"
#include "support/program_builder.h"
#include "support/random_program.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

/// By hand: the value of `hidden` leaves after `make` and comes back at another place for `late`,
/// while `early` still reads the first one.
class SinglePlacements : public ::testing::Test {
 protected:
  enum : std::int32_t { kComputeStream, kOut, kIn, kHost };
  enum : std::int32_t { kWeightHost, kWeight, kInputHost, kInput, kHidden, kHiddenHost, kHidden2 };

  void SetUp() override {
    using enum AccessMode;
    testing::ProgramBuilder b;
    const TensorId input = b.tensor("input", 64);
    const TensorId weight = b.tensor("weight", 64, true);
    const TensorId hidden = b.tensor("hidden", 64);
    b.host("feed", {{input, write}});
    b.device("make", {{input, read}, {hidden, write}}, Nanos{5});
    b.device("early", {{hidden, read}, {weight, update}}, Nanos{5});
    b.device("late", {{hidden, read}, {weight, update}}, Nanos{5});
    program_ = b.build();
    program_.single_placements = true;
    plan_.arenas = {{SpaceKind::device, 1024, 64}, {SpaceKind::host, 1024, 64}};
    plan_.streams = {{0, StreamKind::compute},
                     {0, StreamKind::copy},
                     {0, StreamKind::copy},
                     {0, StreamKind::host}};
    plan_.placements = {{weight, 1, 0, 64},  {weight, 0, 0, 64},   {input, 1, 64, 64},
                        {input, 0, 64, 64},  {hidden, 0, 128, 64}, {hidden, 1, 128, 64},
                        {hidden, 0, 192, 64}};
    plan_.boundary = {kWeight};
    plan_.entry.instructions = {load(kWeightHost),
                                copy(kIn, kWeightHost, kWeight, {{kHost, 0, 0}})};
    plan_.exit.instructions = {copy(kOut, kWeight, kWeightHost),
                               store(kWeightHost, {{kOut, 0, 0}})};
    plan_.steady.instructions = {
        op(0, kHost, {kInputHost}, {{kIn, 1, -1}}),
        copy(kIn, kInputHost, kInput, {{kHost, 0, 0}, {kComputeStream, 2, -1}}),
        op(1, kComputeStream, {kInput, kHidden}, {{kIn, 1, 0}, {kOut, 3, -1}}),
        copy(kOut, kHidden, kHiddenHost, {{kComputeStream, 2, 0}, {kIn, 5, -1}}),
        op(2, kComputeStream, {kHidden, kWeight}, {}),
        copy(kIn, kHiddenHost, kHidden2, {{kOut, 3, 0}, {kComputeStream, 4, 0}}),
        op(3, kComputeStream, {kHidden2, kWeight}, {{kIn, 5, 0}}),
    };
  }

  static Instruction op(OpId id, StreamId stream, std::vector<PlacementId> operands,
                        std::vector<Wait> waits) {
    Instruction x;
    x.op = id;
    x.stream = stream;
    x.operands = std::move(operands);
    x.waits = std::move(waits);
    return x;
  }
  static Instruction copy(StreamId stream, PlacementId from, PlacementId to,
                          std::vector<Wait> waits = {}) {
    Instruction x;
    x.kind = InstructionKind::copy;
    x.stream = stream;
    x.from = from;
    x.to = to;
    x.bytes = 64;
    x.waits = std::move(waits);
    return x;
  }
  static Instruction load(PlacementId to) {
    Instruction x = copy(kHost, kNone, to);
    x.kind = InstructionKind::load;
    return x;
  }
  static Instruction store(PlacementId from, std::vector<Wait> waits) {
    Instruction x = copy(kHost, from, kNone, std::move(waits));
    x.kind = InstructionKind::store;
    return x;
  }

  [[nodiscard]] std::string refusal() const {
    const auto proof = check(program_, plan_, {1024});
    return proof ? "accepted" : proof.error().message;
  }
  Instruction& steady(std::size_t i) { return plan_.steady.instructions[i]; }

  Program program_;
  Plan plan_;
};

TEST_F(SinglePlacements, ANewPlaceThatWaitsForTheUsesOfTheOldOneIsAccepted) {
  EXPECT_EQ(refusal(), "accepted");
}

/// Regression: the list has `early` before the copy in, but nothing orders them.
TEST_F(SinglePlacements, ListOrderIsNoOrder) {
  steady(5).waits = {{kOut, 3, 0}};
  EXPECT_THAT(refusal(), ::testing::AllOf(::testing::HasSubstr("(6) steady[5]"),
                                          ::testing::HasSubstr("does not wait for steady[4]")));
  program_.single_placements = false;
  EXPECT_EQ(refusal(), "accepted");
}

/// The second place is still read by a copy when the next iteration writes the first.
TEST_F(SinglePlacements, UsesOfTheLastIterationMustBeOverToo) {
  plan_.placements.push_back({plan_.placements[kHidden].tensor, 1, 192, 64});
  plan_.steady.instructions.push_back(copy(kOut, kHidden2, 7, {{kIn, 5, 0}}));
  EXPECT_THAT(refusal(), ::testing::AllOf(::testing::HasSubstr("(6) steady[2]"),
                                          ::testing::HasSubstr("does not wait for steady[7]")));
  program_.single_placements = false;
  EXPECT_EQ(refusal(), "accepted");
}

// ---- mutants

/// What happens before what, as the closure of stream order and waits over `kIterations`.
class Closure {
 public:
  static constexpr std::size_t kIterations = 3;

  explicit Closure(const Plan& plan)
      : n_(plan.steady.instructions.size()), before_(n_ * kIterations) {
    for (std::size_t e = 0; e < before_.size(); ++e) {
      before_[e].assign(before_.size(), false);
      const Instruction& x = plan.steady.instructions[e % n_];
      for (std::size_t d = 0; d < e; ++d) {
        if (plan.steady.instructions[d % n_].stream == x.stream) add(d, e);
      }
      for (const Wait& w : x.waits) {
        if (w.iteration == 0) add(e - e % n_ + at(w.index), e);
        if (w.iteration == -1 && e >= n_) add(e - e % n_ - n_ + at(w.index), e);
      }
    }
  }
  [[nodiscard]] std::size_t events() const { return before_.size(); }
  [[nodiscard]] bool before(std::size_t a, std::size_t b) const { return before_[b][a]; }

 private:
  void add(std::size_t earlier, std::size_t later) {
    before_[later][earlier] = true;
    for (std::size_t d = 0; d < earlier; ++d) {
      if (before_[earlier][d]) before_[later][d] = true;
    }
  }
  std::size_t n_;
  std::vector<std::vector<bool>> before_;  ///< [later][earlier]
};

/// Some tensor is used at two places of the device at once, at some speed.
bool has_two_places(const Plan& plan) {
  struct Use {
    std::size_t event;
    TensorId tensor;
    Bytes offset;
  };
  const Closure order(plan);
  std::vector<Use> uses;
  for (std::size_t e = 0; e < order.events(); ++e) {
    const Instruction& x = plan.steady.instructions[e % plan.steady.instructions.size()];
    std::vector<PlacementId> ids = x.operands;
    if (x.kind == InstructionKind::copy) ids = {x.from, x.to};
    for (const PlacementId id : ids) {
      const Placement& p = plan.placements[at(id)];
      if (plan.kind_of(id) == SpaceKind::device) uses.push_back({e, p.tensor, p.offset});
    }
  }
  for (const Use& a : uses) {
    for (const Use& b : uses) {
      const bool apart = a.tensor == b.tensor && a.offset != b.offset && a.event < b.event;
      if (apart && !order.before(a.event, b.event)) return true;
    }
  }
  return false;
}

/// The tensor of a copy in comes back to bytes of its own, for all that follow in the list.
bool another_place(Plan& plan, CheckLimits& limits, Random& random) {
  std::vector<std::size_t> found;
  auto& list = plan.steady.instructions;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].kind == InstructionKind::copy && plan.kind_of(list[i].to) == SpaceKind::device) {
      found.push_back(i);
    }
  }
  if (found.empty()) return false;
  const std::size_t first = found[random.below(found.size())];
  const PlacementId old = list[first].to;
  Placement place = plan.placements[at(old)];
  place.offset = align_up(plan.device_bytes(), plan.arenas[0].alignment);
  plan.device_bytes() = limits.spaces[0].bytes = place.offset + place.bytes;
  plan.placements.push_back(place);
  const auto id = static_cast<PlacementId>(plan.placements.size()) - 1;
  list[first].to = id;
  for (std::size_t i = first + 1; i < list.size(); ++i) {
    std::ranges::replace(list[i].operands, old, id);
    if (list[i].from == old) list[i].from = id;
  }
  return true;
}

void remove_a_wait(Plan& plan, Random& random) {
  std::vector<Instruction*> waiting;
  for (Instruction& x : plan.steady.instructions) {
    if (!x.waits.empty()) waiting.push_back(&x);
  }
  if (waiting.empty()) return;
  auto& waits = waiting[random.below(waiting.size())]->waits;
  waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(random.below(waits.size())));
}

TEST(SinglePlacementMutants, WhatIsAcceptedNeverHasTwoPlacesAtOnce) {
  constexpr auto kPrograms = testing::usual_or<std::uint64_t>(600, 100);
  int proved = 0;
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    Program program = testing::odd_program(seed, testing::HostUse::plain, {6, 9, true});
    for (Tensor& t : program.tensors) t.pinned = false;
    // Planned without the rule, which then asks more of the plan than it was made for.
    program.single_placements = false;
    for (Op& op : program.ops) op.recomputable = false;
    const Machine machine = testing::random_machine(seed);
    Lowering lowering(program, machine);
    Random random(seed);
    const Strategy strategy =
        testing::random_strategy(program, lowering.index(), random.uniform(), seed);
    auto lowered = lowering.lower(strategy, {1 << 20, 0});
    ASSERT_TRUE(lowered) << lowered.error().message;
    for (int m = 0; m < 8; ++m) {
      Plan mutant = lowered->plan;
      CheckLimits limits = check_limits(machine, {1 << 20, 0});
      if (random.below(4) > 0) another_place(mutant, limits, random);
      for (auto waits = random.below(3); waits > 0; --waits) remove_a_wait(mutant, random);
      program.single_placements = false;
      if (!check(program, mutant, limits)) continue;
      program.single_placements = true;
      const bool two = has_two_places(mutant);
      const auto proof = check(program, mutant, limits);
      proved += proof ? 1 : 0;
      wrong += two ? 1 : 0;
      EXPECT_FALSE(two && proof) << "mutant " << m;
      program.single_placements = false;
    }
  }
  std::printf("%d mutants with two places at once, %d proved\n", wrong, proved);
  EXPECT_GT(wrong, static_cast<int>(kPrograms) / 20);
  EXPECT_GT(proved, static_cast<int>(kPrograms));
}

// ---- bytes that stay taken

/// `v` is made, read, and needed again behind an op with a large workspace.
struct TakenBytes {
  static constexpr Bytes kSize = 4096;
  TensorId u, v, c;
  OpId release;
  Program program;

  TakenBytes() {
    using enum AccessMode;
    testing::ProgramBuilder b("taken");
    u = b.tensor("u", kSize);
    v = b.tensor("v", kSize);
    c = b.tensor("c", 64);
    b.device("make u", {{u, write}}, Nanos{1000});
    b.device("make v", {{v, write}, {c, write}}, Nanos{100});
    b.device("read v", {{v, read}, {c, update}}, Nanos{100});
    b.device("peak", {{c, update}}, Nanos{100}, kSize);
    release = b.device("release", {{c, update}, {v, read}}, Nanos{1000});
    b.device("use", {{u, read}, {c, read}}, Nanos{1000});
    program = b.build();
  }

  /// Where the workspace takes the place of `v`, which is made again at its old address.
  [[nodiscard]] Plan plan_that_reuses_them() const {
    const Machine machine = testing::byte_a_nanosecond(64);
    Lowering lowering(program, machine);
    Strategy s = keep_everything(program, lowering.index(), least_workspace_algorithms(program));
    const auto gaps = lowering.index().gaps();
    for (std::size_t g = 0; g < gaps.size(); ++g) {
      if (gaps[g].tensor == v && gaps[g].to == release) s.gaps[g] = Decision::recompute;
    }
    LowerOptions options;
    options.allow_streaming = false;
    auto lowered = lowering.lower(s, {2 * kSize + 128, 0}, options);
    EXPECT_TRUE(lowered) << lowered.error().message;
    return lowered->plan;
  }
  [[nodiscard]] std::string why_not(const Program& promised, const Plan& plan) const {
    const auto proof = tidepool::check(promised, plan, {2 * kSize + 128, 0, 64, true});
    return proof ? "" : proof.error().message;
  }
};

/// A bound counts on them, and was beaten by a plan that passed.
TEST(TakenBytes, NothingElseIsWrittenOverAPinnedTensor) {
  const TakenBytes t;
  const Plan plan = t.plan_that_reuses_them();
  EXPECT_EQ(t.why_not(t.program, plan), "");
  Program pinned = t.program;
  pinned.tensors[at(t.v)].pinned = true;
  EXPECT_THAT(t.why_not(pinned, plan), ::testing::HasSubstr("(6) "));
}

TEST(TakenBytes, NothingElseIsWrittenUntilTheRelease) {
  const TakenBytes t;
  Plan plan = t.plan_that_reuses_them();
  Program released = t.program;
  released.tensors[at(t.v)].released_at = t.release;
  auto& accesses = released.ops[at(t.release)].accesses;
  std::erase_if(accesses, [&](const Access& a) { return a.tensor == t.v; });
  for (Instruction& x : plan.steady.instructions) {
    if (x.kind == InstructionKind::op && x.op == t.release) x.operands.pop_back();
  }
  EXPECT_THAT(t.why_not(released, plan), ::testing::HasSubstr("(6) "));
}

}  // namespace
}  // namespace tidepool
