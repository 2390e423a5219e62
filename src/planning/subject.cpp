#include "planning/subject.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "lower/expand.h"
#include "lower/overhead.h"
#include "planning/budget.h"

namespace tidepool {

JobRounds Subject::job_rounds(bool stated) const {
  JobRounds offer{
      profile.program, statistics, in_rounds, stated ? std::vector<std::int64_t>{} : offered, true,
      may_choose};
  if (memory) offer.limit_ops(memory->most_ops());
  return offer;
}

std::optional<ParallelProgram> Subject::parallel_program() const {
  if (!devices) return std::nullopt;
  return ParallelProgram{profile.program, devices->program->whole, devices->program->replication,
                         devices->naive};
}

Bytes Subject::unlimited_peak() const {
  const Bytes alignment = profile.machine.alignment();
  const auto whole = whole_batch_peak(job_rounds(), alignment);
  return resident + whole.value_or(tidepool::unlimited_peak(profile.program, alignment));
}

Nanos Subject::unlimited_time(const Program& program, AlgorithmPolicy policy) const {
  const Nanos own = tidepool::unlimited_time(program, profile.machine, policy);
  return std::min(own, rounds_of(program, policy).whole.value_or(own));
}

RoundsOfPlan Subject::rounds_of(const Program& program, AlgorithmPolicy policy) const {
  RoundsOfPlan known{program.sub_batch, program.rounds(), rounds != nullptr,
                     batch_norm && (program.rounds() > 1 || devices)};
  known.of_part = devices.has_value();
  if (rounds == nullptr) return known;
  const Program* whole = rounds->known(program.batch);
  // Where nothing is measured asking costs nothing.
  if (whole == nullptr && sources == nullptr)
    whole = rounds->program(program.batch).value_or(nullptr);
  if (whole != nullptr) {
    known.whole = tidepool::unlimited_time(*whole, profile.machine, policy);
  }
  return known;
}

Bytes Subject::device_bytes(const BudgetSpec& spec) const {
  if (spec.memory.given() && memory) {
    return std::max<Bytes>(memory->largest_arena(profile.machine.alignment()), 0);
  }
  if (!spec.limited()) return kNoDeviceLimit;
  return std::max<Bytes>(0, spec.device.resolve(unlimited_peak()) - resident);
}

Result<Budget> Subject::budget_of(BudgetSpec spec, bool stated) const {
  const bool whole = spec.memory.given() && memory;
  if (whole || (resident > 0 && spec.limited())) {
    spec.device = {.bytes = device_bytes(spec), .percent = -1};
  }
  auto budget = resolve_budget(spec, job_rounds(stated), profile.machine);
  if (!budget) return fail(of_whole(budget.error()));
  return budget;
}

Error Subject::of_whole(Error error) const {
  if (memory && error.code == ErrorCode::infeasible && !error.of_host) {
    return memory->explained(std::move(error));
  }
  if (resident == 0 || error.code != ErrorCode::infeasible) return error;
  error.message += fmt::format("; the resident bytes of the trace, {} B ({}), come on top",
                               resident, format_bytes(resident));
  if (error.smallest_feasible && !error.of_host) *error.smallest_feasible += resident;
  return error;
}

void share_between(std::int32_t count, SubjectDevices devices, Subject& subject) {
  devices.machine = machine_of_devices(devices.machine, count);
  subject.profile.machine = one_of_devices(devices.machine);
  subject.devices = std::move(devices);
}

Result<void> finish_subject(Subject& subject, Bytes workspace_limit) {
  const Program& program = subject.profile.program;
  if (std::string why = why_unplannable(program); !why.empty() && on_one_device(program)) {
    return fail(ErrorCode::bad_input, fmt::format("{}: {}", program.name, why));
  }
  limit_workspaces(subject.profile.program, workspace_limit);
  return {};
}

}  // namespace tidepool
