#include "lower/timing/step_list.h"

#include "base/at.h"

namespace tidepool {

void StepList::clear() {
  steps_.clear();
  waits_.clear();
}

void StepList::add(const Step& step, const ExtendedWaits& waits) {
  steps_.push_back(step);
  waits_.push_back(waits);
}

void StepList::resolve(const TimingProblem& problem, std::vector<Step>& steps) {
  const std::int32_t calls = problem.call_count();
  const std::int32_t outs = problem.out_count();
  call_step_.resize(at(calls));
  out_step_.resize(at(outs));
  in_step_.resize(problem.ins.size());
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    auto& list = steps_[i].kind == StepKind::op        ? call_step_
                 : steps_[i].kind == StepKind::copy_in ? in_step_
                                                       : out_step_;
    list[at(steps_[i].id)] = static_cast<std::int32_t>(i);
  }
  std::int32_t last = kNone;  // of the steps on the compute stream
  compute_step_.resize(at(calls));
  for (CallId c = 0; c < calls; ++c) {
    if (problem.calls[at(c)].on_device) last = call_step_[at(c)];
    compute_step_[at(c)] = last;
  }
  const auto set = [](Step& step, StreamId stream, std::int32_t index, std::int32_t iteration) {
    if (stream == step.stream) return;
    StepWait& wait = step.waits[at(stream)];
    const bool later = wait.index == kNone || iteration > wait.iteration ||
                       (iteration == wait.iteration && index > wait.index);
    if (later) wait = {index, iteration};
  };
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    const ExtendedWaits& p = waits_[i];
    if (p.call != kNone) {
      const bool now = p.call >= calls;
      const std::int32_t computed = compute_step_[at(now ? p.call - calls : p.call)];
      if (computed != kNone) {
        set(step, table_.compute, computed, now ? 0 : -1);
      } else if (now && last != kNone) {
        // No device call in this iteration yet: the last of the previous one.
        set(step, table_.compute, last, -1);
      }
    }
    if (p.out != kNone) {
      const bool now = p.out >= outs;
      set(step, table_.out, out_step_[at(now ? p.out - outs : p.out)], now ? 0 : -1);
    }
    if (p.in != kNone) set(step, table_.in, in_step_[at(p.in)], 0);
    if (p.host != kNone) {
      const bool now = p.host >= calls;
      set(step, table_.host, call_step_[at(now ? p.host - calls : p.host)], now ? 0 : -1);
    }
    if (step.kind == StepKind::copy_out) step.id = problem.outs[at(step.id)].id;
    if (step.kind == StepKind::copy_in) step.id = problem.ins[at(step.id)].id;
  }
  for (const HostWait& wait : problem.host_waits) {
    if (wait.in == kNone) continue;
    set(steps_[at(call_step_[at(wait.call)])], table_.in, in_step_[at(wait.in)],
        wait.previous ? -1 : 0);
  }
  steps.assign(steps_.begin(), steps_.end());
}

}  // namespace tidepool
