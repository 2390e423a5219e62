#include "runtime/profiler.h"

#include <algorithm>

#include "base/median.h"

namespace tidepool {
namespace {

/// A guard may have skipped the op.
bool ran(const OpTiming& t) { return t.end > Nanos{0}; }

/// Puts times of ops into a program, and adds up how far they spread.
class OpTimes {
 public:
  explicit OpTimes(Program& program) : program_(program) {}

  /// The median or, where others kept the processor during most of the iterations, hardly more than
  /// the least: nothing makes an op faster than it is.
  void set(std::int32_t op, std::int32_t algorithm, const std::vector<Nanos>& samples) {
    constexpr int kPart = 10;
    const Nanos least = *std::ranges::min_element(samples);
    const Nanos usual = median(samples);
    program_.ops[static_cast<std::size_t>(op)]
        .algorithms[static_cast<std::size_t>(algorithm)]
        .time = std::min(usual, least + least / kPart);
    least_ += least;
    usual_ += usual;
  }
  [[nodiscard]] double spread() const {
    return least_ > Nanos{0} ? to_seconds(usual_) / to_seconds(least_) - 1 : 0;
  }

 private:
  Program& program_;
  Nanos least_{0};
  Nanos usual_{0};
};

}  // namespace

double apply_timings(const Plan& plan, const std::vector<std::vector<OpTiming>>& timings,
                     Program& program) {
  OpTimes times(program);
  if (timings.empty()) return times.spread();
  const auto& list = plan.steady.instructions;
  std::vector<Nanos> samples;
  std::vector<std::size_t> before;  // device ops so far
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Instruction& x = list[i];
    if (x.kind != InstructionKind::op ||
        plan.streams[static_cast<std::size_t>(x.stream)].kind != StreamKind::compute) {
      continue;
    }
    samples.clear();
    for (const auto& iteration : timings) {
      if (!ran(iteration[i])) continue;
      const auto previous = std::find_if(before.rbegin(), before.rend(),
                                         [&](std::size_t p) { return ran(iteration[p]); });
      const Nanos begin = previous != before.rend() ? iteration[*previous].end : iteration[i].start;
      samples.push_back(iteration[i].end - begin);
    }
    before.push_back(i);
    if (samples.empty()) continue;
    times.set(x.op, x.algorithm, samples);
  }
  return times.spread();
}

void apply_op_timings(std::span<const std::int32_t> algorithms,
                      const std::vector<std::vector<OpTiming>>& timings, Program& program) {
  if (timings.empty()) return;
  OpTimes times(program);
  std::vector<Nanos> samples;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (op.place != OpPlace::device) continue;
    samples.clear();
    for (const auto& iteration : timings) {
      if (ran(iteration[i])) samples.push_back(iteration[i].end - iteration[i].start);
    }
    if (samples.empty()) continue;
    times.set(static_cast<std::int32_t>(i), algorithms[i], samples);
  }
}

}  // namespace tidepool
