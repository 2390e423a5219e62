#include "planners/published/home/particle_swarm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "base/random.h"

namespace tidepool {
namespace {

/// Of the evaluations that the published algorithm makes; 0 where no iteration was finished.
double skipped_share(const SwarmResult& found) {
  const auto all = static_cast<double>(found.in_finished + found.skipped);
  return all > 0 ? static_cast<double>(found.skipped) / all : 0;
}

using Choice = std::vector<std::uint8_t>;
using Choices = std::vector<std::vector<std::uint8_t>>;

/// Costs of single choices and of pairs of neighbours, drawn; few different ones, so that there are
/// ties.
class PairCosts : public SwarmObjective {
 public:
  PairCosts(std::uint64_t seed, std::atomic<std::int64_t>* evaluations)
      : seed_(seed), evaluations_(evaluations) {}
  std::int64_t cost(std::span<const std::uint8_t> position, std::int64_t give_up_above) override {
    if (evaluations_ != nullptr) ++*evaluations_;
    const std::int64_t exact = exact_cost(position);
    return exact > give_up_above ? std::numeric_limits<std::int64_t>::max() : exact;
  }
  [[nodiscard]] std::int64_t exact_cost(std::span<const std::uint8_t> position) const {
    std::int64_t sum = 0;
    for (std::size_t d = 0; d + 1 < position.size(); ++d) {
      const std::uint64_t key = d * 16 + position[d] * 4U + position[d + 1];
      sum += static_cast<std::int64_t>(hash_combine(seed_, key) % 7);
    }
    return sum;
  }

 private:
  std::uint64_t seed_;
  std::atomic<std::int64_t>* evaluations_;
};

Choices ternary(std::size_t dimensions) {
  return Choices(dimensions, std::vector<std::uint8_t>{0, 1, 2});
}

/// Algorithms 1 and 3 as printed: both positions are evaluated in every dimension.
class PlainSwarm {
 public:
  PlainSwarm(const PairCosts& costs, std::vector<Choice> particles)
      : costs_(costs), particles_(std::move(particles)) {
    best_ = particles_;
  }
  /// The best ever seen after so many iterations.
  std::pair<Choice, std::int64_t> run(int iterations) {
    Choice best;
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
    for (int i = 0; i < iterations; ++i) {
      Choice last_best = particles_.front();
      for (std::size_t p = 0; p < particles_.size(); ++p) {
        const std::int64_t cost = costs_.exact_cost(particles_[p]);
        if (cost < costs_.exact_cost(last_best)) last_best = particles_[p];
        if (cost < costs_.exact_cost(best_[p])) best_[p] = particles_[p];
        if (cost < lowest) {
          best = particles_[p];
          lowest = cost;
        }
      }
      for (std::size_t p = 0; p < particles_.size(); ++p)
        update(particles_[p], last_best, best_[p]);
    }
    return {best, lowest};
  }

 private:
  void update(Choice& particle, const Choice& p1, const Choice& p2) {
    for (std::size_t j = 0; j < particle.size(); ++j) {
      particle[j] = p1[j];
      const std::int64_t o1 = costs_.exact_cost(particle);
      particle[j] = p2[j];
      const std::int64_t o2 = costs_.exact_cost(particle);
      particle[j] = o1 < o2 ? p1[j] : p2[j];
    }
  }
  const PairCosts& costs_;
  std::vector<Choice> particles_;
  std::vector<Choice> best_;
};

std::vector<Choice> random_particles(std::uint64_t seed, std::size_t count,
                                     std::size_t dimensions) {
  Random random(seed);
  std::vector<Choice> particles(count);
  for (Choice& particle : particles) {
    for (std::size_t d = 0; d < dimensions; ++d) {
      particle.push_back(static_cast<std::uint8_t>(random.below(3)));
    }
  }
  return particles;
}

SwarmResult search(std::uint64_t costs, std::size_t dimensions, const SwarmOptions& options,
                   std::atomic<std::int64_t>* evaluations = nullptr) {
  return run_particle_swarm(
      ternary(dimensions), [&] { return std::make_unique<PairCosts>(costs, evaluations); },
      options);
}

TEST(ParticleSwarm, DoesWhatThePublishedAlgorithmDoesWithFewerEvaluations) {
  constexpr std::size_t kDimensions = 12;
  constexpr std::int32_t kParticles = 9;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const PairCosts costs(seed, nullptr);
    const auto particles = random_particles(seed, kParticles, kDimensions);
    for (const int iterations : {1, 2, 3, 5, 20}) {
      SwarmOptions options;
      options.particles = kParticles;
      options.iterations = iterations;
      options.first = particles;
      std::atomic<std::int64_t> evaluations{0};
      const SwarmResult found = search(seed, kDimensions, options, &evaluations);
      const auto [best, cost] = PlainSwarm(costs, particles).run(iterations);
      EXPECT_EQ(found.position, best);
      EXPECT_EQ(found.cost, cost);
      EXPECT_EQ(found.evaluations, evaluations);
      EXPECT_EQ(found.evaluations + found.skipped,
                kParticles * (iterations + (iterations - 1) * 2 * std::int64_t{kDimensions}));
      EXPECT_GT(skipped_share(found), iterations > 1 ? 0.3 : -1);
    }
  }
}

TEST(ParticleSwarm, ComesToTheSameOnAnyNumberOfThreads) {
  SwarmOptions options;
  options.particles = 40;
  options.seed = 7;
  const SwarmResult alone = search(3, 30, options);
  options.threads = 4;
  const SwarmResult together = search(3, 30, options);
  EXPECT_EQ(alone.position, together.position);
  EXPECT_EQ(alone.cost, together.cost);
  EXPECT_EQ(alone.iterations, together.iterations);
  EXPECT_EQ(alone.evaluations, together.evaluations);
  ASSERT_EQ(alone.curve.size(), together.curve.size());
  for (std::size_t i = 0; i < alone.curve.size(); ++i) {
    EXPECT_EQ(alone.curve[i].best, together.curve[i].best);
    EXPECT_EQ(alone.curve[i].worst, together.curve[i].worst);
    EXPECT_EQ(alone.curve[i].average, together.curve[i].average);
  }
}

TEST(ParticleSwarm, TheSeedDecides) {
  SwarmOptions options;
  options.particles = 5;
  options.iterations = 1;
  const SwarmResult first = search(3, 30, options);
  EXPECT_EQ(first.position, search(3, 30, options).position);
  options.seed = 2;
  EXPECT_NE(first.position, search(3, 30, options).position);
}

TEST(ParticleSwarm, EndsWhenItHasConverged) {
  SwarmOptions options;
  options.particles = 50;
  const SwarmResult found = search(5, 40, options);
  EXPECT_TRUE(found.converged);
  EXPECT_GT(found.iterations, 2);
  ASSERT_EQ(found.curve.size(), static_cast<std::size_t>(found.iterations));
  EXPECT_LT(found.cost, found.curve.front().best);
  EXPECT_LE(found.curve.back().average, found.curve.front().average);
}

TEST(ParticleSwarm, TheCurveSaysWorstAverageAndBestOfTheSolutions) {
  SwarmOptions options;
  options.first = {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}};
  options.particles = 3;
  options.iterations = 1;
  const PairCosts costs(11, nullptr);
  std::vector<std::int64_t> of;
  for (const Choice& position : options.first) of.push_back(costs.exact_cost(position));
  const auto [least, most] = std::minmax_element(of.begin(), of.end());
  const SwarmResult found = search(11, 3, options);
  ASSERT_EQ(found.curve.size(), 1U);
  EXPECT_EQ(found.curve[0].best, *least);
  EXPECT_EQ(found.curve[0].worst, *most);
  EXPECT_DOUBLE_EQ(found.curve[0].average, static_cast<double>(of[0] + of[1] + of[2]) / 3);
  EXPECT_EQ(found.curve[0].feasible, 3);
  options.infeasible = *most;
  const SwarmResult some = search(11, 3, options);
  EXPECT_LT(some.curve[0].feasible, 3);
}

TEST(ParticleSwarm, KeepsToTheChoicesOfEachDimension) {
  const Choices choices{{0}, {0, 2}, {1}, {0, 1, 2}};
  SwarmOptions options;
  options.particles = 8;
  const SwarmResult found = run_particle_swarm(
      choices, [] { return std::make_unique<PairCosts>(1, nullptr); }, options);
  for (std::size_t d = 0; d < choices.size(); ++d) {
    EXPECT_NE(std::find(choices[d].begin(), choices[d].end(), found.position[d]), choices[d].end());
  }
}

/// Each particle asks once before it is evaluated and once before it moves, the swarm at the end of
/// an iteration: this ends in the moves after the second one.
TEST(ParticleSwarm, WhatAnIterationThatIsCutOffEvaluatesIsNotInTheShareSkipped) {
  constexpr std::int64_t kParticles = 20;
  constexpr std::int64_t kDimensions = 40;
  SwarmOptions options;
  options.particles = kParticles;
  std::atomic<int> asked{0};
  options.stop = [&] { return ++asked > 3 * kParticles + 2 + kParticles / 2; };
  const SwarmResult found = search(5, kDimensions, options);
  ASSERT_EQ(found.iterations, 2);
  EXPECT_LT(found.in_finished, found.evaluations);
  EXPECT_EQ(found.in_finished + found.skipped, kParticles * (2 + 2 * kDimensions));
  SwarmOptions whole;
  whole.particles = kParticles;
  whole.iterations = 2;
  EXPECT_EQ(skipped_share(found), skipped_share(search(5, kDimensions, whole)));
}

TEST(ParticleSwarm, EndsWithItsEvaluationsAndWhenAskedToStop) {
  SwarmOptions options;
  options.particles = 20;
  options.evaluations = 1;
  EXPECT_EQ(search(5, 40, options).iterations, 1);
  options.evaluations = 0;
  std::atomic<int> asked{0};
  options.stop = [&] { return ++asked > 30; };
  const SwarmResult stopped = search(5, 40, options);
  EXPECT_FALSE(stopped.converged);
  EXPECT_EQ(stopped.position.size(), 40U);
}

}  // namespace
}  // namespace tidepool
