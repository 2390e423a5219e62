// Iterations recorded as graphs.
#include "base/at.h"
#include "runtime/executor.h"

namespace tidepool {

std::vector<std::uint32_t> Executor::guards_of(std::int64_t first, std::int64_t count) {
  std::vector<std::uint32_t> guards;
  for (std::int64_t i = 0; i < count; ++i) guards.push_back(runner_.guards(first + i));
  return guards;
}

bool Executor::ops_have_run(const std::vector<std::uint32_t>& guards) const {
  std::uint32_t wanted = 0;
  for (const std::uint32_t g : guards) wanted |= g;
  return ran_ && (wanted & used_guards_ & ~ran_guards_) == 0;
}

RunReport Executor::run_graphs(std::int64_t iterations, std::int64_t per_graph, const Stop& stop,
                               const std::function<void(std::int64_t, Nanos)>& on_iteration) {
  RunReport report;
  const auto run_plainly = [&](std::int64_t count) {
    const RunReport part = run(count, stop, on_iteration);
    report.iterations += part.iterations;
    report.cancelled = part.cancelled;
    report.iteration_times.insert(report.iteration_times.end(), part.iteration_times.begin(),
                                  part.iteration_times.end());
  };
  if (iterations % per_graph > 0) run_plainly(iterations % per_graph);
  Nanos previous = device_.now();
  std::int64_t issued = 0, completed = 0;  // graphs
  const auto complete_one = [&] {
    const Nanos end = device_.synchronize(graph_end_[slot(completed)]);
    const Nanos took = (end - previous) / per_graph;
    previous = end;
    const std::int64_t first = next_iteration_ - (issued - completed) * per_graph;
    ++completed;
    for (std::int64_t i = 0; i < per_graph; ++i) {
      report.iteration_times.push_back(took);
      if (on_iteration) on_iteration(first + i, took);
      ++report.iterations;
    }
  };
  const auto complete_all = [&] {
    while (completed < issued) complete_one();
  };
  while (!report.cancelled && report.iterations + (issued - completed) * per_graph < iterations) {
    if (stop.requested()) {
      report.cancelled = true;
      break;
    }
    auto guards = guards_of(next_iteration_, per_graph);
    if (graph_ == kNone || guards != graph_guards_) {
      complete_all();
      if (!ops_have_run(guards)) {
        run_plainly(per_graph);
        previous = device_.now();
        continue;
      }
      capture(std::move(guards));
      previous = device_.now();
    }
    device_.launch_graph(graph_, next_iteration_);
    device_.record(graph_end_[slot(issued)], 0);  // graphs run as work of stream 0
    next_iteration_ += per_graph;
    ++issued;
    if (issued - completed > kIterationsAhead) complete_one();
  }
  complete_all();
  device_.synchronize();
  return report;
}

}  // namespace tidepool
