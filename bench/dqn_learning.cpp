// Whether the Q-network planner learns: best plan of training beside that of uniformly random
// actions and that of a learning rate of 0, with equal episodes and seeds; what the kept network
// plays beside the best; no addresses. A table at the end.
//   bench_dqn_learning [MODELS [PERCENTS [EPISODES [SEEDS [BATCH [SETTINGS [FROM]]]]]]]
// MODELS such as vgg16,resnet18, or "all" workloads of `reproduce dqn`; PERCENTS of the peak load,
// such as 50,40, or each model's "own". SETTINGS such as rate=0.003,reach=0,every=8,batch=32,
// discount=0.99,hops=4,width=64,remove=0,first=1 (seed),only=learned,log=1.
// FROM: a model; a network that learned on it goes on with each of MODELS ("tuned"), and "reached"
// is the episode in which either got as far as the one that began anew has got in the end.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

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

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, by);) parts.push_back(part);
  return parts;
}

/// The workloads of the paper's evaluation, each with budgets in which learning is measured.
struct Workload {
  const char* model;
  const char* shares;  ///< percents of the peak load
};
constexpr std::array<Workload, 8> kWorkloads{{{"resnet18-cifar", "40"},
                                              {"resnet34-cifar", "40"},
                                              {"vgg16", "35"},
                                              {"vgg19", "35"},
                                              {"unet", "40"},
                                              {"char-lstm", "50"},
                                              {"kmeans", "40"},
                                              {"resnet62-sd", "40"}}};

std::string all_models() {
  std::string all;
  for (const Workload& w : kWorkloads) all += fmt::format("{}{}", all.empty() ? "" : ",", w.model);
  return all;
}

std::string own_shares(const std::string& model) {
  const auto* const found = std::ranges::find(kWorkloads, model, &Workload::model);
  return found == kWorkloads.end() ? "50" : found->shares;
}

Result<Program> network(const std::string& model, std::int64_t batch, const Machine& machine) {
  const auto graph = nn::build_model(model);
  if (!graph) return fail(graph.error());
  nn::TrainingOptions options;
  options.batch = model == "kmeans" ? 60'000 : batch;
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
  std::optional<double> greedy;  ///< of the network that is kept
  double feasible = 0;           ///< part of the episodes
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
  result.greedy = result.record.greedy;
  result.steps = training.steps();
  result.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  return result;
}

/// One workload in one budget: what the arms found, by seed.
struct Line {
  std::string what;
  std::map<std::string, std::vector<Trained>> arms;
  std::vector<std::pair<std::size_t, std::size_t>> reached;  ///< anew, tuned; 0: not at all
};

void print(const std::string& what, const Trained& t) {
  fmt::print("  {:10} best {}  greedy {}  feasible {:3.0f} %  {:6} steps {:7.1f} s\n", what,
             percent(t.best), percent(t.greedy), 100 * t.feasible, t.steps, t.seconds);
  std::fflush(stdout);
}

/// Overheads below it are the same: rounding of nanoseconds.
constexpr double kSame = 1e-6;

/// No plan: above all.
double best_of(const Trained& t) { return t.best.value_or(1e9); }

std::string mean(const std::vector<Trained>& arm) {
  double sum = 0;
  for (const Trained& t : arm) {
    if (!t.best) return "-";
    sum += *t.best;
  }
  return fmt::format("{:.2f}", 100 * sum / static_cast<double>(arm.size()));
}

/// Of the means over the seeds, and by seed.
std::string compared(const std::vector<Trained>& ours, const std::vector<Trained>& theirs) {
  double difference = 0;
  int better = 0, same = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double over = best_of(ours[i]) - best_of(theirs[i]);
    difference += over;
    better += over < -kSame ? 1 : 0;
    same += over >= -kSame && over <= kSame ? 1 : 0;
  }
  const double least = kSame * static_cast<double>(ours.size());
  const char* verdict = difference < -least ? "beats" : difference <= least ? "tie" : "not";
  return fmt::format("{} ({} of {}{})", verdict, better, ours.size(),
                     same > 0 ? fmt::format(", {} the same", same) : "");
}

std::string greedy_near_best(const std::vector<Trained>& arm) {
  constexpr double kNear = 0.05;  // of the iteration's time
  int near = 0;
  for (const Trained& t : arm) {
    near += t.greedy && 1 + *t.greedy <= (1 + kNear) * (1 + *t.best) ? 1 : 0;
  }
  return fmt::format("{} of {}", near, arm.size());
}

void print_summary(const std::vector<Line>& lines) {
  fmt::print(
      "\nbest overhead in percent, means over the seeds; beats: a lower mean (seeds in which it is "
      "lower)\n\n"
      "| workload, budget | learned | random | rate 0 | learned against random | against rate 0 | "
      "greedy within 5 % of best |\n|---|---|---|---|---|---|---|\n");
  for (const Line& line : lines) {
    if (line.arms.size() < 3 || !line.reached.empty()) continue;  // of some arms, or of transfer
    const auto &learned = line.arms.at("learned"), &uniform = line.arms.at("uniform"),
               &still = line.arms.at("rate0");
    fmt::print("| {} | {} | {} | {} | {} | {} | {} |\n", line.what, mean(learned), mean(uniform),
               mean(still), compared(learned, uniform), compared(learned, still),
               greedy_near_best(learned));
  }
}

void print_transfer(const std::vector<Line>& lines, std::size_t episodes) {
  for (const Line& line : lines) {
    if (line.reached.empty()) continue;
    std::size_t fewer = 0, anew = 0, tuned = 0;
    for (const auto& [first, second] : line.reached) {
      fewer += second > 0 && second < first ? 1 : 0;
      anew += first;
      tuned += second > 0 ? second : episodes + 1;
    }
    const auto count = static_cast<double>(line.reached.size());
    fmt::print(
        "{}: the best overhead found anew is reached in episode {:.1f} anew and {:.1f} tuned on "
        "average (not at all: {}); fewer episodes in {} of {} seeds\n",
        line.what, static_cast<double>(anew) / count, static_cast<double>(tuned) / count,
        episodes + 1, fewer, line.reached.size());
  }
}

struct Arguments {
  QLearning learning;
  Settings settings;
  std::string only;  ///< of the arms; empty: all
  int first = 1;     ///< seed
  int seeds = 5;
};

/// All arms of a line, seed by seed.
Line compare(const std::string& what, Subject& subject, Subject* before, const std::string& share,
             const Arguments& a) {
  Line line{what, {}, {}};
  fmt::print("{}\n", what);
  for (int seed = a.first; seed < a.first + a.seeds; ++seed) {
    const auto one = [&](const std::string& arm, Subject& on, const QLearning& with) {
      if (!a.only.empty() && a.only != arm) return Trained{};
      Trained t =
          train(on.lowering, on.budget(share), with, static_cast<std::uint64_t>(seed), a.settings);
      print(arm, t);
      line.arms[arm].push_back(t);
      return t;
    };
    const Trained anew = one("learned", subject, a.learning);
    if (before == nullptr) {
      QLearning uniform = a.learning;
      uniform.uniform = true;
      QLearning still = a.learning;
      still.learning_rate = 0;
      still.decisions_a_step = std::numeric_limits<std::int32_t>::max();  // steps change nothing
      one("uniform", subject, uniform);
      one("rate0", subject, still);
      continue;
    }
    QLearning tuned = a.learning;
    tuned.network = one("before", *before, a.learning).record.network;
    const Trained then = one("tuned", subject, tuned);
    line.reached.emplace_back(reached(anew.record, anew.best), reached(then.record, anew.best));
    fmt::print("  reached {} in episode {} anew, {} tuned\n", percent(anew.best),
               line.reached.back().first, line.reached.back().second);
    std::fflush(stdout);
  }
  return line;
}

Arguments read_settings(const std::string& text) {
  Arguments a;
  for (const std::string& part : split(text, ',')) {
    const auto equals = part.find('=');
    if (part.substr(0, equals) == "only") a.only = part.substr(equals + 1);
    a.settings[part.substr(0, equals)] = std::atof(part.substr(equals + 1).c_str());
  }
  QLearning& l = a.learning;
  const auto number = [&](const char* name, auto& of) {
    of = static_cast<std::decay_t<decltype(of)>>(setting(a.settings, name, of));
  };
  number("rate", l.learning_rate);
  number("discount", l.discount);
  number("hops", l.hops);
  number("width", l.width);
  number("every", l.decisions_a_step);
  number("reach", l.reach);
  number("batch", l.batch);
  number("first", a.first);
  return a;
}

int run(int argc, char** argv) {
  const auto argument = [&](int i, const char* usual) {
    return std::string(argc > i ? argv[i] : usual);
  };
  const auto machine = find_machine("gtx1080ti");
  Arguments a = read_settings(argument(6, ""));
  a.learning.episodes = std::atoi(argument(3, "60").c_str());
  a.seeds = std::atoi(argument(4, "5").c_str());
  const int batch = std::atoi(argument(5, "100").c_str());
  const std::string from = argument(7, "");
  std::vector<Line> lines;
  for (const std::string& model :
       split(argument(1, "all") == "all" ? all_models() : argv[1], ',')) {
    const auto subject = Subject::make(model, batch, *machine);
    const auto before = from.empty() ? nullptr : Subject::make(from, batch, *machine);
    if (!subject || (!from.empty() && !before)) return 2;
    const std::string shares = argument(2, "own");
    for (const std::string& share : split(shares == "own" ? own_shares(model) : shares, ',')) {
      const std::string what = fmt::format("{} at {} %{}", model, share,
                                           from.empty() ? "" : fmt::format(", after {}", from));
      lines.push_back(compare(what, *subject, before.get(), share, a));
    }
  }
  print_summary(lines);
  print_transfer(lines, static_cast<std::size_t>(a.learning.episodes));
  return 0;
}

}  // namespace
}  // namespace tidepool

int main(int argc, char** argv) { return tidepool::run(argc, argv); }
