#include "planners/published/dqn/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "base/at.h"
#include "ir/load_profile.h"
#include "planners/toolkit/strategy_builder.h"
#include "support/attacks.h"
#include "support/random_program.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

using dqn::Departure;

/// The same times in another way, for swaps: who is there at each op, asked anew each time, and
/// copies in a list. Slow.
class SlowSimulation {
 public:
  SlowSimulation(const Program& program, const AccessIndex& index, const Machine& machine)
      : program_(program), index_(index), machine_(machine) {}

  /// Also `blocked`, kNone where every op gets its memory.
  Nanos run(const Strategy& strategy, const std::vector<Departure>& departures, Bytes limit) {
    strategy_ = &strategy;
    departures_ = &departures;
    limit_ = limit;
    list_copies();
    flying_.clear();
    Nanos time = pass();
    if (!flying_.empty()) time = pass();
    return time;
  }
  OpId blocked = kNone;

 private:
  struct Out {
    GapId gap;
    OpId op;
    bool at_end;
    std::size_t order;
    Nanos end{-1};
  };
  struct In {
    GapId gap;
    OpId op;
    std::size_t operand;
    bool begun = false;
    Nanos arrival{};
    OpId from = kNone;  ///< begun with this op
  };
  struct Flying {
    Nanos end;
    Bytes bytes;
  };

  [[nodiscard]] Bytes bytes(GapId g) const {
    return align_up(program_.tensors[at(gap(g).tensor)].bytes, machine_.alignment());
  }
  [[nodiscard]] const Gap& gap(GapId g) const { return index_.gaps()[at(g)]; }
  [[nodiscard]] bool away(GapId g) const {
    return strategy_->gaps[at(g)] == Decision::swap || strategy_->gaps[at(g)] == Decision::drop;
  }
  [[nodiscard]] OpId ops() const { return static_cast<OpId>(program_.ops.size()); }
  [[nodiscard]] bool on_device(OpId op) const {
    return program_.ops[at(op)].place == OpPlace::device;
  }
  [[nodiscard]] const Departure* departure(GapId g) const {
    const auto found = std::ranges::find(*departures_, g, &Departure::gap);
    return found == departures_->end() ? nullptr : &*found;
  }

  void list_copies() {
    outs_.clear();
    ins_.clear();
    for (GapId g = 0; g < static_cast<GapId>(index_.gaps().size()); ++g) {
      const Gap& of = gap(g);
      const bool leaves = of.kind == GapKind::device && away(g);
      if ((leaves && strategy_->gaps[at(g)] == Decision::swap) || of.kind == GapKind::download) {
        const Departure* decided = departure(g);
        const auto& accesses = program_.ops[at(of.from)].accesses;
        const auto operand = std::ranges::find(accesses, of.tensor, &Access::tensor);
        outs_.push_back(
            {g, of.from, true,
             departures_->size() + static_cast<std::size_t>(operand - accesses.begin())});
        if (decided != nullptr) {
          outs_.back().op = std::max(decided->op, of.from);
          outs_.back().at_end = decided->at_end;
          outs_.back().order = static_cast<std::size_t>(decided - departures_->data());
        }
      }
      if (of.dead || !(leaves || of.kind == GapKind::upload)) continue;
      const auto& accesses = program_.ops[at(of.to)].accesses;
      const auto operand = std::ranges::find(accesses, of.tensor, &Access::tensor);
      if (operand->mode == AccessMode::write) continue;
      ins_.push_back({g, of.to, static_cast<std::size_t>(operand - accesses.begin())});
    }
    std::ranges::sort(outs_, [](const Out& a, const Out& b) {
      return std::tuple(a.op.value(), a.at_end, a.order) <
             std::tuple(b.op.value(), b.at_end, b.order);
    });
    std::ranges::sort(ins_, [](const In& a, const In& b) {
      return std::tuple(a.op.value(), a.operand) < std::tuple(b.op.value(), b.operand);
    });
  }

  /// Whether the tensor is on the device at the op, copies in that began earlier apart.
  [[nodiscard]] bool there(TensorId t, OpId op) const {
    const auto accesses = index_.accesses(t);
    for (const TensorAccess& access : accesses) {
      if (access.op == op && on_device(op)) return true;
    }
    for (std::size_t i = 0; i < index_.gaps(t).size(); ++i) {
      const GapId g = index_.first_gap(t) + static_cast<std::int32_t>(i);
      const Gap& of = gap(g);
      const bool inside = of.wraps ? op < of.to || op > of.from : op > of.from && op < of.to;
      if (!inside) continue;
      if (of.kind == GapKind::kept) return true;
      if (of.kind != GapKind::device) return false;
      if (!away(g)) return true;
      const auto out = std::ranges::find(outs_, g, &Out::gap);
      return out != outs_.end() && op <= out->op && op > of.from;
    }
    return false;
  }

  [[nodiscard]] Bytes load(OpId op) const {
    const Op& of = program_.ops[at(op)];
    Bytes sum =
        align_up(of.algorithms[at(strategy_->algorithms[at(op)])].workspace, machine_.alignment());
    for (TensorId t = 0; t < static_cast<TensorId>(program_.tensors.size()); ++t) {
      const Bytes size = align_up(program_.tensors[at(t)].bytes, machine_.alignment());
      bool counted = there(t, op);
      // Needed and not yet begun copies in are counted when they begin.
      for (const In& in : ins_) {
        if (gap(in.gap).tensor != t) continue;
        if (in.op == op) counted = in.begun;
        if (in.begun && in.from <= op && op < in.op) counted = true;
      }
      if (counted) sum += size;
    }
    return sum;
  }

  Bytes in_flight() {
    std::erase_if(flying_, [&](const Flying& f) { return f.end <= now_; });
    Bytes sum = 0;
    for (const Flying& f : flying_) sum += f.bytes;
    return sum;
  }

  bool await(Bytes needed) {
    while (std::min(needed, limit_) + in_flight() > limit_ && !flying_.empty()) {
      now_ = std::max(now_, flying_.front().end);
    }
    return needed <= limit_;
  }

  void begin_in(In& in, OpId op) {
    Nanos start = std::max(now_, link_in());
    const auto out = source(in);
    if (out != nullptr) start = std::max(start, out->end);
    link_in() = in.arrival =
        start + machine_.to_device().time(program_.tensors[at(gap(in.gap).tensor)].bytes);
    in.begun = true;
    in.from = op;
  }

  /// The copy out of this iteration whose bytes it brings back.
  const Out* source(const In& in) const {
    const Out* last = nullptr;
    if (gap(in.gap).wraps) return nullptr;
    for (const Out& out : outs_) {
      const bool same = gap(out.gap).tensor == gap(in.gap).tensor && !gap(out.gap).wraps &&
                        gap(out.gap).from <= gap(in.gap).from;
      if (!same || gap(out.gap).version != gap(in.gap).version) continue;
      if (last == nullptr || gap(out.gap).from > gap(last->gap).from) last = &out;
    }
    return last;
  }

  void prefetch(OpId op) {
    const Nanos until = now_ + time(op);
    for (In& in : ins_) {
      if (in.begun || in.op < op) continue;
      if (link_in() >= until) return;
      const Gap& of = gap(in.gap);
      if (!of.wraps && of.from >= op) continue;
      if (const Out* out = source(in); out != nullptr && (out->end < Nanos{0} || out->end > now_)) {
        continue;
      }
      if (load(op) + in_flight() + bytes(in.gap) > limit_) return;
      for (OpId later = op; later <= in.op; ++later) {
        if (on_device(later) && load(later) + bytes(in.gap) > limit_) return;
      }
      begin_in(in, op);
    }
  }

  [[nodiscard]] Nanos time(OpId op) const {
    if (!on_device(op)) return Nanos{0};
    return program_.ops[at(op)].algorithms[at(strategy_->algorithms[at(op)])].time;
  }

  void begin_outs(OpId op, bool at_end) {
    for (Out& out : outs_) {
      if (out.op != op || out.at_end != at_end) continue;
      out.end = std::max(now_, link_out()) +
                machine_.to_host().time(program_.tensors[at(gap(out.gap).tensor)].bytes);
      link_out() = out.end;
      flying_.push_back({out.end, bytes(out.gap)});
    }
  }

  Nanos& link_out() { return out_free_; }
  Nanos& link_in() { return machine_.duplex() ? in_free_ : out_free_; }

  Nanos pass() {
    now_ = in_free_ = Nanos{0};
    out_free_ = flying_.empty() ? Nanos{0} : flying_.back().end;
    for (In& in : ins_) in.begun = false;
    for (Out& out : outs_) out.end = Nanos{-1};
    blocked = kNone;
    for (OpId op = 0; op < ops(); ++op) {
      Nanos ready = now_;
      for (In& in : ins_) {
        if (in.op != op || in.begun) continue;
        await(load(op) + bytes(in.gap));
        begin_in(in, op);
      }
      for (const In& in : ins_) {
        if (in.op == op) ready = std::max(ready, in.arrival);
      }
      now_ = std::max(now_, ready);
      if (on_device(op)) {
        if (!await(load(op)) && blocked == kNone) blocked = op;
        prefetch(op);
      }
      begin_outs(op, false);
      now_ += time(op);
      begin_outs(op, true);
    }
    Nanos out{0};
    Nanos in{0};
    for (const Out& o : outs_) out += machine_.to_host().time(size(o.gap));
    for (const In& i : ins_) in += machine_.to_device().time(size(i.gap));
    in_flight();
    for (Flying& f : flying_) f.end -= now_;
    return std::max(now_, machine_.duplex() ? std::max(out, in) : out + in);
  }
  [[nodiscard]] Bytes size(GapId g) const { return program_.tensors[at(gap(g).tensor)].bytes; }

  const Program& program_;
  const AccessIndex& index_;
  const Machine& machine_;
  const Strategy* strategy_ = nullptr;
  const std::vector<Departure>* departures_ = nullptr;
  Bytes limit_ = 0;
  std::vector<Out> outs_;
  std::vector<In> ins_;
  std::vector<Flying> flying_;
  Nanos now_{};
  Nanos in_free_{};
  Nanos out_free_{};
};

/// Swaps at random, each decided on at random within its gap; in the order of those decisions.
struct RandomDecisions {
  RandomDecisions(const Program& program, const AccessIndex& index, std::uint64_t seed)
      : random(seed), builder(program, index, least_workspace_algorithms(program)) {
    for (GapId g = 0; g < static_cast<GapId>(index.gaps().size()); ++g) {
      const Gap& gap = index.gaps()[at(g)];
      if (gap.kind != GapKind::device || random.below(2) == 0) continue;
      builder.away(g);
      if (gap.wraps || gap.dead || gap.to == gap.from + 1) continue;
      const auto length = static_cast<std::uint64_t>(gap.to - gap.from - 1);
      const OpId op = gap.from + static_cast<std::int32_t>(random.below(length));
      if (program.ops[at(op)].place != OpPlace::device) continue;
      departures.push_back({g, op, op == gap.from || random.below(2) == 0});
    }
    std::ranges::stable_sort(departures, [](const Departure& a, const Departure& b) {
      return std::tuple(a.op.value(), a.at_end) < std::tuple(b.op.value(), b.at_end);
    });
  }
  Random random;
  StrategyBuilder builder;
  std::vector<Departure> departures;
};

TEST(IterationSimulator, AgreesWithASlowSimulation) {
  const auto programs = testing::some<std::uint64_t>(testing::usual_or(20, 2), 200);
  int blocked = 0;
  int waits = 0;
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed);
    const Machine machine = testing::random_machine(seed);
    const AccessIndex index(program);
    const auto algorithms = least_workspace_algorithms(program);
    const Bytes peak = load_profile(program, index, machine.alignment(), algorithms).peak;
    dqn::IterationSimulator simulator(program, index, machine);
    SlowSimulation slow(program, index, machine);
    for (std::uint64_t k = 0; k < 4; ++k) {
      RandomDecisions drawn(program, index, hash_combine(seed, k));
      const Strategy& strategy = drawn.builder.strategy();
      const Bytes limit = peak * static_cast<Bytes>(5 + k) / 10;
      const auto fast = simulator.run(strategy, drawn.departures, limit);
      ASSERT_TRUE(fast.possible);
      EXPECT_EQ(fast.time, slow.run(strategy, drawn.departures, limit)) << k;
      EXPECT_EQ(fast.blocked, slow.blocked) << k;
      blocked += fast.blocked != kNone ? 1 : 0;
      waits += fast.time > compute_time(program, algorithms) ? 1 : 0;
    }
  }
  EXPECT_GT(blocked, 0);
  EXPECT_GT(waits, 0);
}

}  // namespace
}  // namespace tidepool
