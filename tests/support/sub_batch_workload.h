// A workload with several sub-batches: the same small network, its iteration in more or fewer
// rounds.
#pragma once

#include <fmt/format.h>

#include <map>

#include "planners/workload.h"
#include "support/program_builder.h"

namespace tidepool::testing {

/// A batch of eight samples in rounds of 8, 4, 2 or 1. What a round holds and takes goes with its
/// samples, its workspaces too; each op also has an algorithm that is faster and needs more. Says
/// its layers and phases.
class SubBatchWorkload : public Workload {
 public:
  static constexpr std::int64_t kBatch = 8;
  static constexpr int kLayers = 4;

  [[nodiscard]] std::int64_t sub_batch() const override { return kBatch; }
  [[nodiscard]] std::vector<std::int64_t> sub_batches() const override { return {8, 4, 2, 1}; }

  Result<const Program*> program(std::int64_t sub_batch) override {
    if (sub_batch < 1 || kBatch % sub_batch != 0) {
      return fail(ErrorCode::usage, fmt::format("no rounds of {}", sub_batch));
    }
    ++asked_[sub_batch];
    auto& made = programs_[sub_batch];
    if (made.ops.empty()) made = write(sub_batch);
    return &made;
  }
  /// How often each program was asked for.
  [[nodiscard]] const std::map<std::int64_t, int>& asked() const { return asked_; }

 private:
  static Program write(std::int64_t samples) {
    using enum AccessMode;
    ProgramBuilder b("rounds");
    std::vector<TensorId> weights;
    std::vector<TensorId> sums;
    for (int i = 0; i < kLayers; ++i) {
      weights.push_back(b.tensor(fmt::format("w{}", i), 256, true));
      sums.push_back(b.tensor(fmt::format("g{}", i), 256));
    }
    std::int32_t round = 0;
    const auto add = [&](const std::string& name, std::vector<Access> accesses, std::int32_t layer,
                         Phase phase, Bytes workspace) {
      b.device(fmt::format("{}@{}", name, round), std::move(accesses), Nanos{400 * samples + 200},
               workspace * samples);
      Op& op = b.last();
      op.round = round;
      op.layer = layer;
      op.phase = phase;
      op.algorithms.push_back(
          {"fast", Nanos{200 * samples + 200}, (workspace + 512) * samples, true});
    };
    for (; round < kBatch / samples; ++round) write_round(b, samples, round, weights, sums, add);
    for (int i = 0; i < kLayers; ++i) {
      b.device(fmt::format("update{}", i), {{sums[i], read}, {weights[i], update}}, Nanos{100});
      b.last().round = kNone;
      b.last().layer = i;
      b.last().phase = Phase::update;
    }
    Program program = b.build();
    program.batch = kBatch;
    program.sub_batch = samples;
    for (int i = 0; i < kLayers; ++i) program.layers.push_back(fmt::format("layer{}", i));
    return program;
  }

  template <class Add>
  static void write_round(ProgramBuilder& b, std::int64_t samples, std::int32_t round,
                          const std::vector<TensorId>& weights, const std::vector<TensorId>& sums,
                          const Add& add) {
    using enum AccessMode;
    const auto tensor = [&](const std::string& name) {
      return b.tensor(fmt::format("{}@{}", name, round), 1024 * samples);
    };
    std::vector<TensorId> x{tensor("x0")};
    b.host(fmt::format("feed@{}", round), {{x[0], write}});
    b.last().round = round;
    for (int i = 0; i < kLayers; ++i) {
      x.push_back(tensor(fmt::format("x{}", i + 1)));
      add(fmt::format("forward{}", i), {{x[i], read}, {weights[i], read}, {x[i + 1], write}}, i,
          Phase::forward, 128);
    }
    TensorId gradient = x.back();
    for (int i = kLayers; i-- > 0;) {
      const auto first = round == 0 ? write : update;
      std::vector<Access> accesses{{gradient, read}, {x[i], read}, {sums[i], first}};
      if (i > 0) {
        const TensorId next = tensor(fmt::format("dx{}", i));
        accesses.push_back({weights[i], read});
        accesses.push_back({next, write});
        add(fmt::format("backward{}", i), std::move(accesses), i, Phase::backward, 256);
        gradient = next;
      } else {
        add(fmt::format("backward{}", i), std::move(accesses), i, Phase::backward, 256);
      }
    }
  }

  std::map<std::int64_t, Program> programs_;
  std::map<std::int64_t, int> asked_;
};

}  // namespace tidepool::testing
