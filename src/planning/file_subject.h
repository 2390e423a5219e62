// Subjects of files: a profile, a program with a machine given apart, a recorded trace.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/observer.h"
#include "cost/spill.h"
#include "planning/subject.h"
#include "trace/recording.h"

namespace tidepool {

/// The fingerprint of the device at hand.
using FingerprintHere = std::function<Result<std::string>()>;

/// A plan is good only where its profile was measured: one of another device is refused, unless
/// `here` is empty. In rounds a profile does not know the whole batch, which percentages of
/// `budgets` are of.
Result<Subject> subject_of_profile(const std::string& path, const FingerprintHere& here,
                                   std::span<const BudgetSpec> budgets);

/// The program with the times of its algorithms or, where it has none at all, with those of the
/// machine's compute model. Without such a model it is refused; with one, where nothing says what
/// its ops do, they take no time. Errors name `origin`.
Result<Program> timed_on(const Machine& machine, Program program, const std::string& origin);

/// A program of any origin: with the times of its algorithms, or with those of the machine's
/// compute model where it has none at all. `machine`: a preset, or a file that ends in .json.
/// `tier`: a file behind its host.
Result<Subject> subject_of_program(const std::string& path, const std::string& machine,
                                   const std::optional<FileTierLink>& tier);

struct TraceSpec {
  std::string file;
  /// Device bytes taken before the trace begins; none: what the file says.
  std::optional<Bytes> resident{};
};

Result<Recording> load_trace(const TraceSpec& trace);
/// The same from the file's text.
Result<Recording> load_trace(const TraceSpec& trace, std::string_view text);

/// A recorded iteration, with its own times, on the links of a preset; where none is named, of the
/// GTX 1080 Ti of the SmartPool/AutoSwap paper.
Result<Subject> subject_of_trace(const TraceSpec& trace, const std::string& machine,
                                 const std::optional<FileTierLink>& tier, Observer& observer);

}  // namespace tidepool
