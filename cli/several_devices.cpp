#include "several_devices.h"

#include "lower/overhead.h"
#include "nn/models/model.h"
#include "train/parallel_plan.h"

namespace tidepool::cli {

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
  const AlgorithmPolicy policy =
      choosing && !job.algorithms ? AlgorithmPolicy::fastest : algorithms_of(job);
  auto alone = nn::build_training_program(*graph, options, nn::preset_kernels());
  if (!alone) return fail(alone.error());
  apply_cost_model(one, alone->program);
  subject.alone = unlimited_time(alone->program, one, choose_algorithms(alone->program, policy));
  options.sub_batch = job.sub_batch;
  options.sub_batch_statistics = job.sub_batch_statistics;
  options.devices = job.devices;
  options.naive_accumulation = job.accumulation == Accumulation::naive;
  auto part = nn::build_training_program(*graph, options, nn::preset_kernels());
  if (!part) return fail(part.error());
  subject.parallel =
      std::make_shared<nn::DataParallel>(nn::replicate(*part, options, nn::preset_kernels()));
  subject.all = machine_of_devices(one, job.devices);
  subject.profile.machine = one_of_devices(*subject.all);
  return {};
}

std::optional<ParallelProgram> parallel_program(const JobSpec& job, const Subject& subject) {
  if (!subject.parallel) return std::nullopt;
  return ParallelProgram{subject.profile.program, subject.parallel->whole.program,
                         subject.parallel->replication, job.accumulation == Accumulation::naive};
}

}  // namespace tidepool::cli
