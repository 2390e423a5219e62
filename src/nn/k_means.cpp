#include "nn/k_means.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nn/program_writer.h"

namespace tidepool::nn {
namespace {

Result<void> check_options(const Graph& graph, const TrainingOptions& options) {
  const auto refuse = [&](std::string_view what) {
    return fail(ErrorCode::usage, fmt::format("{}: {}", graph.name, what));
  };
  if (options.batch < 1) return refuse(fmt::format("a batch of {} has no points", options.batch));
  if (options.devices != 1) {
    return refuse("`devices` share gradients, and K-means has none: it runs on one");
  }
  if ((options.sub_batch != 0 && options.sub_batch != options.batch) ||
      options.sub_batch_statistics) {
    return refuse(
        "`sub_batch`: K-means has no rounds; its points lie in chunks that come and go one by one");
  }
  if (options.optimizer != Optimizer::sgd) {
    return refuse("K-means has no gradients for an optimizer");
  }
  if (options.storage != Storage::in_place) {
    return refuse("K-means has no activations that storage could keep apart");
  }
  return {};
}

/// The chunks and what they are added up in.
class KMeansProgram {
 public:
  KMeansProgram(const Graph& graph, const KernelList& kernels, TrainingProgram& out)
      : graph_(graph), out_(out), writer_(out, kernels) {}

  void write() {
    writer_.begin_round(0, 0);
    const std::int64_t width = graph_.image.elements(), points = out_.program.batch;
    centroids_ = writer_.tensor("centroids", {{graph_.clusters, width}}, TensorKind::weight, true);
    out_.parameters.push_back({"centroids", centroids_.tensor, {}});
    out_.held.push_back({centroids_.tensor, 0, 0});
    const std::int64_t count = std::min(points, kMostChunks);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t first = points * i / count;
      add_chunk(i, first, points * (i + 1) / count - first, width);
    }
    for (const Chunk& chunk : chunks_) assign(chunk);
    sums_ = writer_.tensor("sums", {{graph_.clusters, width}}, TensorKind::activation);
    counts_ =
        writer_.tensor("counts", {{graph_.clusters}, ElementType::i32}, TensorKind::activation);
    inertia_ = writer_.tensor("inertia", {{1}}, TensorKind::activation);
    for (const Chunk& chunk : chunks_) accumulate(chunk);
    {
      const ProgramWriter::Scope scope(writer_, chunks_.back().name, Phase::update);
      writer_.op("centroids.update", {KMeansUpdate{}}, {sums_, counts_, centroids_});
    }
    writer_.op(CollectLoss::name, {CollectLoss{}}, {inertia_});
  }
  [[nodiscard]] const std::optional<Error>& error() const { return writer_.error(); }

 private:
  struct Chunk {
    std::string name;
    Operand points, assignments;   ///< persistent
    Operand nearest, distances{};  ///< of this iteration
  };

  void add_chunk(std::int64_t index, std::int64_t first, std::int64_t size, std::int64_t width) {
    const TensorDesc rows{{size}, ElementType::i32};
    Chunk chunk{fmt::format("chunk{}", index), {}, {}, {}, {}};
    const auto name = [&](const char* what) { return fmt::format("{}.{}", chunk.name, what); };
    chunk.points = writer_.tensor(name("points"), {{size, width}}, TensorKind::input, true);
    out_.held.push_back({chunk.points.tensor, 0, first});
    chunk.assignments =
        writer_.tensor(name("assignments"), rows, TensorKind::optimizer_state, true);
    chunk.nearest = writer_.tensor(name("nearest"), rows, TensorKind::activation);
    chunk.distances = writer_.tensor(name("distances"), {{size}}, TensorKind::activation);
    chunks_.push_back(std::move(chunk));
  }
  void assign(const Chunk& chunk) {
    const ProgramWriter::Scope scope(writer_, chunk.name, Phase::forward);
    writer_.op(chunk.name + ".assign", {KMeansAssign{}},
               {chunk.points, centroids_, chunk.nearest, chunk.distances});
  }
  void accumulate(const Chunk& chunk) {
    const ProgramWriter::Scope scope(writer_, chunk.name, Phase::update);
    OpDesc desc{KMeansAccumulate{}};
    desc.in_place = &chunk != &chunks_.front();
    writer_.op(chunk.name + ".accumulate", desc,
               {chunk.points, chunk.nearest, chunk.distances, sums_, counts_, inertia_,
                chunk.assignments});
  }

  const Graph& graph_;
  TrainingProgram& out_;
  ProgramWriter writer_;
  std::vector<Chunk> chunks_;
  Operand centroids_, sums_, counts_, inertia_;
};

}  // namespace

Result<TrainingProgram> build_k_means_program(const Graph& graph, const TrainingOptions& options,
                                              const KernelList& kernels) {
  if (auto valid = check_options(graph, options); !valid) return fail(valid.error());
  TrainingProgram out;
  out.program.name = graph.name;
  out.program.batch = out.program.sub_batch = options.batch;
  out.kernels = kernels.name;
  out.image = graph.image;
  out.classes = graph.clusters;
  out.inputs.push_back({"images", {{graph.image.channels, graph.image.height, graph.image.width}}});
  KMeansProgram program(graph, kernels, out);
  program.write();
  if (program.error()) return fail(*program.error());
  limit_workspaces(out.program, options.workspace_limit);
  if (auto valid = validate(out.program); !valid) return fail(valid.error());
  return out;
}

}  // namespace tidepool::nn
