#include "catalogue.h"

namespace tidepool::reproduce {
namespace {

// Of the tables and figures of SmartPool and AutoSwap.
constexpr std::string_view kFitText =
    "efficiency: fitted to table I's cudaMalloc times over SmartPool's speed-ups, its eight "
    "networks; copies: the paper's published coefficients, not fitted";
constexpr std::string_view kTraceText =
    "vgg16-trace has measured op times; blocks that outlive its iteration are moved once in each "
    "(57 MiB): a launch and twice their bytes at the machine's bandwidth, counted in its times";
constexpr std::string_view kZooText =
    "networks of the zoo as programs: separate storage, no workspaces";
constexpr std::string_view kPublishedText = "published, publ.: the paper's figures";
constexpr std::string_view kSystemsText =
    "autoswap-published: the published method as implemented here; autoswap, tide: this "
    "project's; fluid: no schedule that swaps does better";

Reproduction table1() {
  return {
      "table1",
      "Table I of SmartPool/AutoSwap: memory pools against cudaMalloc",
      run_table1,
      {"--models", "--data"},
      "",
      "a packing",
      "--models vgg11,vgg16",
      {"recordings: the rules of what a layer allocates (src/trace/layer_recording.h) were "
       "read off the measured trace of VGG16: that row is fitted, the other seven are "
       "predictions; residual blocks do not occur in the trace, what they allocate is assumed",
       "op times: the efficiency's two constants are fitted to the published native ms / "
       "SmartPool's speedup of these eight networks, so that native ms less the calls is no "
       "prediction; calls, their cost and copies (the paper's published coefficients) are not "
       "fitted",
       "publ. is the published figure of the column before it; ratios are to the peak load of "
       "the same work",
       "SmartPool's published ratio, and ours without a star, places one iteration: gradients "
       "of weights outlive it and move once in each (move_ms in --json, counted in its "
       "speedup); with a star two iterations are placed, in which they alternate and nothing "
       "moves",
       "ns: measured here and now: the median of a malloc or free of the same recording, over "
       "and over, by a Session that has planned it in more budget than it takes, by the malloc "
       "of this process, by jemalloc and tcmalloc where they are installed (-: not; packages "
       "libjemalloc2 and libtcmalloc-minimal4), by CnMem's policy as simulated here; memory is "
       "not touched, and no driver or GPU is in it; all other columns are replayed or simulated",
       "99th percentiles and means are in --json; the Session's have the moves of gradients "
       "that outlive the iteration, a copy in RAM each, which a median does not show",
       kTraceText, kZooText}};
}

Reproduction table2() {
  return {"table2",
          "Table II of SmartPool/AutoSwap: load reduction without overhead",
          run_table2,
          {"--models", "--data"},
          "",
          "a linear program, and of a search of tide",
          "--models vgg16,resnet18-cifar --time-limit 30",
          {kPublishedText, kSystemsText, kFitText, kTraceText, kZooText}};
}

Reproduction fig8() {
  return {
      "fig8",
      "Figure 8 of SmartPool/AutoSwap: memory load of VGG16",
      run_fig8,
      {"--data"},
      "",
      "",
      "--json",
      {"published: 95 % of the peak after 24 ms; the curves are in --json as points [ms, bytes]",
       kFitText, kTraceText}};
}

Reproduction fig9() {
  return {"fig9",
          "Figure 9 of SmartPool/AutoSwap: overhead of VGG16 under load limits",
          run_fig9,
          {"--data"},
          "sizes such as 280MiB",
          "a plan",
          "--data ../shared/data --limits 280MiB,400MiB",
          {kPublishedText, kSystemsText,
           "publ. BO is the least of the four published scores in all 40 rows of the published "
           "data: they show no combination that is better than the best score alone",
           "overheads in ms; the published ones add up lateness and do not shift later ops, ours "
           "are of the timing engine that plans run by",
           "tide: its energy weights were first set by hand on this trace; on mlp, vgg11, resnet18 "
           "and resnet50 halving or doubling one of them gains nothing beyond noise, so they stay; "
           "the trace is the test",
           kFitText, kTraceText}};
}

Reproduction fig10() {
  return {"fig10",
          "Figure 10 of SmartPool/AutoSwap: footprint against CnMem",
          run_fig10,
          {"--models", "--batches"},
          "",
          "a footprint, and of a linear program",
          "--models resnet50-cifar --batches 50,100",
          {"fluid: no swapping has less overhead with the published reduction",
           "published: at least 60 % less footprint than CnMem at less than 15 % overhead, up to a "
           "third without overhead",
           kFitText, kZooText}};
}

Reproduction fig11() {
  return {"fig11",
          "Figure 11 of SmartPool/AutoSwap: overhead and footprint reduction of four systems",
          run_fig11,
          {"--models"},
          "shares of the peak such as 50%",
          "a plan",
          "--models vgg16 --limits 60%,40%",
          {"the paper's figure has no printed values; published: what its text says, on other "
           "frameworks and their own baselines",
           "reduction: of the footprint with everything kept, addresses included; the paper has "
           "each system beside its own framework",
           "fits: by what the planner decides; the streaming schedule does not count",
           "batch 100, as published", kFitText, kZooText}};
}

Reproduction home() {
  return {
      "home",
      "HOME, section 4: largest batches, throughput and where the time goes",
      run_home,
      {"--models", "--systems"},
      "",
      "a plan",
      "--models vgg16 --systems pytorch,home --time-limit 200ms",
      {"published, publ.: the paper's figures, measured on its machine; ours are of plans with "
       "addresses on the timing engine; auto is this project's",
       "samples/s: at the largest batch found here, at the published largest batch (- where "
       "that does not fit here), and at the fastest one that was tried",
       "pytorch: fits where PyTorch's caching allocator, replayed on the program's mallocs and "
       "frees, reserves no more than the budget; what is not in use it gives back and asks again, "
       "as PyTorch does",
       "programs: ReLU overwrites its input, as in torchvision, and its backward op reads its "
       "output alone; the rest is a tensor of its own; no workspaces"}};
}

Reproduction modnn() {
  return {
      "modnn",
      "moDNN, section 7: memory, time and copies in budgets, and each technique alone",
      run_modnn,
      {"--models"},
      "budgets such as 6GB besides the card's",
      "a plan",
      "--networks resnet34,vgg16-imagenet --limits 4GB,2GB",
      {"figures 15 and 16, power and energy, are measured on GPUs only",
       "the machine's constants were fitted to the paper's ablations of algorithms (2.7x) and "
       "of rounds of one sample (3.74x, with sums of gradients as ops of their own) and to a "
       "K80's speed, and frozen before any plan was made (src/cost/machine.cpp, Note [Constants "
       "of k40])",
       "programs: in-place storage, one output for a convolution and its batch norm as the paper "
       "counts, gradient descent without momentum",
       "one_stream: copies out and in take turns, as published"}};
}

Reproduction dqn() {
  return {
      "dqn",
      "Deep Q-network, figure 5: overhead against memory reduction of eight workloads",
      run_dqn,
      {"--models", "--episodes"},
      "shares of the peak such as 50%",
      "a plan",
      "--workloads vgg16,unet --limits 60% --episodes 20 -o curves.json",
      {"the paper's figure has no printed values; published: what its text says, on another "
       "framework",
       "-: no plan of its own there (neither the streaming schedule counts nor that everything "
       "leaves, where no episode has addresses); published: of the baselines TFLMS alone runs "
       "LSTM, and none K-means and stochastic depth",
       "superneurons: the fastest of its modes, each of them in the rows as `modes` (published: "
       "no recomputation alone on ResNet; here there is)",
       "memonger's plan is that of least memory it finds, in every budget; published points "
       "with fewer layers recomputed are not made",
       "a plan for less memory is one for more: rows of larger budgets may repeat it, with its "
       "own footprint and planning time",
       "every op runs its fastest algorithm whatever the workspace, with all planners; overhead "
       "is over the time of the same without a budget",
       "programs: separate storage (kmeans has no activations)"}};
}

}  // namespace

const std::vector<Reproduction>& catalogue() {
  static const std::vector<Reproduction> all{table1(), table2(), fig8(),  fig9(), fig10(),
                                             fig11(),  home(),   modnn(), dqn()};
  return all;
}

}  // namespace tidepool::reproduce
