// Where the weights of tide's timeline search come from: the excess over a load limit that the
// search is left with after a fixed number of states, per choice of weights, on four networks of
// the zoo with the gtx1080ti preset. The measured VGG16 trace is shown as a test and decides
// nothing. Fixed seeds, no clocks: every run prints the same table.
//   bench_tune_tide [STATES [TRACE]]
#include <fmt/format.h>

#include <cstdlib>
#include <numeric>

#include "base/file.h"
#include "cost/machine.h"
#include "ir/load_profile.h"
#include "nn/kernel.h"
#include "nn/models/model.h"
#include "nn/training_program.h"
#include "planners/toolkit/timeline_search.h"
#include "trace/recording.h"
#include "trace/trace_program.h"

namespace tidepool {
namespace {

using Weights = TimelineSearch::Weights;

struct Choice {
  std::string name;
  Weights weights;
};

/// The present weights, and each of them halved and doubled.
std::vector<Choice> choices() {
  std::vector<Choice> all{{"as they are", {}}};
  const std::pair<const char*, double Weights::*> weights[] = {{"window", &Weights::window},
                                                               {"worst", &Weights::worst},
                                                               {"useless", &Weights::useless},
                                                               {"copied", &Weights::copied}};
  for (const auto& [name, weight] : weights) {
    for (const double factor : {0.5, 2.0}) {
      Choice choice{fmt::format("{} x {}", name, factor), {}};
      choice.weights.*weight *= factor;
      all.push_back(choice);
    }
  }
  return all;
}

struct Subject {
  std::string name;
  Program program;
};

/// The mean excess in parts of the peak, over limits and seeds.
double excess(const Subject& subject, const Machine& machine, const Weights& weights,
              std::int64_t states) {
  const auto algorithms = least_workspace_algorithms(subject.program);
  Lowering lowering(subject.program, machine);
  const Bytes peak =
      load_profile(subject.program, lowering.index(), machine.alignment(), algorithms).peak;
  double sum = 0;
  int runs = 0;
  for (const double part : {0.35, 0.45, 0.55, 0.65, 0.75}) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      TimelineSearch search(lowering, algorithms);
      TimelineSearch::Options options;
      options.seed = seed;
      options.stop = [&] { return search.evaluations() >= states; };
      options.weights = weights;
      search.run(static_cast<Bytes>(part * static_cast<double>(peak)),
                 AwayGaps(lowering.index().gaps().size(), 0), options);
      sum += static_cast<double>(search.excess()) / static_cast<double>(peak);
      ++runs;
    }
  }
  return sum / runs;
}

Result<Subject> zoo_subject(const char* model, const Machine& machine) {
  const auto graph = nn::build_model(model);
  if (!graph) return fail(graph.error());
  nn::TrainingOptions options;
  options.batch = 100;
  options.storage = nn::Storage::separate;
  auto training = nn::build_training_program(*graph, options, nn::reference_kernels());
  if (!training) return fail(training.error());
  apply_cost_model(machine, training->program);
  return Subject{model, std::move(training->program)};
}

Result<Subject> trace_subject(const std::string& path, const Machine& machine) {
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  const auto recording = read_recording(*text, path);
  if (!recording) return fail(recording.error());
  auto traced = trace_program(*recording, machine.compute);
  if (!traced) return fail(traced.error());
  return Subject{"trace (test)", std::move(traced->program)};
}

Result<void> tune(std::int64_t states, const std::string& trace) {
  const auto machine = find_machine("gtx1080ti");
  if (!machine) return fail(machine.error());
  std::vector<Subject> subjects;
  for (const char* model : {"mlp", "vgg11", "resnet18-cifar", "resnet50-cifar"}) {
    auto subject = zoo_subject(model, *machine);
    if (!subject) return fail(subject.error());
    subjects.push_back(std::move(*subject));
  }
  const std::size_t tuned_on = subjects.size();
  if (!trace.empty()) {
    auto subject = trace_subject(trace, *machine);
    if (!subject) return fail(subject.error());
    subjects.push_back(std::move(*subject));
  }
  fmt::print("excess in % of the peak after {} states\n{:16}", states, "weights");
  for (std::size_t i = 0; i < tuned_on; ++i) fmt::print(" {:>15}", subjects[i].name);
  fmt::print(" {:>10}", "mean");
  for (std::size_t i = tuned_on; i < subjects.size(); ++i) fmt::print(" {:>15}", subjects[i].name);
  fmt::print("\n");
  for (const Choice& choice : choices()) {
    std::vector<double> row;
    for (const Subject& subject : subjects) {
      row.push_back(100 * excess(subject, *machine, choice.weights, states));
    }
    fmt::print("{:16}", choice.name);
    for (std::size_t i = 0; i < tuned_on; ++i) fmt::print(" {:>15.3f}", row[i]);
    const auto end = row.begin() + static_cast<std::ptrdiff_t>(tuned_on);
    fmt::print(" {:>10.3f}",
               std::accumulate(row.begin(), end, 0.0) / static_cast<double>(tuned_on));
    for (std::size_t i = tuned_on; i < row.size(); ++i) fmt::print(" {:>15.3f}", row[i]);
    fmt::print("\n");
    std::fflush(stdout);
  }
  return {};
}

}  // namespace
}  // namespace tidepool

int main(int argc, char** argv) {
  const std::int64_t states = argc > 1 ? std::atoll(argv[1]) : 5'000;
  const auto done = tidepool::tune(states, argc > 2 ? argv[2] : "");
  if (done) return 0;
  fmt::print(stderr, "{}\n", done.error().message);
  return 1;
}
