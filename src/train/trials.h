// Trials: the plans that are fastest by prediction take turns while a training goes on, and it goes
// on with the one that is fastest when it runs.
#pragma once

#include <optional>
#include <vector>

#include "planners/registry.h"
#include "runtime/observe.h"
#include "schedule/observation.h"
#include "train/preparation.h"
#include "train/time_model.h"
#include "train/training_spec.h"
#include "train/trial_room.h"
#include "train/trials_report.h"

namespace tidepool {

// Note [Trials]. Every plan trains to the same bits, so plans are compared by running them: a
// prediction, however good its times, leaves out what the device does when much runs at once. A
// training with `auto` or `tide` runs its plan for a block of iterations, which tells the times of
// now (time_model.h). With these other planners plan, each for a part of the time limit; those that
// are near the best by prediction, kMost in all, take turns with it, a block each, so that noise of
// the machine hits all of them. What is clearly slower is out. Then the planner plans once more, by
// all that was seen, within its limit again; what comes of it takes turns with the best so far,
// and again where it was faster. The training goes on with the plan of the least median; of those
// that are as fast but for chance (verdict.h) with the one that is predicted to be fastest. All run
// the same algorithms, on which bits depend, inside the same budget, and each is proved. It has
// some blocks more where it had few, unless then another is faster. What is predicted from there on
// is by what that plan took itself, and what is reported as measured is of the iterations after the
// trials.
//
// A planner that learns from what its plan's instructions took (Capuchin) has its corrected plan in
// the place of those of others.
//
// A profile from the cache or a file may be of a busy machine. Where ops take clearly other times
// people are told, the times of now take its place, in the cache too, and any planner has one more
// try with them; a profile from a file stays as it is, but what is predicted is by the times of now
// then.
//
// The plan that is kept goes to the cache with its figures: the next training that asks for the
// same begins with it and tries nothing, as long as its profile is right. Where the iterations
// ended before all was tried, but after several plans ran, it begins with it and tries what is
// left: other plans that are near it, and what the planner makes of the times of now.
//
// From then on all that is said of times is by what was measured: what the plan takes, what it is
// compared with, and how far it may be from the best.

/// Iterations of one plan in a row.
struct TrialBlock {
  std::int64_t iterations = 0;
  bool observed = false;  ///< with the times of its instructions
};

/// What came of them.
struct TrialRun {
  TimedBlock timings;        ///< where they were observed
  std::vector<Nanos> times;  ///< of its measured iterations
};

class Trials {
 public:
  static constexpr std::int64_t kBlock = 4;  ///< iterations; the first is not measured
  static constexpr std::size_t kMost = 4;    ///< plans that take turns
  static constexpr int kCorrections = 4;     ///< made by a planner that learns
  static_assert(kFewestTrialIterations == 3 * kBlock);

  /// Of a training that begins with `start`. All must outlive it. The job's program gets other
  /// times where the profile was wrong.
  Trials(Job& job, const TrainingSpec& spec, Planner& planner, Preparation& start,
         Observer& observer, TrialRoom room = {});

  /// Whether the next iterations are a block of these.
  [[nodiscard]] bool running() const { return !settled_; }
  [[nodiscard]] TrialBlock block() const;
  /// After a block of the plan in `start`; `left`: iterations that are still to run. Whether
  /// `start` has another plan now, to go on with from here. Where the room has a limit the device
  /// may be closed afterwards. Fails where a planner does, but for want of memory or when
  /// interrupted.
  Result<bool> follow(TrialRun ran, std::int64_t left);
  /// Of a device for the plan in `start` and all that take turns with it.
  [[nodiscard]] DeviceConfig arenas() const;
  /// None where nobody asks for the fastest plan, and the profile was right.
  [[nodiscard]] const std::optional<TrialsReport>& report() const { return report_; }
  /// The machine as it was while plans ran, which the plan that is kept was chosen for; none where
  /// nothing was tried.
  [[nodiscard]] const std::optional<Machine>& machine() const { return machine_; }

 private:
  struct Candidate {
    ObtainedPlan plan;
    Nanos predicted{};  ///< by the times of now
    bool corrected = false;
    std::vector<Nanos> times{};
    std::vector<TimedBlock> timings{};  ///< of all blocks that were observed
    std::optional<Observation> seen{};  ///< ... what they say
    int blocks = 0;                     ///< of this heat
    bool out = false;
  };

  [[nodiscard]] Nanos time_of(const Candidate& candidate) const;
  [[nodiscard]] std::size_t best() const;
  [[nodiscard]] std::size_t fastest() const;
  [[nodiscard]] bool enough(std::int64_t left) const;
  /// By all that was seen.
  [[nodiscard]] TimeModel model() const;
  [[nodiscard]] TimeModel model_of(std::span<const Candidate> plans) const;
  void judge_profile();
  /// For what planners are asked while plans run.
  [[nodiscard]] PlannerOptions options() const;
  Result<void> add(Result<void> (Trials::*plans)());
  [[nodiscard]] std::vector<const Plan*> in_turn() const;
  [[nodiscard]] bool have_room() const;
  Result<void> add_rivals();
  Result<void> add_learned();
  Result<void> add_corrected();
  void add(Planned planned, const TimeModel& model, bool corrected);
  [[nodiscard]] bool known(const Lowered& lowered, Nanos predicted) const;
  void drop_slow();
  [[nodiscard]] std::optional<std::size_t> next_in_turn() const;
  Result<std::optional<std::size_t>> next(std::int64_t left);
  [[nodiscard]] bool wants_another() const;
  Result<void> another_heat();
  Result<void> settle(std::size_t kept);
  bool keep(const Candidate& fastest) const;
  bool go_to(std::size_t candidate);
  void write_report();

  Job& job_;
  const TrainingSpec& spec_;
  Planner& planner_;
  Preparation& start_;
  Observer& observer_;
  TrialRoom room_;
  const Profile profile_;  ///< as the training began
  bool learns_ = false;    ///< the planner corrects itself
  Rivals rivals_ = Rivals::none;
  bool profile_known_ = false;  ///< whether it is right
  bool profile_wrong_ = false;
  bool observing_is_free_ = false;  ///< the device runs kernels itself: reading a clock is nothing
  bool may_try_ = false;            ///< other plans; nothing of why_not_tried
  bool begun_ = false;              ///< there are others
  bool decided_ = false;            ///< no more of them are tried
  bool cut_short_ = false;          ///< too few iterations were left for all that there was to try
  bool settled_ = true;
  int rounds_ = 0;  ///< blocks of each plan
  int corrections_ = 0;
  std::optional<TrialsReport> report_;
  std::optional<Machine> machine_;
  std::vector<Candidate> candidates_;
  std::size_t current_ = 0;
};

}  // namespace tidepool
