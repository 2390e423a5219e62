// What the constants of preset k40 come from (src/cost/machine.cpp): for the six networks of moDNN,
// by the compute model alone, without any plan,
//   algorithms   time with the algorithms of least workspace over time with the fastest (published
//                2.7 on average), and the largest workspace of those over the ideal memory (15 %)
//   sub-batch 1  time in rounds of one sample over time in one round, fastest algorithms (3.74)
//   images/s     at the batch of TensorFlow's benchmarks of May 2017 on one GPU of a K80
//   bench_calibrate_k40 [EFFICIENCY HALF_GFLOPS PRECOMP]   other constants than the preset's
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/at.h"
#include "cost/machine.h"
#include "ir/load_profile.h"
#include "nn/kernel.h"
#include "nn/models/model.h"
#include "nn/training_program.h"

namespace tidepool {
namespace {

struct Network {
  const char* model;
  std::int64_t batch;
};

constexpr Network kNetworks[] = {{"vgg16-imagenet", 256},  {"vgg19-imagenet", 256},
                                 {"vgg101-imagenet", 128}, {"resnet34", 256},
                                 {"resnet152", 256},       {"fcn32s", 128}};

Program program_of(const nn::Graph& graph, const Machine& machine, std::int64_t batch,
                   std::int64_t sub_batch) {
  nn::TrainingOptions options;
  options.batch = batch;
  options.sub_batch = sub_batch;
  options.sub_batch_statistics = true;
  options.momentum = 0;
  options.weight_decay = 0;
  auto training = nn::build_training_program(graph, options, nn::preset_kernels());
  if (!training) {
    fmt::print(stderr, "{}\n", training.error().message);
    std::exit(1);
  }
  apply_cost_model(machine, training->program);
  return std::move(training->program);
}

/// Seconds of each round, and of what runs once an iteration behind them.
std::vector<double> seconds_of_rounds(const Program& program,
                                      const std::vector<std::int32_t>& algorithms) {
  std::vector<double> seconds(static_cast<std::size_t>(program.rounds()) + 1, 0);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const std::size_t round = op.round == kNone ? seconds.size() - 1 : at(op.round);
    seconds[round] += to_seconds(op.algorithms[at(algorithms[i])].time);
  }
  return seconds;
}

double seconds_of(const Program& program, const std::vector<std::int32_t>& algorithms) {
  double sum = 0;
  for (const double s : seconds_of_rounds(program, algorithms)) sum += s;
  return sum;
}

/// The first round makes sums of gradients, the others add to them: all but the first are equal.
double seconds_one_by_one(const nn::Graph& graph, const Machine& machine, std::int64_t batch) {
  const Program three = program_of(graph, machine, 3, 1);
  const auto rounds = seconds_of_rounds(three, fastest_algorithms(three));
  return rounds[0] + rounds[1] * static_cast<double>(batch - 2) + rounds[2] + rounds[3];
}

struct Memory {
  Bytes tensors = 0;
  Bytes workspace = 0;
};

/// All at once but the optimizer's state, and the largest workspace.
Memory ideal_memory(const Program& program, const std::vector<std::int32_t>& algorithms) {
  Memory memory;
  for (const Tensor& t : program.tensors) {
    if (t.kind != TensorKind::optimizer_state) memory.tensors += t.bytes;
  }
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Bytes workspace = program.ops[i].algorithms[at(algorithms[i])].workspace;
    memory.workspace = std::max(memory.workspace, workspace);
  }
  return memory;
}

void print_networks(const Machine& machine) {
  fmt::print("{:16} {:>6} {:>9} {:>10} {:>10} {:>10} {:>12}\n", "network", "batch", "fastest",
             "algorithms", "memory", "workspace", "sub-batch 1");
  double slower = 0, share = 0, one_by_one = 0;
  for (const Network& network : kNetworks) {
    const auto graph = nn::build_model(network.model);
    if (!graph) {
      fmt::print(stderr, "{}\n", graph.error().message);
      std::exit(1);
    }
    const Program program = program_of(*graph, machine, network.batch, 0);
    const auto fastest = fastest_algorithms(program);
    const double fast = seconds_of(program, fastest);
    const double ratio = seconds_of(program, least_workspace_algorithms(program)) / fast;
    const Memory memory = ideal_memory(program, fastest);
    const double of_ideal = static_cast<double>(memory.workspace) /
                            static_cast<double>(memory.tensors + memory.workspace);
    const double singly = seconds_one_by_one(*graph, machine, network.batch) / fast;
    fmt::print("{:16} {:6} {:7.2f} s {:9.2f}x {:>10} {:8.1f} % {:11.2f}x\n", network.model,
               network.batch, fast, ratio, format_bytes(memory.tensors + memory.workspace),
               100 * of_ideal, singly);
    slower += ratio / std::size(kNetworks);
    share += of_ideal / std::size(kNetworks);
    one_by_one += singly / std::size(kNetworks);
  }
  fmt::print("{:33} {:9.2f}x {:10} {:8.1f} % {:11.2f}x\n", "average", slower, "", 100 * share,
             one_by_one);
  fmt::print("{:33} {:9.2f}x {:10} {:8.1f} % {:11.2f}x\n", "published", 2.7, "", 15.0, 3.74);
}

void print_images_a_second(const Machine& machine) {
  struct Measured {
    Network network;
    double images;  ///< mean of Google's and Amazon's machines, synthetic data
  };
  constexpr Measured kMeasured[] = {
      {{"vgg16-imagenet", 32}, 35.9}, {{"resnet50", 64}, 51.7}, {{"resnet152", 32}, 19.9}};
  for (const auto& [network, images] : kMeasured) {
    const Program program = program_of(*nn::build_model(network.model), machine, network.batch, 0);
    const double seconds = seconds_of(program, fastest_algorithms(program));
    fmt::print("{:16} batch {:3}: {:6.1f} images/s, measured on a K80's GPU {:6.1f}\n",
               network.model, network.batch, static_cast<double>(network.batch) / seconds, images);
  }
}

}  // namespace
}  // namespace tidepool

int main(int argc, char** argv) {
  using namespace tidepool;
  Machine machine = *find_machine("k40");
  if (argc == 4) {
    machine.compute.max_efficiency = std::atof(argv[1]);
    machine.compute.half_flops = std::atof(argv[2]) * 1e9;
    const double precomp = std::atof(argv[3]);
    machine.compute.algorithms = {{"implicit-precomp-gemm", precomp},
                                  {"gemm", 0.9 * precomp},
                                  {"winograd", 2.25 * precomp},
                                  {"fft", 1.5 * precomp}};
  }
  print_networks(machine);
  print_images_a_second(machine);
}
