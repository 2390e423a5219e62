#include "planners/published/modnn/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/at.h"
#include "ir/load_profile.h"
#include "planners/published/modnn/defragmentation_prediction.h"

namespace tidepool::modnn {
namespace {

constexpr std::int32_t kFurthest = 4096;
constexpr std::size_t kTasksBetweenStops = 64;

class Scheduler {
 public:
  Scheduler(const Program& program, const AccessIndex& index, const Machine& machine,
            const SchedulerOptions& options)
      : program_(program),
        options_(options),
        stage_(program, index, machine, options.stage),
        prediction_(program, index, stage_),
        before_(program.ops.size() + 1, Nanos{0}) {
    schedule_.algorithms = options.algorithms;
    if (options.choose_algorithms) schedule_.algorithms = fastest_algorithms(program);
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
      const Op& op = program.ops[i];
      const bool task = op.place == OpPlace::device;
      before_[i + 1] = before_[i] + (task ? algorithm(static_cast<OpId>(i)).time : Nanos{0});
    }
  }

  DataSchedule run() {
    for (OpId op = 0; op < std::ssize(program_.ops); ++op) {
      if (at(op) % kTasksBetweenStops == 0 && options_.stop.requested()) {
        schedule_.stopped = true;
        return std::move(schedule_);
      }
      const bool done = program_.ops[at(op)].place == OpPlace::host ? stage_.issue_host_ops(op)
                                                                    : !stage_.overfull() && run(op);
      if (done) continue;
      schedule_.stuck = op;
      return std::move(schedule_);
    }
    schedule_.items = stage_.items();
    schedule_.decisions = stage_.decisions();
    schedule_.stays_at = stage_.stay_addresses();
    schedule_.end = now_;
    return std::move(schedule_);
  }

 private:
  [[nodiscard]] const Algorithm& algorithm(OpId op) const {
    return program_.ops[at(op)].algorithms[at(schedule_.algorithms[at(op)])];
  }

  bool run(OpId task) {
    if (!prepare(task) && !defragment(task)) return false;
    wait_for_blocks(task);
    stage_.let_go(now_);
    auto chosen = choose_algorithm(task);
    if (!chosen) {
      stage_.let_go(Nanos::max());
      chosen = choose_algorithm(task);
    }
    if (!chosen) {
      if (!defragment(task)) return false;
      wait_for_blocks(task);
      chosen = choose_algorithm(task);
      if (!chosen) return false;
    }
    schedule_.algorithms[at(task)] = *chosen;
    std::optional<SegmentId> workspace;
    if (const Bytes bytes = stage_.aligned(algorithm(task).workspace); bytes > 0) {
      workspace = stage_.find_space(bytes, stage_.nobody(), now_, task);
      now_ = std::max(now_, stage_.free_from(*workspace));
    }
    prefetch(task);
    now_ += algorithm(task).time;
    stage_.run(task, *chosen, workspace, now_);
    return true;
  }

  /// Inputs that are away and outputs, the largest first.
  [[nodiscard]] std::vector<Access> without_place(OpId task) const {
    std::vector<Access> list;
    for (const Access& a : program_.ops[at(task)].accesses) {
      if (!stage_.present(a.tensor)) list.push_back(a);
    }
    std::ranges::stable_sort(list, std::greater<>{},
                             [&](const Access& a) { return stage_.size(a.tensor); });
    return list;
  }

  bool prepare(OpId task) {
    const std::vector<Access> wanted = without_place(task);
    for (const Access& a : wanted) {
      if (!stage_.place(a.tensor, now_, task)) return false;
    }
    for (const Access& a : wanted) {
      if (a.mode != AccessMode::write) stage_.load(a.tensor, now_);
    }
    return true;
  }

  bool defragment(OpId task) {
    ++schedule_.defragmentations;
    stage_.clear();
    return prepare(task);
  }

  /// Until inputs have come and outputs may be written.
  void wait_for_blocks(OpId task) {
    for (const Access& a : program_.ops[at(task)].accesses) {
      if (stage_.stays(a.tensor)) continue;
      const Stage::Block& b = stage_.block(a.tensor);
      now_ = std::max(now_, b.holds ? b.ready : stage_.free_from(b.segment));
    }
  }

  /// Of those that find a place for their workspace, that of the largest gain.
  [[nodiscard]] std::optional<std::int32_t> choose_algorithm(OpId task) const {
    const Op& op = program_.ops[at(task)];
    if (!options_.choose_algorithms) {
      const std::int32_t given = schedule_.algorithms[at(task)];
      return gain(task, op.algorithms[at(given)]) ? std::optional(given) : std::nullopt;
    }
    const std::int32_t baseline = least_workspace_algorithm(op);
    std::optional<std::int32_t> best;
    std::optional<Nanos> most;
    for (std::int32_t i = 0; i < std::ssize(op.algorithms); ++i) {
      const Algorithm& a = op.algorithms[at(i)];
      if (!(a.deterministic && is_measured(a, op)) && i != baseline) continue;
      const auto gained = gain(task, a);
      if (!gained) continue;
      const bool better = !most || *gained > *most ||
                          (*gained == *most && a.workspace < op.algorithms[at(*best)].workspace);
      if (!better) continue;
      best = i;
      most = gained;
    }
    return best;
  }

  /// Equation 10; nothing where the workspace finds no place.
  [[nodiscard]] std::optional<Nanos> gain(OpId task, const Algorithm& candidate) const {
    const Op& op = program_.ops[at(task)];
    const Nanos saved = op.algorithms[at(least_workspace_algorithm(op))].time - candidate.time;
    const Bytes bytes = stage_.aligned(candidate.workspace);
    if (bytes == 0) return saved;
    const auto space = stage_.look_for_space(bytes, now_, task);
    if (!space) return std::nullopt;
    const Nanos offloading = std::max(space->free_from - now_, Nanos{0});
    return saved - offloading - crowded_out(task, candidate, bytes, *space);
  }

  /// Copies in of the next task that misses something, if they are due, which fit now and do not
  /// fit beside the workspace.
  [[nodiscard]] Nanos crowded_out(OpId task, const Algorithm& candidate, Bytes workspace,
                                  const Stage::Space& space) const {
    const OpId next = stage_.next_missing(task);
    if (next == kNone) return Nanos{0};
    const std::vector<TensorId> missing = stage_.missing_at(next);
    if (!is_due(task, candidate.time, next, missing)) return Nanos{0};
    std::vector<Bytes> all;
    std::vector<Bytes> beside;
    bool inside = false;
    const MemoryManager& memory = stage_.memory();
    for (SegmentId id = memory.first(); id != kNone; id = memory.segment(id).next) {
      inside = inside || id == space.first;
      const Segment& s = memory.segment(id);
      if (s.owner == kNone) {
        all.push_back(s.bytes);
        beside.push_back(!inside ? s.bytes : space.offloads ? 0 : s.bytes - workspace);
      }
      inside = inside && id != space.last;
    }
    return time_of_fitting(all, missing) - time_of_fitting(beside, missing);
  }

  /// Of those that fit into free segments of these sizes, one after the other.
  [[nodiscard]] Nanos time_of_fitting(std::vector<Bytes>& segments,
                                      const std::vector<TensorId>& blocks) const {
    Nanos time{0};
    for (const TensorId t : blocks) {
      const auto fits =
          std::ranges::find_if(segments, [&](Bytes bytes) { return bytes >= stage_.size(t); });
      if (fits == segments.end()) continue;
      *fits -= stage_.size(t);
      time += stage_.time_in(t);
    }
    return time;
  }

  /// Equation 9, before `task`, which takes `time`.
  [[nodiscard]] bool is_due(OpId task, Nanos time, OpId later,
                            const std::vector<TensorId>& missing) const {
    const Nanos end = now_ + time;
    Nanos copied = std::max(end, stage_.in_free());
    for (const TensorId t : missing) copied += stage_.time_in(t);
    return copied > end + before_[at(later)] - before_[at(task) + 1];
  }

  void prefetch(OpId task) {
    bool asked = false;
    for (OpId next = stage_.next_missing(task); next != kNone && next - task <= kFurthest;
         next = stage_.next_missing(next)) {
      const std::vector<TensorId> missing = stage_.missing_at(next);
      if (!is_due(task, algorithm(task).time, next, missing)) return;
      if (!std::exchange(asked, true)) prediction_.begin(task);
      if (prediction_.before(next)) return;
      for (const TensorId t : missing) {
        if (!stage_.fetch(t)) return;
        if (!stage_.place(t, std::max(now_, stage_.in_free()), next)) return;
        stage_.load(t, now_);
        prediction_.add(t);
      }
    }
  }

  const Program& program_;
  const SchedulerOptions& options_;
  Stage stage_;
  DefragmentationPrediction prediction_;
  std::vector<Nanos> before_;  ///< per op: of all tasks before it with the fastest algorithms
  DataSchedule schedule_;
  Nanos now_{};
};

}  // namespace

DataSchedule schedule_transfers(const Program& program, const AccessIndex& index,
                                const Machine& machine, const SchedulerOptions& options) {
  return Scheduler(program, index, machine, options).run();
}

}  // namespace tidepool::modnn
