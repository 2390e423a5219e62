#include "lower/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <chrono>
#include <limits>

#include "check/check.h"
#include "ir/load_profile.h"
#include "lower/emit.h"
#include "lower/latest_starts.h"
#include "lower/order.h"
#include "pack/search.h"

namespace tidepool {
namespace {

/// Adds the time since its construction to a named pass.
class PassTimer {
 public:
  PassTimer(std::vector<PassTime>& times, std::string_view pass) : times_(times), pass_(pass) {}
  PassTimer(const PassTimer&) = delete;
  PassTimer& operator=(const PassTimer&) = delete;
  ~PassTimer() {
    const auto took = std::chrono::duration_cast<Nanos>(std::chrono::steady_clock::now() - start_);
    for (PassTime& t : times_) {
      if (t.pass == pass_) {
        t.time += took;
        return;
      }
    }
    times_.push_back({std::string(pass_), took});
  }

 private:
  std::vector<PassTime>& times_;
  std::string_view pass_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// The instances of one space as a packing problem. `may_share(a, b)` is symmetric. Graphs of large
/// models have millions of entries: `bits` and `problem` are reused, and no list grows.
template <class MayShare>
void make_pack_problem(const std::vector<Instance>& all, const std::vector<InstanceId>& members,
                       Bytes alignment, MayShare may_share, std::vector<std::uint64_t>& bits,
                       PackProblem& problem) {
  const std::size_t n = members.size();
  const std::size_t words = (n + 63) / 64;
  bits.assign(n * words, 0);  // row i: who conflicts with i
  problem.sizes.resize(n);
  problem.starts.resize(n);
  problem.fixed.resize(n);
  problem.neighbour_start.assign(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) {
    const Instance& a = all[static_cast<std::size_t>(members[i])];
    problem.sizes[i] = align_up(a.bytes, alignment);
    problem.starts[i] = a.always ? -1 : a.begin;
    problem.fixed[i] = a.fixed_offset;
    for (std::size_t j = i + 1; j < n; ++j) {
      if (may_share(a, all[static_cast<std::size_t>(members[j])])) continue;
      bits[i * words + j / 64] |= std::uint64_t{1} << j % 64;
      bits[j * words + i / 64] |= std::uint64_t{1} << i % 64;
      ++problem.neighbour_start[i + 1];
      ++problem.neighbour_start[j + 1];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    problem.neighbour_start[i + 1] += problem.neighbour_start[i];
  }
  problem.neighbours.resize(static_cast<std::size_t>(problem.neighbour_start[n]));
  auto next = problem.neighbours.begin();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t w = 0; w < words; ++w) {
      for (std::uint64_t row = bits[i * words + w]; row != 0; row &= row - 1) {
        *next++ = static_cast<std::int32_t>(w * 64) + std::countr_zero(row);
      }
    }
  }
}

std::vector<InstanceId> members_of(const std::vector<Instance>& all, bool on_host) {
  std::vector<InstanceId> members;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].on_host == on_host) members.push_back(static_cast<InstanceId>(i));
  }
  return members;
}

/// The first packer that fits, or else the smallest footprint of them; ties to the earlier packer.
/// Where only what fits is of use the packers stop at the budget.
std::pair<Packing, std::string> best_packing(PackProblem& problem, Bytes budget,
                                             bool only_what_fits) {
  std::pair<Packing, std::string> best;
  problem.give_up_above = only_what_fits ? budget : std::numeric_limits<Bytes>::max();
  for (const Packer& packer : smartpool_packers()) {
    Packing packing = packer.pack(problem);
    if (best.second.empty() || packing.footprint < best.first.footprint) {
      best = {std::move(packing), std::string(packer.name)};
    }
    if (best.first.footprint <= budget) break;
    problem.give_up_above = best.first.footprint - 1;
  }
  problem.give_up_above = std::numeric_limits<Bytes>::max();
  return best;
}

/// Why addresses that the strategy fixes cannot be had; empty when they can.
class FixedAddresses {
 public:
  FixedAddresses(const Program& program, const std::vector<Instance>& all,
                 const std::vector<InstanceId>& members)
      : program_(program), all_(all), members_(members) {}

  [[nodiscard]] std::string outside(const PackProblem& problem, Bytes budget,
                                    Bytes alignment) const {
    for (std::size_t i = 0; i < problem.fixed.size(); ++i) {
      const Bytes offset = problem.fixed[i];
      if (offset < 0) continue;
      if (offset % alignment != 0) {
        return fmt::format("tensor '{}' is fixed at {}, which is not aligned to {} B", name(i),
                           offset, alignment);
      }
      if (offset + problem.sizes[i] > budget) {
        return fmt::format("tensor '{}' is fixed at {}, outside the budget of {} B", name(i),
                           offset, budget);
      }
    }
    return {};
  }

  [[nodiscard]] std::string clash(const PackProblem& problem) const {
    const auto found = fixed_clash(problem);
    if (!found) return {};
    const auto a = static_cast<std::size_t>(found->first);
    const auto b = static_cast<std::size_t>(found->second);
    return fmt::format(
        "tensors '{}' and '{}' are fixed at overlapping addresses ({} and {}) and "
        "live at the same time",
        name(a), name(b), problem.fixed[a], problem.fixed[b]);
  }

 private:
  [[nodiscard]] const std::string& name(std::size_t buffer) const {
    const Instance& instance = all_[static_cast<std::size_t>(members_[buffer])];
    return program_.tensors[static_cast<std::size_t>(instance.tensor)].name;
  }

  const Program& program_;
  const std::vector<Instance>& all_;
  const std::vector<InstanceId>& members_;
};

/// A list of steps, and what follows from its order.
struct Timeline {
  std::vector<Step> steps;
  Instances instances;
  std::optional<HappensBefore> order;

  void find(const Program& program, const Strategy& strategy, const Expansion& expansion) {
    instances = find_instances(program, strategy, expansion, steps);
    order.emplace(steps);
  }
};

bool add_wait(Step& step, StreamId stream, std::int32_t index, std::int32_t iteration) {
  StepWait& wait = step.waits[static_cast<std::size_t>(stream)];
  if (wait.index != kNone &&
      (wait.iteration > iteration || (wait.iteration == iteration && wait.index >= index))) {
    return false;
  }
  wait = {index, iteration};
  return true;
}

/// Adds the waits that make two instances at overlapping addresses safe.
int order_pair(std::span<Step> steps, const HappensBefore& order, const Instance& a,
               const Instance& b) {
  const std::int32_t length = order.length();
  const std::int32_t a_end = a.crosses ? 1 : 0;
  const std::int32_t b_end = b.crosses ? 1 : 0;
  int added = 0;
  const auto wait_for = [&](const Instance& first, std::int32_t iteration, const Instance& next) {
    const StreamId stream = steps[static_cast<std::size_t>(first.end)].stream;
    Step& step = steps[static_cast<std::size_t>(next.begin)];
    if (step.stream != stream && add_wait(step, stream, first.end, iteration)) ++added;
  };
  for (std::int32_t shift = -1; shift <= 1; ++shift) {
    if (order.ordered(a.end, a_end - shift, b.begin)) continue;
    if (order.ordered(b.end, b_end + shift, a.begin)) continue;
    const std::int32_t a_over = a.end + a_end * length;
    if (a_over < b.begin + shift * length) {
      if (a_end - shift >= -1) wait_for(a, a_end - shift, b);
    } else if (b_end + shift >= -1) {
      wait_for(b, b_end + shift, a);
    }
  }
  return added;
}

int order_sharing(std::span<Step> steps, const HappensBefore& order,
                  const std::vector<Instance>& all, const std::vector<InstanceId>& members,
                  const Packing& packing, const PackProblem& problem) {
  int added = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (std::size_t j = i + 1; j < members.size(); ++j) {
      const bool overlap = packing.offsets[i] < packing.offsets[j] + problem.sizes[j] &&
                           packing.offsets[j] < packing.offsets[i] + problem.sizes[i];
      if (!overlap) continue;
      added += order_pair(steps, order, all[static_cast<std::size_t>(members[i])],
                          all[static_cast<std::size_t>(members[j])]);
    }
  }
  return added;
}

}  // namespace

Lowering::Lowering(const Program& program, const Machine& machine)
    : program_(program),
      machine_(machine),
      index_(program),
      evaluator_(program, index_, machine_) {}

/// Everything leaves the device after each use; what the host still holds is not copied again.
Strategy Lowering::everything_away(std::vector<std::int32_t> algorithms) const {
  Strategy strategy = keep_everything(program_, index_, std::move(algorithms));
  for (TensorId t = 0; t < static_cast<TensorId>(program_.tensors.size()); ++t) {
    const auto gaps = index_.gaps(t);
    const auto first = static_cast<std::size_t>(index_.first_gap(t));
    const bool persistent = program_.tensors[static_cast<std::size_t>(t)].persistent;
    // At the start of the iteration the host holds version 0 of what is persistent.
    std::int32_t on_host = persistent ? 0 : kNone;
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      // What goes over the iteration's end has one place on the host, the one it started from.
      const bool valid = gaps[i].version == on_host && (!gaps[i].wraps || on_host == 0);
      strategy.gaps[first + i] = valid ? Decision::drop : Decision::swap;
      on_host = gaps[i].version;
    }
  }
  return strategy;
}

std::optional<Lowered> Lowering::attempt(const Strategy& strategy, const Budget& budget,
                                         const EvaluateOptions& timing, const LowerOptions& options,
                                         Bytes& excess, std::string& refused) {
  excess = 0;
  free_footprint_ = 0;
  Evaluation evaluation;
  {
    PassTimer timer(pass_times_, "expand and time");
    evaluation = evaluator_.evaluate(strategy, timing);
  }
  refused = evaluation.refused;
  // Waits that addresses need make no timeline faster.
  if (!evaluation.feasible || evaluation.iteration_time >= options.faster_than) return std::nullopt;

  PassTimer timer(pass_times_, "place");
  Timeline timeline;
  timeline.steps.assign(evaluator_.steps().begin(), evaluator_.steps().end());
  std::vector<Step>& steps = timeline.steps;
  timeline.find(program_, strategy, evaluator_.expansion());
  const auto on_device = members_of(timeline.instances.all, false);
  const auto on_host = members_of(timeline.instances.all, true);

  const auto device_problem = [&](auto may_share) -> PackProblem& {
    make_pack_problem(timeline.instances.all, on_device, machine_.alignment, may_share,
                      conflict_bits_, device_problem_);
    return device_problem_;
  };
  const auto by_order = [&](const Instance& a, const Instance& b) {
    return may_share_by_order(*timeline.order, a, b);
  };
  std::vector<Nanos> starts;
  const auto in_time = [&](const Instance& a, const Instance& b) {
    return may_share_in_time(steps, starts, evaluation.iteration_time, a, b);
  };
  const auto with_waits = [&](const Instance& a, const Instance& b) {
    return may_share_with_waits(timeline.order->length(), a, b);
  };

  PackProblem& problem = device_problem(by_order);
  const FixedAddresses fixed(program_, timeline.instances.all, on_device);
  refused = fixed.outside(problem, budget.device, machine_.alignment);
  if (!refused.empty()) return std::nullopt;
  auto [device, packer] = best_packing(problem, budget.device, false);
  bool ordered = true;
  if (device.footprint > budget.device) {
    for (const Step& step : steps) starts.push_back(step.start);
    std::tie(device, packer) = best_packing(device_problem(in_time), budget.device, false);
    ordered = false;
  }
  if (device.footprint > budget.device) {
    starts = latest_starts(steps, evaluation.iteration_time);
    list_copies_in_late(steps, starts);
    timeline.find(program_, strategy, evaluator_.expansion());
    std::tie(device, packer) = best_packing(device_problem(in_time), budget.device, false);
  }
  if (device.footprint > budget.device && options.packing_time > Nanos{0}) {
    SearchOptions search;
    search.time_limit = options.packing_time;
    search.seed = options.seed;
    search.stop = options.stop;
    search.target = budget.device;
    SearchResult found = search_packing(problem, search);
    device = std::move(found.packing);
    packer = "search";
  }
  free_footprint_ = device.footprint;
  if (device.footprint > budget.device || fixed_clash(problem)) {
    excess = std::max<Bytes>(device.footprint - budget.device, 0);
    device_problem(with_waits);
    refused = fixed.clash(problem);
    if (!refused.empty()) return std::nullopt;
    std::tie(device, packer) = best_packing(problem, budget.device, true);
    if (device.footprint > budget.device) return std::nullopt;
    ordered = false;
  }
  const std::vector<Instance>& all = timeline.instances.all;
  const HappensBefore& order = *timeline.order;
  int added_waits = 0;
  if (!ordered) added_waits += order_sharing(steps, order, all, on_device, device, problem);
  PackProblem& host_problem = host_problem_;
  make_pack_problem(all, on_host, machine_.alignment, by_order, conflict_bits_, host_problem);
  const Bytes host_budget = budget.host > 0 ? budget.host : std::numeric_limits<Bytes>::max();
  Packing host = best_packing(host_problem, host_budget, false).first;
  if (budget.host > 0 && host.footprint > budget.host) {
    make_pack_problem(all, on_host, machine_.alignment, with_waits, conflict_bits_, host_problem);
    host = best_packing(host_problem, host_budget, false).first;
    if (host.footprint > budget.host) return std::nullopt;
    added_waits += order_sharing(steps, order, all, on_host, host, host_problem);
  }
  std::vector<Bytes> offsets(all.size());
  for (std::size_t i = 0; i < on_device.size(); ++i) {
    offsets[static_cast<std::size_t>(on_device[i])] = device.offsets[i];
  }
  for (std::size_t i = 0; i < on_host.size(); ++i) {
    offsets[static_cast<std::size_t>(on_host[i])] = host.offsets[i];
  }

  Lowered result;
  result.strategy = strategy;
  result.compute_time = evaluation.compute_time;
  result.iteration_time = result.unplaced_time = evaluation.iteration_time;
  result.peak_load = evaluation.peak_load;
  result.load_limit = timing.load_limit;
  result.packer = packer;
  result.added_waits = added_waits;
  if (added_waits > 0) {
    ReplayScratch scratch;
    result.iteration_time = replay(steps, evaluator_.streams().compute, scratch);
  }
  result.plan =
      emit_plan({program_, strategy, evaluator_.expansion(), timeline.instances, steps, offsets,
                 evaluator_.streams(), machine_.alignment, device.footprint, host.footprint});
  if (budget.host > 0 && result.plan.host_bytes > budget.host) return std::nullopt;
  result.steps = std::move(steps);
  return result;
}

Result<Lowered> Lowering::lower(const Strategy& strategy, const Budget& budget,
                                const LowerOptions& options) {
  pass_times_.clear();
  std::optional<Lowered> best;
  std::string refused;
  Bytes limit = options.load_limit > 0 ? options.load_limit : budget.device;
  LowerOptions placing = options;
  for (int i = 0; i < options.attempts && limit > 0; ++i) {
    Bytes excess = 0;
    std::optional<Lowered> next = attempt(strategy, budget, {limit, options.prefetch, options.lead},
                                          placing, excess, refused);
    if (!refused.empty()) return fail(ErrorCode::bad_input, refused);
    const bool lost_nothing = next && next->iteration_time == next->unplaced_time;
    if (next && next->iteration_time < placing.faster_than) {
      placing.faster_than = next->iteration_time;
      best = std::move(next);
    }
    // A tighter limit makes no timeline faster; without an excess nothing is known to tighten by.
    if (lost_nothing || excess == 0) break;
    limit -= excess;
  }
  if (!best && options.allow_streaming) {
    Bytes excess = 0;
    const Strategy streaming = everything_away(least_workspace_algorithms(program_));
    best = attempt(streaming, budget, {budget.device, false}, {}, excess, refused);
    if (!refused.empty()) return fail(ErrorCode::bad_input, refused);
    if (best) best->streaming = true;
  }
  if (!best) {
    const SmallestBudget smallest = smallest_budget(program_, machine_.alignment);
    Error error{ErrorCode::infeasible, "", std::nullopt};
    if (budget.device < smallest.bytes) {
      error.smallest_feasible = smallest.bytes;
      error.message = fmt::format("budget {} B ({}) cannot be met: {}", budget.device,
                                  format_bytes(budget.device), explain(smallest, program_));
    } else if (options.allow_streaming && budget.host > 0) {
      const auto without = lower(strategy, {budget.device, 0}, options);
      if (!without) return fail(without.error());
      error.smallest_feasible = without->plan.host_bytes;
      error.message = fmt::format(
          "host budget {} B ({}) is too small for what leaves the device at {} B: {} B ({}) are "
          "enough",
          budget.host, format_bytes(budget.host), budget.device, without->plan.host_bytes,
          format_bytes(without->plan.host_bytes));
    } else {
      error.message = fmt::format("this strategy does not fit {} B ({})", budget.device,
                                  format_bytes(budget.device));
    }
    return fail(std::move(error));
  }
  best->pass_times = pass_times_;
  best->plan.program = program_.name;
  best->plan.planner = strategy.planner;
  assert(check(program_, best->plan,
               {budget.device, budget.host, machine_.alignment, machine_.duplex}));
  return std::move(*best);
}

}  // namespace tidepool
