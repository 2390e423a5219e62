#include "planners/published/dqn/environment.h"

#include <algorithm>
#include <utility>

#include "base/at.h"
#include "base/invariant.h"
#include "lower/budget.h"

namespace tidepool::dqn {

Environment::Environment(const Lowering& lowering, std::vector<std::int32_t> algorithms,
                         Bytes least_limit, EnvironmentOptions options)
    : lowering_(lowering),
      algorithms_(std::move(algorithms)),
      options_(std::move(options)),
      gaps_(action_gaps(lowering.program(), lowering.index(), lowering.machine(), algorithms_,
                        least_limit, options_.offload, options_.remove)),
      events_(iteration_events(lowering.program(), lowering.index(), lowering.machine(),
                               algorithms_, gaps_)),
      simulator_(lowering.program(), lowering.index(), lowering.machine()) {
  decide_nothing();
  unlimited_ = simulator_.run(builder_->strategy(), {}, kNoDeviceLimit).time;
}

/// Nobody reads the value of a dead gap again: away, it costs nothing.
void Environment::decide_nothing() {
  builder_.emplace(lowering_.program(), lowering_.index(), algorithms_);
  const auto gaps = lowering_.index().gaps();
  for (GapId g = 0; options_.offload && g < static_cast<GapId>(gaps.size()); ++g) {
    if (gaps[at(g)].dead && gaps[at(g)].kind == GapKind::device) builder_->away(g);
  }
}

const Gap& Environment::gap(std::int32_t i) const {
  return lowering_.index().gaps()[at(gaps_[at(i)].gap)];
}

void Environment::begin(Bytes limit) {
  limit_ = limit;
  decide_nothing();
  decided_.assign(gaps_.size(), 0);
  refused_.assign(events_.nodes.size(), 0);
  departures_.clear();
  return_ = accounted_ = 0;
  terminal_ = out_of_memory_ = false;
  simulate();
  state_.current = events_.nodes.size() > 1 ? 1 : 0;
  settle();
  if (terminal_) give_reward();
}

/// For what has happened since the last one; also for what the limit costs before any action.
double Environment::give_reward() {
  const double reward = accounted_ - overhead() - (out_of_memory_ ? options_.penalty : 0);
  accounted_ = overhead();
  return_ += reward;
  return reward;
}

/// False where the decisions cannot be carried out: nothing has changed then.
void Environment::simulate() {
  ++simulations_;
  now_ = simulator_.run(builder_->strategy(), departures_, limit_);
  if (!now_.possible) return;
  const std::vector<char>& over = simulator_.over();
  over_.assign(over.size() + 1, 0);
  for (std::size_t op = 0; op < over.size(); ++op) over_[op + 1] = over_[op] + over[op];
}

Nanos Environment::time(std::int32_t node) const {
  const NodeEvent& event = events_.nodes[at(node)];
  return event.at_end ? simulator_.end(event.op) : simulator_.start(event.op);
}

bool Environment::passes_blocked(std::int32_t node) const {
  return now_.blocked != kNone && events_.nodes[at(node)].op >= now_.blocked;
}

/// The gap's tensor would be away at an op over the limit that is still to come.
bool Environment::of_use(std::int32_t i, OpId now) const {
  const Gap& gap = this->gap(i);
  const auto over = [&](std::int32_t from, std::int32_t to) {
    return to > from ? over_[at(to)] - over_[at(from)] : 0;
  };
  if (!gap.wraps) return over(std::max(gap.from, now) + 1, gap.to) > 0;
  return over(0, gap.to) + over(gap.from + 1, static_cast<std::int32_t>(over_.size()) - 1) > 0;
}

void Environment::find_valid() {
  state_.valid.clear();
  const OpId now = events_.nodes[at(state_.current)].op;
  for (std::size_t k = 0; k < gaps_.size(); ++k) {
    const auto i = static_cast<std::int32_t>(k);
    if (decided_[k] != 0) continue;
    const Gap& gap = this->gap(i);
    const GapNodes& nodes = events_.of_gap[k];
    const std::int32_t first = nodes.offload != kNone ? nodes.offload : nodes.remove;
    const bool begun = gap.wraps ? now < gap.to : first <= state_.current && now + 1 < gap.to;
    if (!begun || !of_use(i, now)) continue;
    for (const std::int32_t node : {nodes.offload, nodes.remove}) {
      if (node != kNone && refused_[at(node)] == 0) state_.valid.push_back(node);
    }
  }
  std::ranges::sort(state_.valid);
}

/// The next node behind the current one at which a gap begins that is of use, or the next one.
std::int32_t Environment::next_stop() const {
  const auto nodes = static_cast<std::int32_t>(events_.nodes.size());
  std::int32_t node = state_.current + 1;
  for (; options_.skip && node < nodes; ++node) {
    const NodeEvent& event = events_.nodes[at(node)];
    if (event.action == ActionKind::nothing || decided_[at(event.gap)] != 0) continue;
    const GapNodes& of = events_.of_gap[at(event.gap)];
    if (node != (of.offload != kNone ? of.offload : of.remove)) continue;
    if (!gap(event.gap).wraps && of_use(event.gap, event.op)) break;
  }
  return node < nodes ? node : std::int32_t{kNone};
}

bool Environment::must_act() const {
  const std::int32_t next = next_stop();
  return next == kNone || passes_blocked(next);
}

/// To where there is a choice, or to the end.
void Environment::settle() {
  while (true) {
    if (now_.blocked == kNone) return end(false);
    find_valid();
    state_.must_act = must_act();
    if (!state_.valid.empty()) return;
    if (state_.must_act) return end(true);
    state_.current = next_stop();
  }
}

void Environment::end(bool out_of_memory) {
  state_.valid.clear();
  out_of_memory_ = out_of_memory;
  if (!out_of_memory) {
    const auto settled = options_.settle ? options_.settle(strategy()) : std::optional(overhead());
    out_of_memory_ = !settled;
    if (settled) settled_ = *settled;
  }
  terminal_ = true;
}

/// The node at which a copy out is over.
std::int32_t Environment::landing(Nanos end) const {
  const auto nodes = static_cast<std::int32_t>(events_.nodes.size());
  for (std::int32_t node = state_.current + 1; node < nodes; ++node) {
    if (passes_blocked(node)) return node - 1;
    if (time(node) >= end) return node;
  }
  return nodes - 1;
}

/// The next one, unless that needs memory that is not there.
std::int32_t Environment::next_node() const {
  const std::int32_t next = state_.current + 1;
  const bool is_there = next < static_cast<std::int32_t>(events_.nodes.size());
  return is_there && !passes_blocked(next) ? next : state_.current;
}

/// False where it cannot be carried out.
bool Environment::decide(const NodeEvent& action) {
  const GapId id = gaps_[at(action.gap)].gap;
  const NodeEvent& here = events_.nodes[at(state_.current)];
  const Gap& gap = this->gap(action.gap);
  const bool offload = action.action == ActionKind::offload;
  offload ? builder_->away(id) : builder_->recompute(id);
  const bool departs = offload && !gap.wraps;
  if (departs) {
    const auto accesses = lowering_.index().accesses(gap.tensor);
    const bool reads =
        std::ranges::find(accesses, gap.from, &TensorAccess::op)->mode == AccessMode::read;
    departures_.push_back(
        {id, here.op, here.at_end || (here.op == gap.from && !(reads && options_.alongside))});
  }
  simulate();
  if (now_.possible) {
    decided_[at(action.gap)] = 1;
    return true;
  }
  builder_->keep(id);
  if (departs) departures_.pop_back();
  simulate();
  return false;
}

double Environment::act(std::int32_t node) {
  invariant(!terminal_, "nobody acts behind the end of an episode");
  if (node == 0) {
    if (must_act()) {
      end(true);
    } else {
      state_.current = next_stop();
      settle();
    }
  } else {
    const NodeEvent& action = events_.nodes[at(node)];
    if (!decide(action)) {
      refused_[at(node)] = 1;
    } else {
      const Gap& gap = this->gap(action.gap);
      const Nanos out = action.action == ActionKind::offload && !gap.wraps
                            ? simulator_.out_end(gaps_[at(action.gap)].gap)
                            : Nanos{-1};
      state_.current = out < Nanos{0} ? next_node() : landing(out);
    }
    settle();
  }
  return give_reward();
}

double Environment::overhead() const {
  if (feasible()) return settled_;
  if (unlimited_.count() == 0) return 0;
  return static_cast<double>((now_.time - unlimited_).count()) /
         static_cast<double>(unlimited_.count());
}

}  // namespace tidepool::dqn
