#include "several_devices.h"

#include "job/job_spec.h"
#include "lower/overhead.h"
#include "nn/models/model.h"
#include "planning/parallel_plan.h"

namespace tidepool::cli {
namespace {

Result<Subject::SharedParallel> in_rounds_of(const nn::Graph& graph, nn::TrainingOptions options,
                                             std::int64_t sub_batch) {
  options.sub_batch = sub_batch;
  auto part = nn::build_training_program(graph, options, nn::preset_kernels());
  if (!part) return fail(part.error());
  return std::make_shared<const nn::DataParallel>(
      nn::replicate(*part, options, nn::preset_kernels()));
}

}  // namespace

Result<void> several_on_preset(const JobSpec& job, bool choosing, Subject& subject) {
  const Machine one = subject.profile.machine;
  const auto graph =
      nn::build_model(job.model, {.sequence = job.sequence, .clusters = job.clusters});
  if (!graph) return fail(graph.error());
  nn::TrainingOptions options;
  options.batch = job.batch;
  options.storage = job.storage;
  options.optimizer = job.optimizer;
  options.workspace_limit = job.workspace_limit;
  const AlgorithmPolicy policy = best_algorithms(job, choosing);
  auto alone = nn::build_training_program(*graph, options, nn::preset_kernels());
  if (!alone) return fail(alone.error());
  apply_cost_model(one, alone->program);
  subject.alone = unlimited_time(alone->program, one, policy);
  options.sub_batch = subject.profile.program.sub_batch;
  options.sub_batch_statistics = job.sub_batch_statistics;
  options.devices = job.devices;
  options.naive_accumulation = job.accumulation == Accumulation::naive;
  subject.parallel_in_rounds = [options, graph = *graph](std::int64_t sub_batch) {
    return in_rounds_of(graph, options, sub_batch);
  };
  auto parallel = subject.parallel_in_rounds(options.sub_batch);
  if (!parallel) return fail(parallel.error());
  subject.parallel = std::move(*parallel);
  subject.all = machine_of_devices(one, job.devices);
  subject.profile.machine = one_of_devices(*subject.all);
  return {};
}

std::optional<ParallelProgram> parallel_program(const JobSpec& job, const Subject& subject) {
  if (!subject.parallel) return std::nullopt;
  return ParallelProgram{subject.profile.program, subject.parallel->whole.program,
                         subject.parallel->replication, job.accumulation == Accumulation::naive};
}

Result<ParallelPlan> plan_of_devices(const JobSpec& job, Subject& subject, const Program& part,
                                     const Plan& plan, const Budget& budget,
                                     std::int32_t host_cores) {
  if (part.sub_batch != subject.parallel->whole.program.sub_batch) {
    auto chosen = subject.parallel_in_rounds(part.sub_batch);
    if (!chosen) return fail(chosen.error());
    subject.parallel = std::move(*chosen);
  }
  const ParallelProgram program{part, subject.parallel->whole.program,
                                subject.parallel->replication,
                                job.accumulation == Accumulation::naive};
  return parallel_plan(program, plan, *subject.all, budget, host_cores);
}

}  // namespace tidepool::cli
