#include "planning/file_subject.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "base/quantity.h"
#include "planning/load_file.h"
#include "planning/named_machine.h"
#include "planning/same_job.h"
#include "trace/trace_program.h"

namespace tidepool {

Result<Subject> subject_of_profile(const std::string& path, const FingerprintHere& here,
                                   std::span<const BudgetSpec> budgets) {
  auto profile = load_profile_file(path);
  if (!profile) return fail(profile.error());
  if (profile->program.rounds() > 1 &&
      std::ranges::any_of(budgets, [](const BudgetSpec& b) { return b.device.percent >= 0; })) {
    return fail(ErrorCode::usage,
                fmt::format("{}: percentages of a budget are of the peak of the whole batch, which "
                            "a profile in rounds of {} does not know: give `budget` in bytes",
                            path, profile->program.sub_batch));
  }
  if (here) {
    const auto fingerprint = here();
    if (!fingerprint) return fail(fingerprint.error());
    if (auto same = check_fingerprint(path, profile->fingerprint, *fingerprint); !same) {
      Error error = same.error();
      error.message += "; `foreign` plans for that one all the same";
      return fail(std::move(error));
    }
  }
  Subject subject;
  subject.source = ProfileSource{"file", {.fake = profile->fake}};
  subject.profile = std::move(*profile);
  return subject;
}

namespace {

bool any_time(const Program& program) {
  return std::ranges::any_of(program.ops, [](const Op& op) {
    return std::ranges::any_of(op.algorithms, [](const Algorithm& x) { return x.time > Nanos{0}; });
  });
}

/// Otherwise a compute model has nothing to go by.
bool any_work(const Program& program) {
  return std::ranges::any_of(program.ops,
                             [](const Op& op) { return op.flops > 0 || op.traffic > 0; });
}

bool any_on_device(const Program& program) {
  return std::ranges::any_of(program.ops, [](const Op& op) { return op.place == OpPlace::device; });
}

}  // namespace

Result<Program> timed_on(const Machine& machine, Program program, const std::string& origin) {
  if (!any_time(program) && any_on_device(program)) {
    if (machine.compute.peak_flops == 0) {
      return fail(ErrorCode::bad_input,
                  fmt::format("{}: no op has a time, and machine '{}' has no compute model", origin,
                              machine.name));
    }
    if (any_work(program)) apply_cost_model(machine, program);
  }
  if (auto times = validate_times(program, machine); !times) return fail(times.error());
  return program;
}

Result<Subject> subject_of_program(const std::string& path, const std::string& name,
                                   const std::optional<FileTierLink>& tier) {
  if (name.empty()) {
    return fail(ErrorCode::usage,
                "`program` needs `machine`: a preset (see `tidepool machines`), or a file that "
                "ends in .json");
  }
  auto machine = with_file_behind(named_machine(name), tier);
  if (!machine) return fail(machine.error());
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  auto program =
      read_json(*text, path, [](const JsonCursor& json) { return program_from_json(json); });
  if (!program) return fail(program.error());
  program = timed_on(*machine, std::move(*program), path);
  if (!program) return fail(program.error());
  Subject subject;
  subject.profile = {"program " + program->name, std::move(*program), std::move(*machine)};
  return subject;
}

Result<Recording> load_trace(const TraceSpec& trace) {
  const auto text = read_file(trace.file);
  if (!text) return fail(text.error());
  return load_trace(trace, *text);
}

Result<Recording> load_trace(const TraceSpec& trace, std::string_view text) {
  auto recording = read_recording(text, trace.file);
  if (!recording || !trace.resident) return recording;
  if (*trace.resident > kMostTraceBytes) return fail(ErrorCode::usage, "`resident` is too large");
  recording->resident = *trace.resident;
  return recording;
}

Result<Subject> subject_of_trace(const TraceSpec& trace, const std::string& name,
                                 const std::optional<FileTierLink>& tier, Observer& observer) {
  constexpr const char* kPublishedMachine = "gtx1080ti";  // that of the SmartPool/AutoSwap paper
  auto machine = with_file_behind(preset(name.empty() ? kPublishedMachine : name), tier);
  if (!machine) return fail(machine.error());
  const auto recording = load_trace(trace);
  if (!recording) return fail(recording.error());
  if (!recording->has_times) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: the trace has no times; a plan needs them", trace.file));
  }
  auto workload = trace_program(*recording, machine->compute);
  if (!workload) {
    return fail(ErrorCode::bad_input, fmt::format("{}: {}", trace.file, workload.error().message));
  }
  if (workload->moved > 0) {
    observer.notice(
        Notice::trace_outlives_iteration,
        fmt::format("{}: {} outlive their iteration; a plan of one iteration moves them on the "
                    "device, which takes {} of its {}",
                    trace.file, format_bytes(workload->moved), format_time(workload->move_time),
                    format_time(workload->time())));
  }
  Subject subject;
  subject.resident = align_up(workload->resident, machine->alignment());
  subject.profile = {"trace " + recording->name, std::move(workload->program), std::move(*machine)};
  return subject;
}

}  // namespace tidepool
