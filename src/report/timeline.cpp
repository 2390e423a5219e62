#include "report/timeline.h"

#include <algorithm>
#include <numeric>

#include "base/at.h"
#include "ir/load_profile.h"
#include "report/steady_state.h"
#include "schedule/plan_totals.h"
#include "schedule/releases.h"

namespace tidepool {
namespace {

/// One use of a placement's bytes by an instruction.
struct Use {
  std::int32_t instruction = kNone;
  OpId op = kNone;      ///< of an original run, not of a recomputation; kNone for copies
  bool begins = false;  ///< overwrites every byte
  bool held = false;    ///< none: bytes that nobody uses any more stay taken until it has run
};

class Builder {
 public:
  explicit Builder(const PlanFile& file)
      : file_(file), index_(file.program), steady_(steady_state(file)) {}

  PlanTimeline build() {
    out_.period = steady_.period;
    out_.periodic = steady_.periodic;
    for (const Op& op : file_.program.ops) out_.devices = std::max(out_.devices, op.device + 1);
    add_runs();
    add_lanes();
    collect_uses();
    for (std::size_t p = 0; p < uses_.size(); ++p) add_lives(static_cast<PlacementId>(p));
    add_workspaces();
    std::stable_sort(out_.lives.begin(), out_.lives.end(),
                     [](const DrawnLife& a, const DrawnLife& b) { return a.offset < b.offset; });
    add_load();
    add_unlimited();
    return std::move(out_);
  }

 private:
  [[nodiscard]] const std::vector<Instruction>& list() const {
    return file_.plan.steady.instructions;
  }

  /// Start in [0, period), no longer than a period.
  [[nodiscard]] Interval wrapped(Nanos start, Nanos end) const {
    const Nanos period = steady_.period;
    const Nanos length = std::clamp(end - start, Nanos{0}, period);
    start = (start - steady_.start) % period;
    if (start < Nanos{0}) start += period;
    return {start, start + length};
  }

  // ---- instructions

  [[nodiscard]] RunKind kind_of(const Instruction& x, bool again) const {
    if (x.kind == InstructionKind::copy) {
      // Down: off a device, or from the host to a file.
      const bool out = file_.plan.kind_of(x.to) > file_.plan.kind_of(x.from);
      return out ? RunKind::copy_out : RunKind::copy_in;
    }
    if (file_.plan.streams[at(x.stream)].kind == StreamKind::host) return RunKind::host_op;
    return again ? RunKind::recomputation : RunKind::op;
  }

  void add_runs() {
    std::vector<char> ran(file_.program.ops.size(), 0);
    std::vector<Nanos> free_at(file_.plan.streams.size(), Nanos::min());
    for (std::size_t i = 0; i < list().size(); ++i) {
      free_at[at(list()[i].stream)] = steady_.previous[i].end;
    }
    for (std::size_t i = 0; i < list().size(); ++i) {
      const Instruction& x = list()[i];
      const Span span = steady_.current[i];
      Run run;
      run.kind = kind_of(x, x.kind == InstructionKind::op && ran[at(x.op)] != 0);
      if (x.kind == InstructionKind::op) ran[at(x.op)] = 1;
      run.stream = x.stream;
      run.time = wrapped(span.start, span.end);
      run.idle = std::min(span.start - free_at[at(x.stream)], steady_.period);
      if (run.idle > Nanos{0}) find_cause(x, span.start, run);
      free_at[at(x.stream)] = span.end;
      out_.runs.push_back(run);
    }
  }

  void find_cause(const Instruction& x, Nanos start, Run& run) const {
    for (const Wait& wait : x.waits) {
      const auto& spans = wait.iteration == 0 ? steady_.current : steady_.previous;
      if (spans[at(wait.index)].end != start) continue;
      run.waits_for = wait.index;
      run.waits_for_previous = wait.iteration != 0;
    }
  }

  [[nodiscard]] std::int32_t device_of(const Instruction& x) const {
    const auto device = [&](PlacementId id) {
      return id != kNone && file_.plan.kind_of(id) == SpaceKind::device
                 ? static_cast<std::int32_t>(file_.plan.placements[at(id)].space)
                 : kNone;
    };
    if (x.kind != InstructionKind::op) return std::max(device(x.from), device(x.to));
    const Op& op = file_.program.ops[at(x.op)];
    return op.place == OpPlace::device ? op.device : kNone;
  }

  void add_lanes() {
    const std::size_t n = file_.plan.streams.size();
    std::vector<char> out(n, 0);
    std::vector<char> in(n, 0);
    out_.lanes.resize(n);
    for (const Run& run : out_.runs) {
      const std::size_t s = at(run.stream);
      out_.lanes[s].busy += run.time.end - run.time.start;
      if (run.kind == RunKind::copy_out) out[s] = 1;
      if (run.kind == RunKind::copy_in) in[s] = 1;
    }
    for (std::size_t i = 0; i < list().size(); ++i) {
      out_.lanes[at(list()[i].stream)].device = device_of(list()[i]);
    }
    for (std::size_t s = 0; s < n; ++s) {
      switch (file_.plan.streams[s].kind) {
        case StreamKind::compute:
          out_.lanes[s].name = "compute";
          break;
        case StreamKind::host:
          out_.lanes[s].name = "host";
          break;
        case StreamKind::copy:
          out_.lanes[s].name = out[s] == in[s] ? "copy" : out[s] ? "copy out" : "copy in";
          if (out[s] + in[s] > 0 && out_.lanes[s].device == kNone) {
            out_.lanes[s].name.replace(0, 4, "file");  // between the host and a file
          }
          break;
      }
      Lane& lane = out_.lanes[s];
      if (out_.devices == 1 || lane.device == kNone) continue;
      lane.name = "device " + std::to_string(lane.device) + " " + lane.name;
    }
  }

  // ---- memory

  void collect_uses() {
    uses_.resize(file_.plan.placements.size());
    for (std::size_t i = 0; i < list().size(); ++i) {
      const Instruction& x = list()[i];
      const auto instruction = static_cast<std::int32_t>(i);
      if (x.kind == InstructionKind::copy) {
        uses_[at(x.from)].push_back({instruction, kNone, false});
        uses_[at(x.to)].push_back({instruction, kNone, true});
      }
      if (x.kind != InstructionKind::op) continue;
      const OpId original = out_.runs[i].kind == RunKind::recomputation ? kNone : x.op;
      const auto& accesses = file_.program.ops[at(x.op)].accesses;
      for (std::size_t k = 0; k < accesses.size(); ++k) {
        const bool begins = accesses[k].mode == AccessMode::write;
        uses_[at(x.operands[k])].push_back({instruction, original, begins});
      }
    }
    for (const Release& release : releases(file_.program, file_.plan)) {
      std::vector<Use>& uses = uses_[at(release.placement)];
      if (uses.empty() || uses.back().instruction >= release.until) continue;
      uses.push_back({release.until, kNone, false, true});
    }
  }

  /// A life begins where all bytes are overwritten and lasts to the last use before that happens
  /// again, in this iteration or the next.
  void add_lives(PlacementId id) {
    const Placement& placement = file_.plan.placements[at(id)];
    if (placement.space != 0) return;
    std::vector<Use>& uses = uses_[at(id)];
    const auto first =
        std::find_if(uses.begin(), uses.end(), [](const Use& u) { return u.begins; });
    if (first == uses.end()) {
      const bool holds_value = std::find(file_.plan.boundary.begin(), file_.plan.boundary.end(),
                                         id) != file_.plan.boundary.end();
      if (!uses.empty() || holds_value) add_resident(placement, uses);
      return;
    }
    // Uses before the first write belong to the life of the iteration before.
    std::rotate(uses.begin(), first, uses.end());
    for (auto begin = uses.begin(); begin != uses.end();) {
      const auto end = std::find_if(begin + 1, uses.end(), [](const Use& u) { return u.begins; });
      add_life(placement, {begin, end});
      begin = end;
    }
  }

  DrawnLife& new_life(const Placement& placement) {
    DrawnLife& life = out_.lives.emplace_back();
    life.tensor = placement.tensor;
    life.offset = placement.offset;
    life.bytes = placement.bytes;
    return life;
  }

  void add_resident(const Placement& placement, const std::vector<Use>& uses) {
    DrawnLife& life = new_life(placement);
    life.time = {Nanos{0}, steady_.period};
    if (!uses.empty()) life.last = uses.back().instruction;
    const GapId first = index_.first_gap(placement.tensor);
    life.kept.resize(index_.gaps(placement.tensor).size());
    std::iota(life.kept.begin(), life.kept.end(), first);
  }

  void add_life(const Placement& placement, const std::vector<Use>& uses) {
    DrawnLife& life = new_life(placement);
    life.first = uses.front().instruction;
    Nanos end{};
    for (const Use& use : uses) {
      // What stands before the beginning in the list happens in the next iteration.
      const Span span = steady_.current[at(use.instruction)];
      const Nanos use_end = span.end + (use.instruction < life.first ? steady_.period : Nanos{0});
      if (!use.held && (life.last == kNone || use_end >= end)) life.last = use.instruction;
      end = std::max(end, use_end);
    }
    life.time = wrapped(steady_.current[at(life.first)].start, end);
    switch (out_.runs[at(life.first)].kind) {
      case RunKind::copy_in:
        life.arrival = Arrival::copied_in;
        break;
      case RunKind::recomputation:
        life.arrival = Arrival::recomputed;
        break;
      default:
        life.arrival = Arrival::written;
    }
    find_gaps(uses, life);
    life.departure = departure_of(life);
    life.decision = decision_of(life);
  }

  /// Which gaps of its tensor lie before, in and after a life, by the ops that use it.
  void find_gaps(const std::vector<Use>& uses, DrawnLife& life) const {
    const auto position = [&](OpId op) {
      return std::find_if(uses.begin(), uses.end(), [&](const Use& u) { return u.op == op; });
    };
    GapId id = index_.first_gap(life.tensor);
    for (const Gap& gap : index_.gaps(life.tensor)) {
      const auto from = position(gap.from);
      const auto to = position(gap.to);
      // Uses are in the order of time; a life may hold both ends of a gap and not what is between.
      if (from < to && to != uses.end()) {
        life.kept.push_back(id);
      } else {
        if (to != uses.end()) life.before = id;
        if (from != uses.end()) life.after = id;
      }
      ++id;
    }
  }

  /// Nothing is decided of gaps that a host op begins or ends: their copies always happen.
  [[nodiscard]] Decision decision_of(GapId gap) const {
    if (gap == kNone || index_.gaps()[at(gap)].kind != GapKind::device) return Decision::keep;
    return file_.strategy.gaps[at(gap)];
  }

  [[nodiscard]] Departure departure_of(const DrawnLife& life) const {
    switch (decision_of(life.after)) {
      case Decision::swap:
        return Departure::swapped;
      case Decision::drop:
        return Departure::dropped;
      case Decision::recompute:
        return Departure::recomputed;
      case Decision::keep:
        break;
    }
    return Departure::ended;
  }

  [[nodiscard]] Decision decision_of(const DrawnLife& life) const {
    if (const Decision after = decision_of(life.after); after != Decision::keep) return after;
    if (const Decision before = decision_of(life.before); before != Decision::keep) return before;
    return life.arrival == Arrival::recomputed ? Decision::recompute : Decision::keep;
  }

  void add_workspaces() {
    for (std::size_t i = 0; i < list().size(); ++i) {
      if (list()[i].kind != InstructionKind::op || list()[i].workspace_bytes == 0) continue;
      if (file_.program.ops[at(list()[i].op)].device != 0) continue;
      DrawnLife life;
      life.offset = list()[i].workspace_offset;
      life.bytes = list()[i].workspace_bytes;
      life.time = out_.runs[i].time;
      life.first = life.last = static_cast<std::int32_t>(i);
      life.arrival = Arrival::written;
      life.departure = Departure::ended;
      out_.lives.push_back(std::move(life));
    }
  }

  // ---- load

  [[nodiscard]] std::size_t kind_of(const DrawnLife& life) const {
    return static_cast<std::size_t>(
        life.tensor == kNone ? TensorKind::workspace : file_.program.tensors[at(life.tensor)].kind);
  }

  void add_load() {
    struct Change {
      Nanos time{};
      std::size_t kind = 0;
      Bytes bytes = 0;
    };
    std::vector<Change> changes;
    for (const DrawnLife& life : out_.lives) {
      const Bytes bytes = align_up(life.bytes, file_.plan.arenas[0].alignment);
      for (const Interval& piece : pieces(life.time, steady_.period)) {
        changes.push_back({piece.start, kind_of(life), bytes});
        changes.push_back({piece.end, kind_of(life), -bytes});
      }
    }
    std::sort(changes.begin(), changes.end(),
              [](const Change& a, const Change& b) { return a.time < b.time; });
    LoadStep step;
    for (std::size_t i = 0; i < changes.size();) {
      const Nanos time = changes[i].time;
      for (; i < changes.size() && changes[i].time == time; ++i) {
        step.by_kind[changes[i].kind] += changes[i].bytes;
      }
      if (time >= steady_.period) break;
      if (out_.load.empty() && time > Nanos{0}) out_.load.emplace_back();
      step.time = time;
      out_.load.push_back(step);
      out_.peak_load = std::max(out_.peak_load, step.total());
    }
  }

  void add_unlimited() {
    const Program first = loading_device(file_.program, 0);
    const LoadProfile profile =
        load_profile(first, AccessIndex(first), file_.plan.arenas[0].alignment,
                     least_workspace_algorithms(first));  // as where budgets are percentages
    for (std::size_t i = 0; i < list().size(); ++i) {
      if (out_.runs[i].kind != RunKind::op || device_of(list()[i]) != 0) continue;
      out_.unlimited.push_back({out_.runs[i].time, profile.at_op[at(list()[i].op)]});
    }
    // The first device may begin its iteration before another ends the one before.
    std::ranges::stable_sort(out_.unlimited, {}, [](const auto& u) { return u.time.start; });
    out_.unlimited_peak = profile.peak;
  }

  const PlanFile& file_;
  AccessIndex index_;
  SteadyState steady_;
  std::vector<std::vector<Use>> uses_;  ///< per placement, in list order
  PlanTimeline out_;
};

}  // namespace

std::vector<Interval> pieces(Interval interval, Nanos period) {
  if (interval.end <= period) return {interval};
  return {{interval.start, period}, {Nanos{0}, interval.end - period}};
}

Interval idle_before(const Run& run, Nanos period) {
  const Nanos start = run.time.start - run.idle;
  const Nanos shift = start < Nanos{0} ? period : Nanos{0};
  return {start + shift, run.time.start + shift};
}

Bytes LoadStep::total() const { return std::accumulate(by_kind.begin(), by_kind.end(), Bytes{0}); }

PlanTimeline make_timeline(const PlanFile& file) { return Builder(file).build(); }

}  // namespace tidepool
