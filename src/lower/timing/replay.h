// The long run of a list of steps that repeats. See Note [Long run] in replay.cpp.
#pragma once

#include <span>
#include <vector>

#include "lower/step.h"
#include "schedule/lateness.h"

namespace tidepool {

/// Avoids allocation between calls.
struct ReplayScratch {
  std::vector<Nanos> current_end;
  std::vector<Nanos> previous_end;
};

/// Runs the list of steps iteration after iteration from idle streams until what follows is known
/// for ever, and gives each step its start and end in the last one. Returns the long-run mean of
/// the time of one iteration of the compute stream, rounded: where two iterations agree, what each
/// of them takes.
Nanos replay(std::span<Step> steps, StreamId compute, ReplayScratch& scratch);

/// A step of a schedule with more streams than the evaluator knows.
struct ScheduledStep {
  static constexpr int kStreams = 8;
  StreamId stream = 0;
  std::vector<StepWait> waits;
  Lateness late{};
  Nanos duration{};
  Nanos start{};
  Nanos end{};
};
/// The same for these, which begin late.
Nanos replay(std::span<ScheduledStep> steps, StreamId compute, ReplayScratch& scratch);

}  // namespace tidepool
