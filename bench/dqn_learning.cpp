// Whether the Q-network planner learns: best plan of training beside that of uniformly random
// actions and that of a learning rate of 0, with equal episodes and seeds; the last, greedy episode
// beside the best; no addresses.
//   bench_dqn_learning [MODELS [PERCENTS [EPISODES [SEEDS [BATCH [SETTINGS]]]]]]
// MODELS such as vgg16,resnet18; PERCENTS of the peak load, such as 50,40. SETTINGS such as
// rate=0.001,penalty=1,every=8,discount=0.99,hops=4,width=64,remove=0,only=learned,log=1.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "ir/load_profile.h"
#include "lower/overhead.h"
#include "nn/kernel.h"
#include "nn/models/model.h"
#include "nn/training_program.h"
#include "planners/dqn/torch/torch_network.h"
#include "planners/dqn/training.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;
using Settings = std::map<std::string, double>;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

Result<Program> network(const std::string& model, std::int64_t batch, const Machine& machine) {
  const auto graph = nn::build_model(model);
  if (!graph) return fail(graph.error());
  nn::TrainingOptions options;
  options.batch = batch;
  auto training = nn::build_training_program(*graph, options, nn::reference_kernels());
  if (!training) return fail(training.error());
  apply_cost_model(machine, training->program);
  return std::move(training->program);
}

double setting(const Settings& settings, const std::string& name, double usual) {
  const auto found = settings.find(name);
  return found == settings.end() ? usual : found->second;
}

struct Trained {
  double best = -1;
  double last = -1;
  double feasible = 0;  ///< part of the episodes
  std::int64_t steps = 0;
  double seconds = 0;
};

Trained train(Lowering& lowering, Bytes budget, QLearning learning, std::uint64_t seed,
              const Settings& settings) {
  const auto begun = Clock::now();
  dqn::EnvironmentOptions options;
  options.remove = setting(settings, "remove", 1) > 0;
  options.alongside = setting(settings, "alongside", 1) > 0;
  options.penalty = setting(settings, "penalty", options.penalty);
  dqn::Environment environment(lowering, least_workspace_algorithms(lowering.program()),
                               budget - budget / 4, options);
  std::unique_ptr<dqn::QNetwork> made;
  if (!learning.uniform) {
    auto network = dqn::make_torch_network(
        {learning.width, learning.hops, learning.learning_rate, learning.discount, seed});
    if (!network) {
      fmt::print(stderr, "{}\n", network.error().message);
      return {};
    }
    made = std::move(*network);
  }
  dqn::TrainingOptions of;
  of.seed = seed;
  of.budget = budget;
  of.limit = budget - budget / 32;
  dqn::Training* made_training = nullptr;
  if (setting(settings, "log", 0) > 0) {
    of.seen = [&](const QLearningRecord& record, std::int32_t) {
      const QLearningEpisode& e = record.episodes.back();
      if (setting(settings, "log", 0) > 1 && e.feasible) {
        const auto timed = [&](const Strategy& s, Nanos lead) {
          EvaluateOptions o;
          o.load_limit = budget;
          o.lead = lead;
          const auto found = lowering.evaluator().evaluate(s, o);
          const double u = double(unlimited_time(lowering.program(), lowering.machine(), environment.algorithms()).count());
          return found.feasible ? double(found.iteration_time.count()) / u - 1 : -1;
        };
        const Strategy plain = environment.strategy();
        const Strategy hinted = made_training->hinted();
        const Nanos unit = environment.unlimited_time() / 50;
        fmt::print("    sim {:.4f} leads: {:.4f} {:.4f} {:.4f} {:.4f} hinted {:.4f} {:.4f} {:.4f}\n",
                   -e.episode_return, timed(plain, Nanos::max()), timed(plain, unit * 4), timed(plain, unit), timed(plain, Nanos{0}),
                   timed(hinted, Nanos::max()), timed(hinted, unit * 4), timed(hinted, Nanos{0}));
      }
      fmt::print("    {:3} {:6} return {:8.4f} overhead {:8.4f} best {:8.4f} loss {:.6f} {}\n",
                 record.episodes.size(), e.steps, e.episode_return, e.overhead, e.best, e.loss,
                 e.feasible ? "" : "infeasible");
      std::fflush(stdout);
    };
  }
  dqn::Training training(lowering, environment, made.get(), learning, of);
  made_training = &training;
  training.agent().options.scale = setting(settings, "scale", 1);
  training.agent().options.steps = int(setting(settings, "steps", 1));
  training.find_limit();
  training.run();
  Trained result;
  const auto& episodes = training.record().episodes;
  for (const QLearningEpisode& e : episodes) result.feasible += e.feasible ? 1 : 0;
  result.feasible /= static_cast<double>(std::max<std::size_t>(episodes.size(), 1));
  result.best = episodes.back().best;
  result.last = episodes.back().feasible ? episodes.back().overhead : -1;
  result.steps = training.steps();
  result.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  return result;
}

void print(const std::string& what, const Trained& t) {
  fmt::print("  {:10} best {:8.2f} %  last {:8.2f} %  feasible {:3.0f} %  {:6} steps {:7.1f} s\n",
             what, 100 * t.best, 100 * t.last, 100 * t.feasible, t.steps, t.seconds);
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  const auto argument = [&](int i, const char* usual) {
    return std::string(argc > i ? argv[i] : usual);
  };
  const auto machine = find_machine("gtx1080ti");
  QLearning learning;
  learning.episodes = std::atoi(argument(3, "40").c_str());
  const int seeds = std::atoi(argument(4, "5").c_str());
  const int batch = std::atoi(argument(5, "100").c_str());
  Settings settings;
  std::string only;
  for (const std::string& part : split(argument(6, ""))) {
    const auto equals = part.find('=');
    if (part.substr(0, equals) == "only") only = part.substr(equals + 1);
    settings[part.substr(0, equals)] = std::atof(part.substr(equals + 1).c_str());
  }
  learning.learning_rate = setting(settings, "rate", learning.learning_rate);
  learning.discount = setting(settings, "discount", learning.discount);
  learning.hops = static_cast<std::int32_t>(setting(settings, "hops", learning.hops));
  learning.width = static_cast<std::int32_t>(setting(settings, "width", learning.width));
  learning.decisions_a_step =
      static_cast<std::int32_t>(setting(settings, "every", learning.decisions_a_step));
  learning.batch = static_cast<std::int32_t>(setting(settings, "batch", learning.batch));
  for (const std::string& model : split(argument(1, "resnet18-cifar,vgg16,unet"))) {
    const auto program = network(model, batch, *machine);
    if (!program) {
      fmt::print(stderr, "{}\n", program.error().message);
      return 2;
    }
    Lowering lowering(*program, *machine);
    const Bytes peak = load_profile(*program, lowering.index(), machine->alignment(),
                                    least_workspace_algorithms(*program))
                           .peak;
    for (const std::string& percent : split(argument(2, "50"))) {
      const auto budget = static_cast<Bytes>(std::atof(percent.c_str()) / 100 * double(peak));
      fmt::print("{} at {} %\n", model, percent);
      for (int seed = 1; seed <= seeds; ++seed) {
        const auto one = [&](const std::string& what, QLearning with) {
          if (!only.empty() && only != what) return;
          print(what, train(lowering, budget, with, static_cast<std::uint64_t>(seed), settings));
        };
        QLearning uniform = learning;
        uniform.uniform = true;
        QLearning still = learning;
        still.learning_rate = 0;
        one("uniform", uniform);
        one("rate0", still);
        one("learned", learning);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace tidepool

int main(int argc, char** argv) { return tidepool::run(argc, argv); }
