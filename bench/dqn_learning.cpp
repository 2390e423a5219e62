// Whether the Q-network planner learns: best plan of training beside that of uniformly random
// actions and that of a learning rate of 0, with equal episodes and seeds; the last, greedy episode
// beside the best; no addresses.
//   bench_dqn_learning [MODELS [PERCENTS [EPISODES [SEEDS [BATCH [SETTINGS [FROM]]]]]]]
// MODELS such as vgg16,resnet18; PERCENTS of the peak load, such as 50,40. SETTINGS such as
// rate=0.003,reach=0,every=8,batch=32,discount=0.99,hops=4,width=64,remove=0,only=learned,log=1.
// FROM: a model; a network that learned on it goes on with each of MODELS ("tuned"), and "reached"
// is the episode in which either got as far as the one that began anew has got in the end.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
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

/// A network's program on the machine.
struct Subject {
  Subject(Program made, const Machine& machine)
      : program(std::move(made)), lowering(program, machine) {}

  /// Null where there is no such network, which it says.
  static std::unique_ptr<Subject> make(const std::string& model, std::int64_t batch,
                                       const Machine& machine) {
    auto program = network(model, batch, machine);
    if (program) return std::make_unique<Subject>(std::move(*program), machine);
    fmt::print(stderr, "{}\n", program.error().message);
    return nullptr;
  }

  /// Of the peak load.
  [[nodiscard]] Bytes budget(const std::string& percent) {
    const LoadProfile profile =
        load_profile(program, lowering.index(), lowering.machine().alignment(),
                     least_workspace_algorithms(program));
    return static_cast<Bytes>(std::atof(percent.c_str()) / 100 * static_cast<double>(profile.peak));
  }

  Program program;
  Lowering lowering;
};

double setting(const Settings& settings, const std::string& name, double usual) {
  const auto found = settings.find(name);
  return found == settings.end() ? usual : found->second;
}

std::string percent(std::optional<double> overhead) {
  return overhead ? fmt::format("{:8.2f} %", 100 * *overhead) : fmt::format("{:>10}", "-");
}

struct Trained {
  std::optional<double> best;
  std::optional<double> last;
  double feasible = 0;  ///< part of the episodes
  std::int64_t steps = 0;
  double seconds = 0;
  QLearningRecord record;
};

/// The first episode with a plan as good as that; 0: none.
std::size_t reached(const QLearningRecord& record, std::optional<double> best) {
  for (std::size_t i = 0; best && i < record.episodes.size(); ++i) {
    const std::optional<double> now = record.episodes[i].best;
    if (now && *now <= *best + 1e-9) return i + 1;
  }
  return 0;
}

Trained train(Lowering& lowering, Bytes budget, QLearning learning, std::uint64_t seed,
              const Settings& settings) {
  const auto begun = Clock::now();
  dqn::EnvironmentOptions options;
  options.remove = setting(settings, "remove", 1) > 0;
  const auto algorithms = least_workspace_algorithms(lowering.program());
  options.alongside = setting(settings, "alongside", 0) > 0;
  if (setting(settings, "settle", 1) > 0) {
    options.settle = dqn::evaluated_overhead(lowering, budget, algorithms);
  }
  dqn::Environment environment(lowering, algorithms, budget - budget / 4, options);
  std::unique_ptr<dqn::QNetwork> made;
  if (!learning.uniform) {
    auto network = dqn::make_torch_network(
        {learning.width, learning.hops, learning.learning_rate, learning.discount, seed});
    if (!network) {
      fmt::print(stderr, "{}\n", network.error().message);
      return {};
    }
    made = std::move(*network);
    if (!learning.network.empty() && !made->load(learning.network)) return {};
  }
  dqn::TrainingOptions of;
  of.seed = seed;
  of.budget = budget;
  of.limit = budget - budget / 32;
  if (setting(settings, "log", 0) > 0) {
    of.seen = [&](const QLearningRecord& record, std::int32_t) {
      const QLearningEpisode& e = record.episodes.back();
      fmt::print("    {:3} {:6} return {:8.4f} overhead {} best {} loss {:.6f}\n",
                 record.episodes.size(), e.steps, e.episode_return, percent(e.overhead),
                 percent(e.best), e.loss);
      std::fflush(stdout);
    };
  }
  dqn::Training training(lowering, environment, made.get(), learning, of);
  training.prepare();
  training.run();
  Trained result;
  result.record = training.record();
  if (made) result.record.network = made->save();
  const auto& episodes = result.record.episodes;
  if (episodes.empty()) return result;
  for (const QLearningEpisode& e : episodes) result.feasible += e.overhead ? 1 : 0;
  result.feasible /= static_cast<double>(std::max<std::size_t>(episodes.size(), 1));
  result.best = episodes.back().best;
  result.last = episodes.back().overhead;
  result.steps = training.steps();
  result.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  return result;
}

void print(const std::string& what, const Trained& t) {
  fmt::print("  {:10} best {}  last {}  feasible {:3.0f} %  {:6} steps {:7.1f} s\n", what,
             percent(t.best), percent(t.last), 100 * t.feasible, t.steps, t.seconds);
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  const auto argument = [&](int i, const char* usual) {
    return std::string(argc > i ? argv[i] : usual);
  };
  const auto machine = find_machine("gtx1080ti");
  QLearning learning;
  learning.episodes = std::atoi(argument(3, "150").c_str());
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
  learning.reach = static_cast<std::int32_t>(setting(settings, "reach", learning.reach));
  learning.batch = static_cast<std::int32_t>(setting(settings, "batch", learning.batch));
  const std::string from = argument(7, "");
  for (const std::string& model :
       split(argument(1, "resnet18-cifar,resnet34-cifar,vgg11,vgg16,unet"))) {
    const auto subject = Subject::make(model, batch, *machine);
    const auto before = from.empty() ? nullptr : Subject::make(from, batch, *machine);
    if (!subject || (!from.empty() && !before)) return 2;
    for (const std::string& share : split(argument(2, "50"))) {
      fmt::print("{} at {} %\n", model, share);
      for (int seed = 1; seed <= seeds; ++seed) {
        const auto one = [&](const std::string& what, Subject& on, const QLearning& with) {
          if (!only.empty() && only != what) return Trained{};
          Trained t = train(on.lowering, on.budget(share), with, static_cast<std::uint64_t>(seed),
                            settings);
          print(what, t);
          return t;
        };
        QLearning uniform = learning;
        uniform.uniform = true;
        QLearning still = learning;
        still.learning_rate = 0;
        if (!before) one("uniform", *subject, uniform);
        if (!before) one("rate0", *subject, still);
        const Trained anew = one("learned", *subject, learning);
        if (!before) continue;
        QLearning tuned = learning;
        tuned.network = one(from, *before, learning).record.network;
        const Trained then = one("tuned", *subject, tuned);
        fmt::print("  reached {} in episode {} anew, {} tuned\n", percent(anew.best),
                   reached(anew.record, anew.best), reached(then.record, anew.best));
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace tidepool

int main(int argc, char** argv) { return tidepool::run(argc, argv); }
