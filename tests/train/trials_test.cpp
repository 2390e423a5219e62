// Plans that take turns while a training goes on.
#include "train/trials.h"

#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "base/median.h"
#include "base/random.h"
#include "lower/overhead.h"
#include "measure/link_speed.h"
#include "planners/registry.h"
#include "planning/budget.h"
#include "planning/make_plan.h"
#include "planning/plan_subject.h"
#include "planning/proven_gap.h"
#include "train/late_clock.h"
#include "train/training_fixture.h"
#include "train/training_run.h"
#include "train/training_spec.h"

namespace tidepool {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr Nanos kMillisecond = std::chrono::milliseconds(1);

class TrialsTest : public testing::TrainingTest {
 protected:
  void TearDown() override { testing::pace_links(1); }

  /// From here on links carry a sixteenth of what plans count on. Copies in come late, however long
  /// others keep the processor busy: each takes as long as many ops. Measures the ops before.
  void lie_to(TrainingSpec spec) {
    spec.iterations = 1;
    spec.epochs = 0;
    spec.checkpoint.clear();
    EXPECT_EQ(trained(spec).next_iteration, 1);
    testing::pace_links(1.0 / 16);
    testing::forget_opened();
    listener_ = {};
  }

  static TrainingSpec of_capuchin(double percent) {
    TrainingSpec spec = tiny(percent);
    spec.job.model = "tiny-vgg-plain";
    spec.job.batch = spec.job.sub_batch = 100;
    spec.job.device.link = 400'000'000;
    spec.job.algorithms = AlgorithmPolicy::least_workspace;
    spec.planner.name = "capuchin";
    spec.iterations = 60;
    return spec;
  }

  static TrainingSpec of_auto(double percent) {
    TrainingSpec spec = of_capuchin(percent);
    spec.planner.name = "auto";
    return spec;
  }

  [[nodiscard]] TrainingReport trained(const TrainingSpec& spec) {
    auto report = run_training(spec, listener_);
    EXPECT_TRUE(report) << report.error().message;
    return report ? std::move(*report) : TrainingReport{};
  }
};

void expect_inside(const TrainingReport& report) {
  EXPECT_THAT(testing::opened_devices(),
              Each(Field(&testing::OpenedArenas::device, Le(report.start.budget.device))));
  EXPECT_LE(testing::most_open_at_once(), report.start.budget.device);
  EXPECT_LE(report.arena_peak, report.start.budget.device);
}

TEST_F(TrialsTest, TrainToTheBitsOfOnePlanAndOfNoBudget) {
  for (const char* planner : {"auto", "tide", "capuchin"}) {
    SCOPED_TRACE(planner);
    TrainingSpec spec = of_capuchin(80);
    spec.planner.name = planner;
    lie_to(spec);
    spec.cache.replan = true;
    const TrainingReport tried = trained(spec);
    ASSERT_TRUE(tried.trials);
    EXPECT_EQ(tried.trials->why_none, "");
    ASSERT_GT(tried.trials->plans.size(), 1U) << tried.trials->text();
    const TriedPlan& kept = tried.trials->plans[tried.trials->kept];
    std::size_t in_trials = 0;
    for (const TriedPlan& plan : tried.trials->plans) {
      in_trials += plan.iterations;
      EXPECT_GT(plan.predicted, Nanos{0});
      EXPECT_TRUE(plan.iterations == 0 || plan.measured >= kept.measured);
    }
    EXPECT_EQ(kept.planner, tried.start.lowered().plan.planner);
    EXPECT_GT(tried.measured, Nanos{0});
    EXPECT_LT(in_trials + tried.measured_iterations, 60U) << "what trials measured is not counted";
    expect_inside(tried);
    EXPECT_THAT(tried.losses, SizeIs(60));
    EXPECT_THAT(listener_.iterations, SizeIs(60));

    spec.trials = false;
    const TrainingReport as_planned = trained(spec);
    EXPECT_EQ(as_planned.trials->text(), "none: switched off");
    EXPECT_EQ(as_planned.losses, tried.losses);
    EXPECT_EQ(as_planned.state_crc32, tried.state_crc32);

    spec = of_capuchin(200);
    spec.planner.name = "none";
    const TrainingReport unlimited = trained(spec);
    EXPECT_FALSE(unlimited.trials);
    EXPECT_EQ(unlimited.losses, tried.losses);
    EXPECT_EQ(unlimited.state_crc32, tried.state_crc32);
    testing::pace_links(1);
  }
}

/// A swapping planner keeps a plan that only swaps, whoever made it.
TEST_F(TrialsTest, WhoAsksForSwapsGetsNoRecomputation) {
  TrainingSpec spec = of_auto(60);
  spec.planner.name = "tide";
  const TrainingReport report = trained(spec);
  ASSERT_TRUE(report.trials);
  EXPECT_EQ(report.totals.recomputed_ops, 0);
}

TEST_F(TrialsTest, TheNextTrainingBeginsWithThePlanThatWasKept) {
  TrainingSpec spec = of_auto(70);
  spec.iterations = 150;
  TrainingReport first = trained(spec);
  // On a busy machine it may be that no other plan seems worth a trial.
  constexpr int kMost = 8;
  spec.cache.replan = true;
  for (int i = 1; i < kMost && first.trials && first.trials->plans.size() < 2; ++i) {
    first = trained(spec);
  }
  spec.cache.replan = false;
  ASSERT_TRUE(first.trials);
  ASSERT_GT(first.trials->plans.size(), 1U) << first.trials->text();
  spec.iterations = 5;  // too few to find that the machine is busier now
  const TrainingReport second = trained(spec);
  EXPECT_EQ(second.start.plan.from, "cache");
  ASSERT_TRUE(second.trials);
  ASSERT_TRUE(second.trials->earlier) << second.trials->text();
  EXPECT_EQ(second.trials->earlier->measured, first.trials->plans[first.trials->kept].measured);
  EXPECT_TRUE(decide_the_same(second.start.lowered().strategy, first.start.lowered().strategy));
  EXPECT_EQ(second.start.lowered().plan.planner, first.start.lowered().plan.planner);
  EXPECT_EQ(second.predicted, first.predicted);
  EXPECT_THAT(second.trials->text(), HasSubstr("an earlier training has tried plans"));

  spec.trials = false;
  EXPECT_FALSE(trained(spec).start.plan.tried) << "the plan as the planner makes it";
  spec.trials = true;
  spec.cache.replan = true;
  EXPECT_FALSE(trained(spec).trials->earlier);
  spec.iterations = 150;
  EXPECT_EQ(trained(spec).state_crc32, first.state_crc32);
}

TEST_F(TrialsTest, InAHostBudgetBesideATrainingWithoutABudget) {
  TrainingSpec spec = of_capuchin(80);
  spec.trials = false;
  const Bytes host = trained(spec).start.running().host_bytes();
  spec.trials = true;
  spec.budget.host = host;
  lie_to(spec);
  spec.comparison = Comparison::bits;
  const TrainingReport report = trained(spec);
  EXPECT_EQ(report.start.profile.from, "cache");
  EXPECT_THAT(listener_.notices, Contains(Pair(Notice::plan_from_cache, ::testing::_)));
  ASSERT_TRUE(report.trials);
  EXPECT_GT(report.trials->plans.size(), 1U) << report.trials->text();
  EXPECT_EQ(report.baseline->identical, true);
  EXPECT_LE(report.start.running().host_bytes(), host);
  EXPECT_LE(report.arena_peak, report.start.budget.device);
}

/// Trials go on from one epoch to the next, with evaluations between, from a checkpoint.
TEST_F(TrialsTest, GoOnThroughEpochs) {
  for (const char* planner : {"auto", "capuchin"}) {
    SCOPED_TRACE(planner);
    TrainingSpec spec = of_auto(80);
    spec.planner.name = planner;
    spec.job.batch = spec.job.sub_batch = 2000;  // five iterations an epoch
    spec.job.device.link = 1'000'000'000;
    spec.trials = false;
    spec.epochs = 4;
    const TrainingReport as_planned = trained(spec);
    spec.epochs = 1;
    spec.checkpoint = folder_.file("c.ckpt");
    EXPECT_EQ(trained(spec).next_iteration, 5);
    lie_to(spec);
    spec.resume = spec.checkpoint;
    spec.epochs = 4;
    spec.evaluate = true;
    spec.trials = true;
    const TrainingReport tried = trained(spec);
    ASSERT_TRUE(tried.trials);
    EXPECT_GT(tried.trials->plans.size(), 1U) << tried.trials->text();
    EXPECT_EQ(tried.state_crc32, as_planned.state_crc32);
    EXPECT_LE(largest_arena(), tried.start.budget.device);
    EXPECT_LE(testing::most_open_at_once(), tried.start.budget.device);
    EXPECT_THAT(tried.epochs, SizeIs(3));
    EXPECT_TRUE(tried.epochs.back().test);
    testing::pace_links(1);
  }
}

TEST_F(TrialsTest, AnInterruptionEndsTheTrainingWhereverItIs) {
  lie_to(of_auto(80));
  for (const std::int64_t after : {2, 4, 5, 8, 13}) {
    SCOPED_TRACE(after);
    testing::Listener impatient;
    impatient.stop_after = after;
    const auto stopped = run_training(of_auto(80), impatient);
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, ErrorCode::interrupted);
    EXPECT_EQ(impatient.nesting, 0);
  }
}

/// A job whose ops take times drawn at random, and plans for it; nothing runs but on a virtual
/// clock.
class TrialsOfATraining : public TrialsTest {
 protected:
  void begin(const char* planner, double percent, std::uint64_t seed) {
    spec_ = of_capuchin(percent);
    spec_.planner.name = planner;
    spec_.cache.off = true;
    spec_.iterations = 200;
    auto job = Job::make(spec_.job, listener_);
    ASSERT_TRUE(job) << job.error().message;
    job_.emplace(std::move(*job));
    start_ = {};
    start_.machine.set_links({50e6, Nanos{50'000}}, {50e6, Nanos{50'000}});
    start_.machine.set_alignment(job_->alignment());
    truth_ = job_->program();
    Random random(seed);
    for (Op& op : truth_.ops) {
      const Nanos time{100'000 + static_cast<Nanos::rep>(random.below(3'000'000))};
      for (Algorithm& algorithm : op.algorithms) algorithm.time = time;
    }
    planner_ = *make_planner(planner);
    const Bytes peak = unlimited_peak(truth_, start_.machine.alignment());
    start_.budget = {static_cast<Bytes>(static_cast<double>(peak) * percent / 100), 0, {}};
  }

  /// The plan that the planner makes by these times, as the start of a training.
  void plan_by(const Program& times) {
    job_->program() = times;
    auto planned = plan(start_.budget);
    ASSERT_TRUE(planned) << planned.error().message;
    start_.plan.planned = std::move(*planned);
    const auto best = plan_terms(spec_.job).best_algorithms(true);
    const Lowered& lowered = start_.lowered();
    start_.now.reset();
    start_.predicted_unlimited = unlimited_time(times, start_.machine, best);
    start_.fastest_unlimited = unlimited_time(times, start_.machine, AlgorithmPolicy::fastest);
    start_.gap =
        *proven_gap(times, start_.machine, lowered, start_.predicted_unlimited, start_.budget, {});
  }

  /// What is said of times after trials is by the true ones.
  void expect_one_measure() const {
    const auto ms = [](Nanos time) { return to_ms(time); };
    const auto best = plan_terms(spec_.job).best_algorithms(true);
    // Where an op begins late it does so without a budget too.
    const Nanos late = late_.empty() ? Nanos{0} : late_[0].next;
    Program truth = truth_;
    for (Op& op : truth.ops) {
      for (Algorithm& algorithm : op.algorithms) algorithm.time += late;
    }
    const double unlimited = ms(unlimited_time(truth, start_.machine, best));
    EXPECT_NEAR(ms(start_.predicted_unlimited), unlimited, 0.02 * unlimited);
    EXPECT_EQ(start_.fastest_unlimited, start_.predicted_unlimited) << "all take the same time";
    ASSERT_TRUE(start_.gap.gap) << start_.gap.unknown;
    EXPECT_NEAR(*start_.gap.least_overhead + *start_.gap.gap, start_.predicted_overhead(), 1e-9);
  }

  Result<Planned> plan(const Budget& budget) {
    FixedWorkload workload(job_->program());
    PlannerOptions options = planner_options(plan_terms(spec_.job), spec_.planner);
    options.may.sub_batch = false;
    return make_plan(*planner_, workload, start_.machine, budget, options);
  }

  /// By the true times.
  [[nodiscard]] Nanos time_of(const Plan& plan) const {
    const testing::LateRun all = testing::run_late(truth_, plan, start_.machine, late_, 40);
    return (all.ends[39] - all.ends[19]) / 20;
  }

  /// A block of the plan in `start_`, as it is by the true times. The rest of `Trials::follow`.
  [[nodiscard]] TrialRun run(const TrialBlock& block) const {
    const Plan& plan = start_.lowered().plan;
    const testing::LateRun all = testing::run_late(truth_, plan, start_.machine, late_,
                                                   static_cast<int>(block.iterations) + 5);
    TrialRun run;
    for (std::size_t k = 5; k < all.ends.size(); ++k) {
      run.timings.push_back(all.timings[k]);
      run.times.push_back(all.ends[k] - all.ends[k - 1]);
    }
    if (!block.observed) run.timings.clear();
    return run;
  }

  /// Returns how many iterations it took until the plan was settled.
  std::int64_t run_all(Trials& trials) {
    std::int64_t done = 0;
    while (trials.running()) {
      const TrialBlock block = trials.block();
      const auto went = trials.follow(run(block), spec_.iterations - done - block.iterations);
      done += block.iterations;
      EXPECT_TRUE(went) << went.error().message;
      EXPECT_LE(done, spec_.iterations);
      if (!went) break;
    }
    return done;
  }

  TrainingSpec spec_;
  std::optional<Job> job_;
  Program truth_;
  std::vector<Lateness> late_;  ///< by stream
  std::unique_ptr<Planner> planner_;
  Preparation start_;
};

TEST_F(TrialsOfATraining, EndWithTheFastestOfThosePlansThatRan) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    begin("auto", 60, seed);
    plan_by(truth_);
    const Nanos before = time_of(start_.lowered().plan);
    Trials trials(*job_, spec_, *planner_, start_, listener_);
    ASSERT_TRUE(trials.running());
    run_all(trials);
    EXPECT_LE(time_of(start_.lowered().plan), before);
    const TrialsReport& report = *trials.report();
    ASSERT_FALSE(report.plans.empty());
    EXPECT_EQ(report.plans[0].planner, "auto");
    for (const TriedPlan& plan : report.plans) {
      EXPECT_TRUE(plan.iterations == 0 || plan.measured >= report.plans[report.kept].measured);
    }
    // Where the profile is right so is what was predicted.
    EXPECT_NEAR(to_seconds(*start_.now), to_seconds(time_of(start_.lowered().plan)),
                0.001 * to_seconds(*start_.now));
  }
}

TEST_F(TrialsOfATraining, WithAWrongProfileEndWithAPlanAsGoodAsThatOfARightOne) {
  double sum = 0;
  int count = 0;
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    SCOPED_TRACE(seed);
    begin("auto", 50, seed);
    plan_by(truth_);
    const Nanos right = time_of(start_.lowered().plan);
    Program wrong = truth_;
    Random random(seed + 100);
    for (Op& op : wrong.ops) {
      const double factor = std::exp2(2 * random.uniform() - 1);
      for (Algorithm& a : op.algorithms) {
        a.time = Nanos{std::llround(factor * static_cast<double>(a.time.count()))};
      }
    }
    plan_by(wrong);
    start_.profile.from = "file";
    Trials trials(*job_, spec_, *planner_, start_, listener_);
    run_all(trials);
    expect_one_measure();
    const double share = to_seconds(time_of(start_.lowered().plan)) / to_seconds(right);
    EXPECT_LE(share, 1.02);
    EXPECT_NEAR(to_seconds(*start_.now), to_seconds(time_of(start_.lowered().plan)),
                0.01 * to_seconds(*start_.now));
    sum += share;
    ++count;
  }
  EXPECT_LE(sum / count, 1.01);
}

/// The profile knows nothing of how late instructions begin.
TEST_F(TrialsOfATraining, PredictWhatADeviceTakesThatBeginsLate) {
  const auto ms = [](Nanos time) { return to_ms(time); };
  for (const std::uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    begin("auto", 60, seed);
    start_.machine.set_links({200e6, Nanos{50'000}}, {200e6, Nanos{50'000}});
    late_ = {{Nanos{100'000}, Nanos{300'000}},
             {Nanos{5'000}, Nanos{80'000}},
             {Nanos{10'000}, Nanos{60'000}}};
    plan_by(truth_);
    Trials trials(*job_, spec_, *planner_, start_, listener_);
    run_all(trials);
    const TrialsReport& report = *trials.report();
    const Nanos after = time_of(start_.lowered().plan);
    EXPECT_NEAR(ms(*start_.now), ms(after), 0.01 * ms(after));
    EXPECT_LT(ms(start_.lowered().iteration_time), 0.97 * ms(after)) << "it decides something";
    expect_one_measure();
    ASSERT_GE(report.late.size(), late_.size());
    for (std::size_t s = 0; s < late_.size(); ++s) {
      EXPECT_EQ(report.late[s].next, late_[s].next) << s;
      EXPECT_EQ(report.late[s].woken, late_[s].woken) << s;
    }
  }
}

TEST_F(TrialsOfATraining, TakeNoMoreIterationsThanThereAre) {
  begin("auto", 60, 1);
  plan_by(truth_);
  const ObtainedPlan first = start_.plan;
  for (const std::int64_t iterations : {12, 13, 20, 40}) {
    SCOPED_TRACE(iterations);
    start_.plan = first;
    start_.now.reset();
    spec_.iterations = iterations;
    Trials trials(*job_, spec_, *planner_, start_, listener_);
    ASSERT_TRUE(trials.running());
    EXPECT_LE(run_all(trials), iterations - Trials::kBlock);
  }
}

/// What trainings left each other of a job whose trials are in the cache.
class TrialsInTheCache : public TrialsOfATraining {
 protected:
  void SetUp() override {
    TrialsOfATraining::SetUp();
    begin("auto", 60, 1);
    spec_.cache.off = false;
    plan_by(truth_);
    planned_ = start_.plan;
  }

  /// As a training begins that asks for the same.
  void begin_again(std::int64_t iterations) {
    spec_.iterations = iterations;
    start_.now.reset();
    start_.plan = planned_;
    PlanTask task{spec_.planner};
    task.tried = true;
    const Profile profile{job_->fingerprint(), job_->program(), start_.machine};
    auto obtained = plan_profile(*planner_, profile, nullptr, plan_terms(spec_.job), task,
                                 start_.budget, Cache(spec_.cache, listener_), listener_);
    ASSERT_TRUE(obtained) << obtained.error().message;
    if (obtained->tried) start_.plan = std::move(*obtained);
  }

  /// Runs them all, and says what came of it.
  TrialsReport train(std::int64_t iterations) {
    begin_again(iterations);
    Trials trials(*job_, spec_, *planner_, start_, listener_);
    run_all(trials);
    return *trials.report();
  }

  static std::vector<std::string> kept_files() {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache_folder())) {
      if (entry.path().filename().string().starts_with("plan-tried-")) {
        files.push_back(entry.path().string());
      }
    }
    return files;
  }

  ObtainedPlan planned_;
};

TEST_F(TrialsInTheCache, GoOnWhereTheIterationsOfAnotherTrainingEnded) {
  const TrialsReport alone = train(12);
  EXPECT_TRUE(alone.cut_short);
  ASSERT_GT(alone.plans.size(), 1U) << alone.text();
  ASSERT_GT(alone.plans[1].iterations, 0U) << alone.text();
  EXPECT_TRUE(alone.for_next);
  EXPECT_THAT(alone.text(), HasSubstr("the iterations ended before all was tried, and the next"));
  ASSERT_THAT(kept_files(), SizeIs(1));

  const TrialsReport rest = train(200);
  ASSERT_TRUE(start_.plan.tried || rest.kept > 0);
  EXPECT_FALSE(rest.earlier) << rest.text();
  EXPECT_EQ(rest.plans[0].planner, alone.plans[alone.kept].planner);
  EXPECT_FALSE(rest.cut_short);
  EXPECT_TRUE(rest.for_next);
  const Nanos kept = rest.plans[rest.kept].measured;

  const TrialsReport none = train(200);
  ASSERT_TRUE(none.earlier) << none.text();
  EXPECT_EQ(none.earlier->measured, kept);
  EXPECT_EQ(*none.earlier->gap.gap, *start_.plan.tried->gap.gap);
}

TEST_F(TrialsInTheCache, AShortTrainingDoesNotTakeThePlaceOfALongOne) {
  const TrialsReport all = train(200);
  EXPECT_TRUE(all.for_next);
  start_.plan = planned_;  // as with `replan`
  start_.now.reset();
  spec_.iterations = 12;
  Trials trials(*job_, spec_, *planner_, start_, listener_);
  run_all(trials);
  EXPECT_TRUE(trials.report()->cut_short);
  EXPECT_FALSE(trials.report()->for_next) << trials.report()->text();
  EXPECT_EQ(train(12).earlier->measured, all.plans[all.kept].measured);
}

TEST_F(TrialsInTheCache, FiguresThatCannotBeAreRefusedWithTheNameOfTheirFile) {
  (void)train(200);
  ASSERT_THAT(kept_files(), SizeIs(1));
  const std::string path = kept_files()[0];
  const std::string text = *read_file(path);
  for (const char* field : {"predicted_ns", "unlimited_ns", "measured_ns", "iterations"}) {
    SCOPED_TRACE(field);
    Json file = Json::parse(text);
    file["trial"][field] = 0;
    ASSERT_TRUE(write_file(path, file.dump()));
    listener_ = {};
    begin_again(200);
    EXPECT_FALSE(start_.plan.tried);
    EXPECT_THAT(listener_.notices,
                Contains(Pair(Notice::cache_file_ignored,
                              ::testing::AllOf(HasSubstr(path), HasSubstr(field)))));
  }
}

/// The second plan needs more memory than the first: the device is opened anew, and stays open for
/// the third.
TEST_F(TrialsOfATraining, AHandOverKeepsStateAndIterationInArenasOfAnySize) {
  begin("capuchin", 80, 1);
  plan_by(truth_);
  auto more = plan({start_.budget.device * 9 / 8, 0, {}});
  ASSERT_TRUE(more) << more.error().message;
  const Plan& first = start_.lowered().plan;
  ASSERT_GT(more->lowered.plan.device_bytes(), first.device_bytes());
  const auto train = [&](std::span<const Plan* const> plans) {
    testing::forget_opened();
    TrainingRun run(*job_, start_.machine, *plans[0], *job_->make_runner());
    run.executor().enter();
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (i > 0) run.go_on_with(*plans[i], start_.machine);
      EXPECT_EQ(run.run(3, {}, {}).iterations, 3);
    }
    run.executor().exit();
    EXPECT_GE(run.arena_peak(), plans[0]->device_bytes() - start_.machine.alignment());
    return std::pair(run.runner().losses(), checksum(run.runner()));
  };
  const Plan* const same[] = {&first, &first, &first};
  const auto expected = train(same);
  EXPECT_THAT(expected.first, SizeIs(9));
  EXPECT_THAT(testing::opened_devices(), SizeIs(1));
  const Plan* const others[] = {&first, &more->lowered.plan, &first};
  EXPECT_EQ(train(others), expected);
  EXPECT_THAT(testing::opened_devices(), SizeIs(2));
  EXPECT_LE(testing::most_open_at_once(), more->lowered.plan.device_bytes());
}

TEST_F(TrialsOfATraining, SayWhyThereAreNone) {
  begin("auto", 60, 1);
  plan_by(truth_);
  const auto why = [&](const auto& change) {
    TrainingSpec spec = spec_;
    change(spec);
    return why_not_tried(spec, *job_, start_);
  };
  EXPECT_THAT(why([](TrainingSpec&) {}), IsEmpty());
  EXPECT_THAT(why([](TrainingSpec& s) { s.trials = false; }), HasSubstr("switched off"));
  EXPECT_THAT(why([](TrainingSpec& s) { s.plan = "x"; }), HasSubstr("of a file"));
  EXPECT_THAT(why([](TrainingSpec& s) { s.budget.memory.automatic = true; }),
              HasSubstr("`memory`"));
  EXPECT_THAT(why([](TrainingSpec& s) { s.iterations = 11; }), HasSubstr("at least 12 `iterat"));
  start_.plan.planned.lowered.streaming = true;
  EXPECT_THAT(why([](TrainingSpec&) {}), HasSubstr("streaming"));
}

/// Multiplies all times of the profiles in the cache: as if they were measured on a busy machine.
void slow_down_cached_profiles(std::int64_t factor) {
  int changed = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache_folder())) {
    if (!entry.path().filename().string().starts_with("profile")) continue;
    Json file = Json::parse(*read_file(entry.path().string()));
    for (Json& op : file["program"]["ops"]) {
      for (Json& algorithm : op["algorithms"]) {
        algorithm["time_ns"] = factor * algorithm["time_ns"].get<std::int64_t>();
      }
    }
    ASSERT_TRUE(write_file(entry.path().string(), file.dump()));
    ++changed;
  }
  EXPECT_GT(changed, 0);
}

TEST_F(TrialsTest, AProfileOfABusyMachineIsFoundOutAndReplaced) {
  TrainingSpec spec = of_capuchin(80);
  spec.planner.name = "autoswap";
  const TrainingReport measured = trained(spec);
  EXPECT_FALSE(measured.trials);
  slow_down_cached_profiles(10);
  listener_ = {};
  const TrainingReport report = trained(spec);
  EXPECT_EQ(report.start.profile.from, "cache");
  EXPECT_THAT(listener_.notices,
              Contains(Pair(Notice::ops_take_other_times, HasSubstr("in the cache"))));
  EXPECT_TRUE(report.trials);
  EXPECT_EQ(report.state_crc32, measured.state_crc32);
  EXPECT_LT(report.predicted, 5 * measured.predicted);
  EXPECT_LE(report.start.fastest_unlimited, report.start.predicted_unlimited);
  EXPECT_LE(report.arena_peak, report.start.budget.device);

  listener_ = {};
  const TrainingReport next = trained(spec);
  EXPECT_LT(next.predicted, 5 * measured.predicted) << "the cache has the times of now";
  EXPECT_EQ(next.state_crc32, measured.state_crc32);
}

TEST_F(TrialsTest, TrainingsThatAreTooShortSaySo) {
  TrainingSpec spec = of_auto(80);
  for (const std::int64_t iterations : {1, 5, 11}) {
    spec.iterations = iterations;
    const TrainingReport report = trained(spec);
    ASSERT_TRUE(report.trials);
    EXPECT_THAT(report.trials->plans, IsEmpty());
    EXPECT_EQ(report.trials->text(), "none: it takes at least 12 `iterations`");
    EXPECT_EQ(report.next_iteration, iterations);
  }
}

}  // namespace
}  // namespace tidepool
