#include "planners/published/home/particle_swarm.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/parallel.h"
#include "base/random.h"

namespace tidepool {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

using Position = std::vector<std::uint8_t>;

struct Particle {
  Position at;
  std::optional<std::int64_t> cost;  ///< of that, where it is known
  Position best;                     ///< its own
  std::int64_t best_cost = kNoLimit;
  bool moved = true;             ///< in the last iteration
  std::int64_t evaluations = 0;  ///< since the last iteration
};

class Swarm {
 public:
  Swarm(std::span<const std::vector<std::uint8_t>> choices, const MakeObjective& make,
        const SwarmOptions& options)
      : options_(options), pool_(std::max<std::size_t>(options.threads, 1)) {
    for (std::size_t t = 0; t < pool_.threads(); ++t) objectives_.push_back(make());
    particles_.resize(static_cast<std::size_t>(std::max(options.particles, 1)));
    for (std::size_t i = 0; i < particles_.size(); ++i) {
      Particle& particle = particles_[i];
      if (i < options.first.size()) {
        particle.at = options.first[i];
        continue;
      }
      Random random(hash_combine(options.seed, i));
      for (const auto& of : choices) particle.at.push_back(of[random.below(of.size())]);
    }
  }

  SwarmResult run() {
    result_.position = particles_.front().at;
    result_.cost = kNoLimit;
    std::int32_t without_better = 0;
    for (;;) {
      each_particle([](Particle& particle, SwarmObjective& objective) {
        if (particle.cost) return;
        particle.cost = objective.cost(particle.at, kNoLimit);
        ++particle.evaluations;
      });
      const bool better = look();
      if (options_.stop.requested()) break;
      without_better = better ? 0 : without_better + 1;
      ++result_.iterations;
      result_.in_finished = result_.evaluations;
      if (options_.iterations > 0 && result_.iterations >= options_.iterations) break;
      const bool still = std::ranges::none_of(particles_, &Particle::moved);
      if (still || (options_.iterations == 0 && without_better >= options_.patience)) {
        result_.converged = true;
        break;
      }
      if (options_.evaluations > 0 && result_.evaluations >= options_.evaluations) break;
      each_particle(
          [this](Particle& particle, SwarmObjective& objective) { move(particle, objective); });
    }
    count_skipped();
    return std::move(result_);
  }

 private:
  /// On all threads, each with an objective of its own. Ends early when asked to stop.
  template <class Body>
  void each_particle(Body&& body) {
    std::atomic<std::size_t> next{0};
    pool_.each(pool_.threads(), [&](std::size_t thread) {
      for (std::size_t i = next++; i < particles_.size(); i = next++) {
        if (options_.stop.requested()) return;
        body(particles_[i], *objectives_[thread]);
      }
    });
  }

  /// What the particles have come to. True when one is better than all before.
  bool look() {
    SwarmIteration now;
    now.best = kNoLimit;
    const Particle* best = nullptr;
    double sum = 0;
    for (Particle& particle : particles_) {
      result_.evaluations += std::exchange(particle.evaluations, 0);
      if (!particle.cost) continue;  // stopped
      const std::int64_t cost = *particle.cost;
      if (cost < particle.best_cost || particle.best.empty()) {
        particle.best = particle.at;
        particle.best_cost = cost;
      }
      if (best == nullptr || cost < now.best) {
        best = &particle;
        now.best = cost;
      }
      if (cost >= options_.infeasible) continue;
      now.worst = std::max(now.worst, cost);
      sum += static_cast<double>(cost);
      ++now.feasible;
    }
    if (best == nullptr) return false;
    if (now.feasible > 0) now.average = sum / now.feasible;
    result_.curve.push_back(now);
    if (options_.seen) options_.seen(now);
    last_best_ = best->at;
    if (now.best >= result_.cost) return false;
    result_.position = best->at;
    result_.cost = now.best;
    return true;
  }

  /// Algorithm 3 for one particle.
  void move(Particle& particle, SwarmObjective& objective) const {
    particle.moved = false;
    for (std::size_t d = 0; d < last_best_.size(); ++d) {
      const std::uint8_t before = particle.at[d];
      if (last_best_[d] == particle.best[d]) {
        particle.at[d] = last_best_[d];
        if (particle.at[d] != before) particle.cost.reset();
      } else {
        choose(particle, d, objective);
      }
      particle.moved = particle.moved || particle.at[d] != before;
    }
  }

  void choose(Particle& particle, std::size_t d, SwarmObjective& objective) const {
    const std::uint8_t swarms = last_best_[d];
    const std::uint8_t own = particle.best[d];
    const auto cost_of = [&](std::uint8_t choice, std::int64_t give_up_above) {
      particle.at[d] = choice;
      ++particle.evaluations;
      return objective.cost(particle.at, give_up_above);
    };
    if (particle.cost && particle.at[d] == swarms) {
      // A tie goes to its own.
      const std::int64_t with_swarms = *particle.cost;
      const std::int64_t with_own = cost_of(own, with_swarms);
      if (with_own <= with_swarms) {
        particle.cost = with_own;
      } else {
        particle.at[d] = swarms;
      }
      return;
    }
    const bool stands_there = particle.cost && particle.at[d] == own;
    if (!stands_there) particle.cost = cost_of(own, kNoLimit);
    const std::int64_t with_own = *particle.cost;
    const std::int64_t with_swarms = cost_of(swarms, with_own - 1);
    if (with_swarms < with_own) {
      particle.cost = with_swarms;
    } else {
      particle.at[d] = own;
    }
  }

  /// Each iteration evaluates every particle, and twice in each dimension before the next one. The
  /// published algorithm goes on when nothing moves any more.
  void count_skipped() {
    const bool to_the_end = result_.converged && options_.iterations > 0;
    const std::int64_t iterations = to_the_end ? options_.iterations : result_.iterations;
    const auto dimensions = static_cast<std::int64_t>(last_best_.size());
    const auto particles = static_cast<std::int64_t>(particles_.size());
    const std::int64_t published =
        particles * (iterations + std::max<std::int64_t>(iterations - 1, 0) * 2 * dimensions);
    result_.skipped = published - result_.in_finished;
  }

  const SwarmOptions& options_;
  ThreadPool pool_;
  std::vector<std::unique_ptr<SwarmObjective>> objectives_;
  std::vector<Particle> particles_;
  Position last_best_;
  SwarmResult result_;
};

}  // namespace

SwarmResult run_particle_swarm(std::span<const std::vector<std::uint8_t>> choices,
                               const MakeObjective& make, const SwarmOptions& options) {
  return Swarm(choices, make, options).run();
}

}  // namespace tidepool
