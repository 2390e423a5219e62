// HOME's policy evaluator and policy maker: microseconds an evaluation, the swarm until it has
// converged, and the published 500 iterations of 500 particles with the share of their evaluations
// that is skipped. Networks of the zoo on the machine of the paper, in part of their peak.
//   bench_home_policy [MODELS [PERCENT [BATCH [PUBLISHED]]]]
// MODELS such as vgg16,resnet101-cifar; PUBLISHED 0 leaves the published size out.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "base/random.h"
#include "cost/machine.h"
#include "ir/load_profile.h"
#include "nn/kernel.h"
#include "nn/models/model.h"
#include "nn/training_program.h"
#include "planners/home/home.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

constexpr RegeneratedMaps kRule = RegeneratedMaps::stay_if_they_fit;

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

Result<Program> network(const std::string& model, std::int64_t batch, nn::Storage storage,
                        const Machine& machine) {
  const auto graph = nn::build_model(model);
  if (!graph) return fail(graph.error());
  nn::TrainingOptions options;
  options.batch = batch;
  options.storage = storage;
  auto training = nn::build_training_program(*graph, options, nn::reference_kernels());
  if (!training) return fail(training.error());
  apply_cost_model(machine, training->program);
  return std::move(training->program);
}

/// Random policies, whole evaluations: none gives up.
double micros_an_evaluation(const FeatureMaps& maps, const PolicyModel& model, Bytes limit) {
  constexpr int kPolicies = 64;
  const auto choices = maps.choices();
  Random random(1);
  std::vector<std::vector<std::uint8_t>> policies(kPolicies);
  for (auto& policy : policies) {
    for (const auto& of : choices) policy.push_back(of[random.below(of.size())]);
  }
  PolicyEvaluator evaluator(model);
  std::int64_t made = 0;
  const auto begun = Clock::now();
  while (seconds_since(begun) < 0.3) {
    for (const auto& policy : policies) evaluator.evaluate(policy, limit);
    made += kPolicies;
  }
  return 1e6 * seconds_since(begun) / static_cast<double>(made);
}

void print_swarm(const char* what, const SwarmResult& found, const PolicyModel& model,
                 double seconds) {
  const bool fits = found.cost < PolicyEvaluator::kDoesNotFit;
  const double compute = static_cast<double>(model.compute_time.count());
  fmt::print(
      "  {:10} {:7.2f} s, {:4} iterations, {:9} evaluations, {:5.1f} % skipped, {:5.2f} us "
      "each, overhead {}\n",
      what, seconds, found.iterations, found.evaluations, 100 * found.skipped_share(),
      1e6 * seconds / static_cast<double>(found.evaluations),
      fits ? fmt::format("{:.2f} %", 100 * (static_cast<double>(found.cost) / compute - 1))
           : "none fits");
  std::fflush(stdout);
}

struct Arguments {
  double share = 0.5;
  std::int64_t batch = 100;
  bool published = true;
};

Result<void> measure(const std::string& name, nn::Storage storage, const Arguments& a) {
  const auto machine = find_machine("rtx2080ti");
  if (!machine) return fail(machine.error());
  const auto program = network(name, a.batch, storage, *machine);
  if (!program) return fail(program.error());
  const AccessIndex index(*program);
  const auto algorithms = least_workspace_algorithms(*program);
  const FeatureMaps maps(*program, index, *machine, algorithms, {});
  const PolicyModel model(*program, index, *machine, algorithms, maps);
  const Bytes peak = load_profile(*program, index, machine->alignment(), algorithms).peak;
  const auto limit = static_cast<Bytes>(a.share * static_cast<double>(peak));
  fmt::print("{} {}: {} ops, {} feature maps, {} stretches, {:.2f} us an evaluation\n", name,
             storage == nn::Storage::separate ? "separate" : "in-place", program->ops.size(),
             maps.maps().size(), model.stretches.size() - 1,
             micros_an_evaluation(maps, model, limit));
  SwarmOptions options;
  options.particles = enough_particles(maps.maps().size());
  options.threads = std::thread::hardware_concurrency();
  auto begun = Clock::now();
  const SwarmResult converged = search_policy(maps, model, limit, kRule, options, true);
  print_swarm("converged", converged, model, seconds_since(begun));
  if (!a.published) return {};
  options.particles = 500;
  options.iterations = 500;
  begun = Clock::now();
  const SwarmResult published = search_policy(maps, model, limit, kRule, options, false);
  print_swarm("500 x 500", published, model, seconds_since(begun));
  return {};
}

}  // namespace
}  // namespace tidepool

int main(int argc, char** argv) {
  const std::string models =
      argc > 1 ? argv[1] : "vgg16,resnet18-cifar,resnet101-cifar,inceptionv3";
  tidepool::Arguments a;
  if (argc > 2) a.share = std::atof(argv[2]) / 100;
  if (argc > 3) a.batch = std::atoll(argv[3]);
  if (argc > 4) a.published = std::atoi(argv[4]) != 0;
  for (std::size_t begin = 0; begin < models.size();) {
    const std::size_t end = std::min(models.find(',', begin), models.size());
    const std::string name = models.substr(begin, end - begin);
    begin = end + 1;
    using tidepool::nn::Storage;
    for (const Storage storage : {Storage::in_place, Storage::separate}) {
      const auto done = tidepool::measure(name, storage, a);
      if (done) continue;
      fmt::print(stderr, "{}\n", done.error().message);
      return 1;
    }
  }
  return 0;
}
