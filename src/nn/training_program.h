// TrainingProgram: one iteration made from a graph: a training iteration (feed, forward, loss,
// backward, weight updates) or the evaluation of one batch (feed, forward, loss, count of correct
// answers). `program` is what planners see, `ops` and `tensors` what kernels see.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/program.h"
#include "nn/graph.h"
#include "nn/initialiser.h"
#include "nn/kernel.h"
#include "nn/training_options.h"

namespace tidepool::nn {

/// A weight or a running statistic: persistent, with a value before the first iteration.
struct Parameter {
  std::string name;  ///< of its tensor
  TensorId tensor = kNone;
  /// Optimizer state in the order of the update op, starts at zero; none when not learnable.
  std::vector<TensorId> state;
  Initialiser initialiser = Initialiser::zero;
  std::int64_t fan_in = 1;  ///< inputs summed per output, for he_normal
  bool learnable = true;
};

/// A persistent tensor that starts as samples: its rows are those at the places `first`, `first` +
/// 1 and so on of the first batch, which begins anew behind its end. The program feeds them no
/// more.
struct HeldSamples {
  TensorId tensor = kNone;
  std::size_t input = 0;  ///< index into TrainingProgram::inputs
  std::int64_t first = 0;
};

/// Data a program reads: what its feed op writes for each sample.
struct ProgramInput {
  std::string name;
  ValueType type;
  /// Of labels: their values are in [0, classes), or negative for what does not count. Of tokens:
  /// the size of the vocabulary. Of others 0.
  std::int64_t classes = 0;
};

enum class Purpose : std::uint8_t { training, evaluation };

/// Copied and destroyed in training_program.cpp: who only hands it on needs no OpDesc.
struct TrainingProgram {
  TrainingProgram();
  TrainingProgram(const TrainingProgram& other);
  TrainingProgram(TrainingProgram&& other) noexcept;
  TrainingProgram& operator=(const TrainingProgram& other);
  TrainingProgram& operator=(TrainingProgram&& other) noexcept;
  ~TrainingProgram();

  Purpose purpose = Purpose::training;
  Program program;
  std::vector<OpDesc> ops;          ///< one per op of `program`
  std::vector<TensorDesc> tensors;  ///< one per tensor of `program`
  std::vector<ProgramInput> inputs;
  std::vector<Parameter> parameters;
  /// Of training, by guard: the probability that an iteration runs its ops. See Note [Branches].
  std::vector<double> survival;
  std::vector<HeldSamples> held;  ///< of K-means: its points and first centroids
  std::string kernels;            ///< name of the kernel list its algorithms and layouts come from
  ImageShape image;               ///< of classifiers of images, as is the next
  std::int64_t classes = 0;
  std::int64_t answers = 1;  ///< labels of a sample that count: of tokens or pixels more than one

  [[nodiscard]] std::int64_t learnable_elements() const;
};

/// The first layer that takes statistics over the samples of a round, or null: where there is one,
/// smaller rounds change training.
const Layer* batch_statistics(const Graph& graph);

/// Smaller rounds change what is trained, or there are none: of K-means.
inline bool rounds_change_training(const Graph& graph) {
  return graph.clusters > 0 || batch_statistics(graph) != nullptr;
}

/// Algorithms carry the workspaces of `kernels` and no times.
/// An op that updates weights follows as soon as its gradient exists and the old weight has been
/// read for the last time. Of a graph of K-means: see nn/k_means.h.
Result<TrainingProgram> build_training_program(const Graph& graph, const TrainingOptions& options,
                                               const KernelList& kernels);

/// The forward pass only: batch norm with the running statistics, dropout passes its input on. Of
/// the options `batch` and `storage` matter. Weights and statistics are those of the training
/// program with the same kernels by name and layout; they are only read. The loss is the sum over
/// the samples; samples with a negative label count for nothing. Fails for a loss without labels.
Result<TrainingProgram> build_evaluation_program(const Graph& graph, const TrainingOptions& options,
                                                 const KernelList& kernels);

}  // namespace tidepool::nn
