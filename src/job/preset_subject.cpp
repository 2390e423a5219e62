#include "job/preset_subject.h"

#include "job/file_place.h"
#include "job/offered_rounds.h"
#include "lower/overhead.h"
#include "nn/data_parallel.h"
#include "nn/models/model.h"
#include "planning/named_machine.h"

namespace tidepool {
namespace {

Result<Program> timed_program(const nn::Graph& graph, const nn::TrainingOptions& options,
                              const Machine& machine) {
  auto training = nn::build_training_program(graph, options, nn::preset_kernels());
  if (!training) return fail(training.error());
  apply_cost_model(machine, training->program);
  return std::move(training->program);
}

Result<SubjectDevices::Shared> all_devices(const nn::Graph& graph, nn::TrainingOptions options,
                                           std::int64_t sub_batch) {
  options.sub_batch = sub_batch;
  auto part = nn::build_training_program(graph, options, nn::preset_kernels());
  if (!part) return fail(part.error());
  nn::DataParallel all = nn::replicate(*part, options, nn::preset_kernels());
  return std::make_shared<const DevicesProgram>(
      DevicesProgram{std::move(all.whole.program), std::move(all.replication)});
}

/// `subject` becomes the part of one device.
Result<void> share_on_preset(const JobSpec& job, const nn::Graph& graph, bool choosing,
                             Subject& subject) {
  const Machine one = subject.profile.machine;
  nn::TrainingOptions options = training_options(job);
  options.devices = 1;
  options.sub_batch = 0;
  options.sub_batch_statistics = options.naive_accumulation = false;
  const auto alone = timed_program(graph, options, one);
  if (!alone) return fail(alone.error());
  options = training_options(job);
  SubjectDevices devices;
  devices.machine = one;
  devices.naive = options.naive_accumulation;
  devices.alone = unlimited_time(*alone, one, subject.terms.best_algorithms(choosing));
  devices.in_rounds = [options, graph](std::int64_t sub_batch) {
    return all_devices(graph, options, sub_batch);
  };
  auto program = devices.in_rounds(subject.profile.program.sub_batch);
  if (!program) return fail(program.error());
  devices.program = std::move(*program);
  share_between(job.devices, std::move(devices), subject);
  return {};
}

}  // namespace

Result<Subject> subject_on_preset(const JobSpec& job, const std::string& name, bool choosing) {
  const auto machine = with_file_behind(preset(name), stated_file_tier(job.device.file_tier));
  if (!machine) return fail(machine.error());
  auto graph = nn::build_model(job.model, {.sequence = job.sequence, .clusters = job.clusters});
  if (!graph) return fail(graph.error());
  Subject subject;
  subject.terms = plan_terms(job);
  subject.statistics = job.sub_batch_statistics;
  subject.in_rounds = [options = training_options(job), graph = *graph, machine = *machine](
                          std::int64_t sub_batch, bool statistics) {
    nn::TrainingOptions mine = options;
    mine.sub_batch = sub_batch;
    mine.sub_batch_statistics = statistics;
    return timed_program(graph, mine, machine);
  };
  subject.batch_norm = nn::rounds_change_training(*graph);
  subject.offered = offered_sizes(job, subject.batch_norm);
  auto program = subject.in_rounds(job.sub_batch, subject.statistics);
  for (std::size_t i = 1; !program && i < subject.offered.size(); ++i) {
    // A whole batch of more elements than kernels can number.
    program = subject.in_rounds(subject.offered[i], subject.statistics);
  }
  if (!program) return fail(program.error());
  subject.profile = {"preset " + machine->name, std::move(*program), *machine};
  if (!subject.offered.empty()) {
    subject.rounds = std::make_shared<RoundsWorkload>(
        subject.offered, [in_rounds = subject.in_rounds, statistics = subject.statistics](
                             std::int64_t sub_batch) { return in_rounds(sub_batch, statistics); });
  }
  if (job.devices > 1) {
    if (auto shared = share_on_preset(job, *graph, choosing, subject); !shared) {
      return fail(shared.error());
    }
  }
  return subject;
}

}  // namespace tidepool
