// One unlimited VGG16 iteration at batch 100 beside the sum of oneDNN's own primitive times on the
// same threads, interleaved. Bound: iteration / sum <= 1.15.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <map>
#include <thread>

#include "base/median.h"
#include "device/cpu/cpu_device.h"
#include "nn/data/synthetic.h"
#include "nn/models/model.h"
#include "nn/ops/op_desc.h"
#include "nn/training_runner.h"
#include "planners/none.h"
#include "planning/make_plan.h"
#include "runtime/executor.h"

namespace {

using namespace tidepool;  // NOLINT(google-build-using-namespace)
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;

/// Ops whose kernel is one oneDNN primitive.
bool is_primitive(const nn::OpDesc& desc) {
  return std::visit(
      []<class Op>(const Op& /*op*/) {
        return std::is_base_of_v<nn::Window, Op> ||
               std::is_base_of_v<nn::BatchNormAttributes, Op> || std::is_same_v<Op, nn::Reorder> ||
               std::is_same_v<Op, nn::LinearForward> ||
               std::is_same_v<Op, nn::LinearBackwardData> ||
               std::is_same_v<Op, nn::LinearBackwardWeights>;
      },
      desc.op);
}

/// Every primitive of the program once, by itself, on buffers of its own.
class Primitives {
 public:
  Primitives(const nn::TrainingProgram& program, const nn::KernelList& kernels)
      : program_(program) {
    for (const Tensor& t : program.program.tensors) {
      buffers_.push_back(allocate(t.bytes));
    }
    for (const nn::OpDesc& desc : program.ops) {
      kernels_.push_back(is_primitive(desc) ? kernels.make(desc) : nullptr);
    }
  }
  ~Primitives() {
    for (std::byte* b : buffers_) std::free(b);
  }
  Primitives(const Primitives&) = delete;
  Primitives& operator=(const Primitives&) = delete;

  void run(std::map<std::string, Nanos>* by_kind, Nanos& total) {
    total = Nanos{0};
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      if (!kernels_[i]) continue;
      const Op& op = program_.program.ops[i];
      std::vector<std::byte*> pointers;
      for (const Access& a : op.accesses)
        pointers.push_back(buffers_[static_cast<std::size_t>(a.tensor)]);
      const int algorithm = least_workspace_algorithm(op);
      std::byte* workspace =
          allocate(op.algorithms[static_cast<std::size_t>(algorithm)].workspace + 64);
      const auto start = Clock::now();
      kernels_[i]->run(algorithm, pointers, workspace, nullptr);
      const Nanos took = Clock::now() - start;
      std::free(workspace);
      total += took;
      if (by_kind != nullptr) (*by_kind)[program_.ops[i].kind_name()] += took;
    }
  }

 private:
  static std::byte* allocate(Bytes bytes) {
    auto* memory = static_cast<std::byte*>(
        std::aligned_alloc(64, static_cast<std::size_t>(align_up(bytes, 64))));
    std::fill_n(memory, bytes, std::byte{0});
    return memory;
  }
  const nn::TrainingProgram& program_;
  std::vector<std::byte*> buffers_;
  std::vector<std::unique_ptr<nn::Kernel>> kernels_;
};

}  // namespace

int main() {
  const int threads = default_compute_threads();
  const nn::KernelList& kernels = nn::cpu_kernels(threads);
  const auto graph = nn::build_model("vgg16");
  auto training = nn::build_training_program(*graph, {}, kernels);
  const nn::SyntheticDataset data(training->image, training->classes, 1000);
  auto runner = nn::TrainingRunner::create(*training, kernels, data, {});

  Machine machine;
  machine.set_alignment(64);
  machine.to_host() = machine.to_device() = LinkSpeed{1e9, Nanos{50'000}};
  FixedWorkload workload(training->program);
  const auto planned =
      make_plan(*make_none(), workload, machine, {std::numeric_limits<Bytes>::max() / 4, 0}, {});
  CpuDevice device({threads, {1e9, Nanos{50'000}}, {1e9, Nanos{50'000}}, {}});
  Executor executor(training->program, planned->lowered.plan, device, **runner);
  executor.enter();
  executor.run(1);

  Primitives primitives(*training, kernels);
  Nanos warm{};
  primitives.run(nullptr, warm);
  std::vector<Nanos> iterations;
  std::vector<Nanos> sums;
  std::map<std::string, Nanos> by_kind;
  for (int round = 0; round < kRounds; ++round) {
    iterations.push_back(executor.run(2).iteration_times.back());
    primitives.run(&by_kind, sums.emplace_back());
  }
  for (const auto& [kind, time] : by_kind) {
    fmt::print("{:24} {:8.2f} ms\n", kind, to_ms(time) / kRounds);
  }
  const double ratio =
      static_cast<double>(median(iterations).count()) / static_cast<double>(median(sums).count());
  fmt::print("VGG16, batch 100, {} thread(s), medians of {}\n", threads, kRounds);
  fmt::print("sum of oneDNN primitives   {:8.2f} ms\n", to_ms(median(sums)));
  fmt::print("one unlimited iteration    {:8.2f} ms\n", to_ms(median(iterations)));
  fmt::print("ratio                      {:8.3f}   (bound 1.15)\n", ratio);
  return ratio <= 1.15 ? 0 : 1;
}
