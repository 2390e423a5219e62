#include "job.h"

#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <thread>
#include <utility>

#include "base/random.h"
#include "cache.h"
#include "ir/load_profile.h"
#include "nn/data/cifar10.h"
#include "nn/data/fashion_mnist.h"
#include "nn/data/synthetic.h"
#include "nn/models/model.h"
#include "planners/none.h"
#include "prompt_end.h"
#include "runtime/profiler.h"

namespace tidepool::cli {
namespace {

constexpr std::int64_t kSyntheticSamples = 10'000;
constexpr std::int64_t kSyntheticTestSamples = 1'000;
constexpr int kReferenceIterations = 3;
constexpr std::string_view kReferenceModel = "vgg16";
constexpr std::int64_t kReferenceBatch = 100;

Result<std::unique_ptr<nn::Dataset>> load_data(const JobArguments& arguments,
                                               const nn::ModelInfo& model, nn::Split split) {
  if (arguments.data == "synthetic") {
    // Made from a seed: the test split is a part of the training samples.
    const bool train = split == nn::Split::train;
    return std::make_unique<nn::SyntheticDataset>(model.image, model.classes,
                                                  train ? kSyntheticSamples : kSyntheticTestSamples,
                                                  arguments.seed);
  }
  if (arguments.data == "cifar10") {
    if (arguments.data_dir.empty()) {
      return fail(ErrorCode::usage,
                  "--data cifar10 needs --data-dir: the folder with data_batch_1.bin");
    }
    return nn::load_cifar10(split, arguments.data_dir);
  }
  const std::string folder =
      arguments.data_dir.empty() ? nn::kFashionMnistFolder : arguments.data_dir;
  auto data = nn::load_fashion_mnist(split, folder);
  if (!data && arguments.data_dir.empty()) {
    Error error = data.error();
    error.message += "; install Debian's package dataset-fashion-mnist or use --data synthetic";
    return fail(std::move(error));
  }
  return data;
}

std::filesystem::path cache_file(const Job& job) {
  const std::filesystem::path folder = cache_folder();
  if (folder.empty()) return {};
  std::uint64_t hash = 0;
  for (const char c : job.fingerprint()) hash = hash_combine(hash, static_cast<unsigned char>(c));
  return folder / fmt::format("reference-{:016x}.json", hash);
}

int threads_of(const JobArguments& arguments, const DeviceKind& kind) {
  return arguments.threads > 0 ? arguments.threads : kind.default_threads();
}

/// Once a process.
void warn_of_too_many(int threads) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());  // 0: not known
  static bool warned = false;
  if (cores == 0 || threads <= cores || std::exchange(warned, true)) return;
  inform("tidepool: --threads {} is more than the {} core{} here: they wait for each other\n",
         threads, cores, cores == 1 ? "" : "s");
}

Result<const nn::KernelList*> kernels_of(const JobArguments& arguments, const DeviceKind& kind) {
  if (kind.choose_kernels != nullptr) return &kind.choose_kernels(arguments.kernels);
  if (arguments.kernels.tf32 || arguments.kernels.nondeterministic) {
    return fail(
        ErrorCode::usage,
        fmt::format("--tf32 and --allow-nondeterministic mean nothing to device '{}'", kind.name));
  }
  return &kind.kernels(threads_of(arguments, kind));
}

std::string fingerprint_of(const DeviceKind& kind, const nn::KernelList& kernels, int threads) {
  return fmt::format("{}; kernels {}", kind.make({threads, {}, {}})->fingerprint(), kernels.name);
}

/// `algorithm` of every op that has it, its least-workspace one otherwise.
std::vector<std::int32_t> variant(const Program& program, int algorithm) {
  std::vector<std::int32_t> choice = least_workspace_algorithms(program);
  for (std::size_t i = 0; i < choice.size(); ++i) {
    if (algorithm < static_cast<int>(program.ops[i].algorithms.size())) {
      choice[i] = static_cast<std::int32_t>(algorithm);
    }
  }
  return choice;
}

Result<Bytes> measure_variant(Job& job, const Machine& machine, const Budget& budget,
                              std::vector<std::int32_t> algorithms, int iterations, double from,
                              double to, ProgressSink& progress) {
  const auto lowered = kept_plan(job.program(), machine, std::move(algorithms), budget);
  if (!lowered) return fail(ErrorCode::infeasible, "the budget is too small to keep everything");
  const PromptEnd prompt;
  auto runner = job.make_runner();
  if (!runner) return fail(runner.error());
  const std::unique_ptr<Device> device = job.make_device(machine);
  Executor executor(job.program(), lowered->plan, *device, **runner);
  executor.enter();
  executor.run(1, interrupted);  // caches, first touches
  executor.record_timings();
  executor.run(iterations, interrupted, [&](std::int64_t i, Nanos) {
    const double done = static_cast<double>(i) / iterations;
    progress.update(from + (to - from) * done, fmt::format("profiling {}: iteration {}/{}",
                                                           job.program().name, i, iterations));
  });
  if (interrupted()) return fail(ErrorCode::interrupted, "interrupted while profiling");
  apply_timings(lowered->plan, executor.timings(), job.program());
  return executor.arena_peak();
}

}  // namespace

void add_job_options(CLI::App& command, JobArguments& a) {
  command.add_option("model", a.model, "model to train (see `tidepool models`)")->required();
  command.add_option("--batch", a.batch, "samples in an iteration")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  command
      .add_option("--sub-batch", a.sub_batch,
                  "samples a round: an iteration runs its batch in rounds and sums their "
                  "gradients (default: the whole batch)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  command.add_flag("--sub-batch-statistics", a.sub_batch_statistics,
                   "let batch norm take its statistics over a round, which changes training");
  command.add_option("--device", a.device, "device to run on")->capture_default_str();
  command.add_option("--threads", a.threads, "compute threads (default: cores - 1)")
      ->check(CLI::Range(1, 1024));
  command.add_option("--link", a.link,
                     "speed of the emulated link, bytes per second and direction, such as 1GB "
                     "(default: in the ratio of a GTX 1080 Ti)");
  command.add_option("--storage", a.storage, "activations: in-place or separate")
      ->check(CLI::IsMember({"in-place", "separate"}))
      ->capture_default_str();
  command.add_option("--data", a.data, "fashion-mnist, cifar10 or synthetic")
      ->check(CLI::IsMember({"fashion-mnist", "cifar10", "synthetic"}))
      ->capture_default_str();
  command.add_option("--data-dir", a.data_dir, "folder of the data set's files");
  command.add_option("--seed", a.seed, "of initial weights, sample order and dropout")
      ->capture_default_str();
  command
      .add_option("--learning-rate", a.learning_rate,
                  "a number or a schedule in epochs: step:0.1,30,60  cosine:0.1  "
                  "warmup:1+cosine:0.1")
      ->capture_default_str();
  command.add_option("--optimizer", a.optimizer, "sgd (momentum 0.9) or adamw")
      ->check(CLI::IsMember({"sgd", "adamw"}))
      ->capture_default_str();
  command.add_option("--weight-decay", a.weight_decay, "(default: 5e-4 with sgd, 0.01 with adamw)")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--algorithms", a.algorithms, "least-workspace or fastest")
      ->check(CLI::IsMember({"least-workspace", "fastest"}))
      ->capture_default_str();
  command.add_flag("--tf32", a.kernels.tf32,
                   "GPUs: convolutions and linear layers may round their inputs to TF32");
  command.add_flag(
      "--allow-nondeterministic", a.kernels.nondeterministic,
      "GPUs: also measure and list algorithms that do not repeat their bits; no policy "
      "picks one while the op has another");
}

void add_size_options(CLI::App& command, BudgetArguments& a) {
  command
      .add_option("--budget", a.device,
                  "device bytes: 400MiB, 2GB, or a percentage of the unlimited peak such as 60%")
      ->capture_default_str();
  command.add_option("--host-budget", a.host,
                     "host bytes for what leaves the device (default: no limit)");
}

void add_budget_options(CLI::App& command, BudgetArguments& a) {
  add_size_options(command, a);
  command.add_option("--planner", a.planner, "see `tidepool planners`")->capture_default_str();
  add_time_limit_option(command, a);
}

void add_time_limit_option(CLI::App& command, BudgetArguments& a) {
  add_duration_option(command, "--time-limit", a.time_limit,
                      "what a planner that searches may take, such as 500ms, 10s or 2min; Ctrl-C "
                      "ends it early");
}

PlannerOptions planner_options(const JobArguments& job, const BudgetArguments& budget) {
  PlannerOptions options;
  options.seed = job.seed;
  options.algorithms =
      job.algorithms == "fastest" ? AlgorithmPolicy::fastest : AlgorithmPolicy::least_workspace;
  options.time_limit = budget.time_limit;
  options.stop = interrupted;
  return options;
}

Result<Job> Job::make(const JobArguments& arguments) {
  Job job;
  job.arguments_ = arguments;
  const auto model = nn::find_model(arguments.model);
  if (!model) return fail(model.error());
  const auto kind = find_device_kind(arguments.device);
  if (!kind) return fail(kind.error());
  job.kind_ = *kind;
  const auto kernels = kernels_of(arguments, *job.kind_);
  if (!kernels) return fail(kernels.error());
  job.kernels_ = *kernels;
  job.threads_ = threads_of(arguments, *job.kind_);
  if (job.kind_->calibrate == nullptr) warn_of_too_many(job.threads_);
  job.policy_ = arguments.algorithms == "fastest" ? AlgorithmPolicy::fastest
                                                  : AlgorithmPolicy::least_workspace;
  if (!arguments.link.empty() && job.kind_->calibrate != nullptr) {
    return fail(
        ErrorCode::usage,
        fmt::format("--link is for emulated devices; that of '{}' is measured", job.kind_->name));
  }
  if (!arguments.link.empty()) {
    if (auto link = parse_bytes(arguments.link); !link || *link <= 0) {
      return fail(ErrorCode::usage,
                  fmt::format("--link '{}' is not a speed in bytes per second such "
                              "as 1GB",
                              arguments.link));
    }
  }
  auto data = load_data(arguments, **model, nn::Split::train);
  if (!data) return fail(data.error());
  job.data_ = std::move(*data);
  if (job.data_->size() < arguments.batch) {
    return fail(ErrorCode::usage,
                fmt::format("--batch {} is more than the {} samples of {}", arguments.batch,
                            job.data_->size(), job.data_->name()));
  }
  auto rate = nn::parse_learning_rate(arguments.learning_rate);
  if (!rate) return fail(rate.error());
  job.learning_rate_ = *rate;
  auto graph = nn::build_model(arguments.model, {job.data_->image(), job.data_->classes()});
  if (!graph) return fail(graph.error());
  job.graph_ = std::make_unique<nn::Graph>(std::move(*graph));
  nn::TrainingOptions& options = job.options_;
  options.batch = arguments.batch;
  options.sub_batch = arguments.sub_batch;
  options.sub_batch_statistics = arguments.sub_batch_statistics;
  options.storage = arguments.storage == "separate" ? nn::Storage::separate : nn::Storage::in_place;
  const bool adamw = arguments.optimizer == "adamw";
  options.optimizer = adamw ? nn::Optimizer::adamw : nn::Optimizer::sgd;
  if (adamw) options.weight_decay = 0.01F;
  if (arguments.weight_decay >= 0)
    options.weight_decay = static_cast<float>(arguments.weight_decay);
  auto training = nn::build_training_program(*job.graph_, options, *job.kernels_);
  if (!training) return fail(training.error());
  job.training_ = std::make_unique<nn::TrainingProgram>(std::move(*training));
  return job;
}

Result<std::unique_ptr<nn::TrainingRunner>> Job::make_runner(std::int64_t iterations,
                                                             std::int64_t first_iteration) const {
  nn::TrainingSettings settings;
  settings.seed = arguments_.seed;
  settings.first_iteration = first_iteration;
  const nn::TrainingLength length{iterations_per_epoch(),
                                  iterations > 0 ? iterations : iterations_per_epoch()};
  settings.learning_rate = [rate = learning_rate_, length](std::int64_t i) {
    return rate.at(i, length);
  };
  return nn::TrainingRunner::create(*training_, *kernels_, *data_, settings);
}

Result<Program> Job::in_rounds(std::int64_t sub_batch, bool statistics) const {
  nn::TrainingOptions options = options_;
  options.sub_batch = sub_batch;
  options.sub_batch_statistics = statistics;
  auto training = nn::build_training_program(*graph_, options, *kernels_);
  if (!training) return fail(training.error());
  return std::move(training->program);
}

Result<nn::TrainingProgram> Job::make_evaluation() const {
  // No more samples at once than training takes, so that it fits where training does.
  nn::TrainingOptions options = options_;
  options.batch = training_->program.sub_batch;
  return nn::build_evaluation_program(*graph_, options, *kernels_);
}

Result<std::unique_ptr<nn::Dataset>> Job::load_test_data() const {
  const auto model = nn::find_model(arguments_.model);
  if (!model) return fail(model.error());
  return load_data(arguments_, **model, nn::Split::test);
}

std::vector<std::pair<std::string, std::string>> Job::settings() const {
  const JobArguments& a = arguments_;
  return {{"model", a.model},
          {"batch", fmt::format("{}", a.batch)},
          {"sub_batch", fmt::format("{}", training_->program.sub_batch)},
          {"data", data_->name()},
          {"seed", fmt::format("{}", a.seed)},
          {"optimizer", a.optimizer},
          {"weight_decay", fmt::format("{}", options_.weight_decay)},
          {"learning_rate", a.learning_rate},
          {"storage", a.storage},
          {"algorithms", a.algorithms},
          {"fingerprint", fingerprint()}};
}

std::unique_ptr<Device> Job::make_device(const Machine& machine) const {
  return kind_->make({threads_, machine.to_host(), machine.to_device()});
}

std::string Job::fingerprint() const { return fingerprint_of(*kind_, *kernels_, threads_); }

Result<std::string> device_fingerprint(const JobArguments& arguments) {
  const auto kind = find_device_kind(arguments.device);
  if (!kind) return fail(kind.error());
  const auto kernels = kernels_of(arguments, **kind);
  if (!kernels) return fail(kernels.error());
  return fingerprint_of(**kind, **kernels, threads_of(arguments, **kind));
}

bool Job::is_reference() const {
  return arguments_.model == kReferenceModel && arguments_.batch == kReferenceBatch &&
         training_->program.rounds() == 1 && policy_ == AlgorithmPolicy::least_workspace &&
         arguments_.storage == "in-place";
}

Result<Machine> Job::machine(Nanos reference) const {
  if (kind_->calibrate != nullptr) return kind_->calibrate();
  // GTX 1080 Ti: 13.2 GB/s and 81.57 ms for a VGG16 iteration at batch 100 (SmartPool/AutoSwap,
  // published).
  constexpr double kReferenceBandwidth = 13.2e9;
  constexpr double kReferenceSeconds = 81.57e-3;
  constexpr Nanos kLatency{50'000};  // waking a copy thread
  double speed = kReferenceBandwidth * kReferenceSeconds / to_seconds(reference);
  if (!arguments_.link.empty()) {
    const auto link = parse_bytes(arguments_.link);
    if (!link) return fail(link.error());
    speed = static_cast<double>(*link);
  }
  Machine machine;
  machine.name = kind_->name;
  machine.description = kind_->description;
  machine.set_alignment(kind_->make({threads_, {}, {}})->alignment());
  machine.to_host() = {speed, kLatency};
  machine.to_device() = {speed, kLatency};
  return machine;
}

Bytes unlimited_peak(const Program& program, Bytes alignment) {
  const AccessIndex index(program);
  return load_profile(program, index, alignment, least_workspace_algorithms(program)).peak;
}

Result<Budget> resolve_budget(const BudgetArguments& arguments, const Program& program,
                              Bytes alignment) {
  const auto size = parse_size_or_percent(arguments.device);
  if (!size) return fail(size.error());
  Budget budget;
  budget.device = size->resolve(unlimited_peak(program, alignment));
  if (!arguments.host.empty()) {
    const auto host = parse_bytes(arguments.host);
    if (!host) return fail(host.error());
    if (*host == 0) return fail(ErrorCode::usage, "--host-budget must be above 0");
    budget.host = *host;
  }
  const SmallestBudget smallest = smallest_budget(program, alignment);
  if (budget.device < smallest.bytes) {
    return fail(Error{ErrorCode::infeasible,
                      fmt::format("budget {} B ({}) cannot be met: {}", budget.device,
                                  format_bytes(budget.device), explain(smallest, program)),
                      smallest.bytes});
  }
  return budget;
}

Result<Planned> unlimited_plan(const Program& program, const Machine& machine,
                               const AlgorithmChoice& choice) {
  return plan_with(choice, *make_none(), program, machine, no_limit(), {});
}

Budget no_limit() { return {std::numeric_limits<Bytes>::max() / 4, 0}; }

std::vector<std::vector<std::int32_t>> variants_to_measure(const Program& program,
                                                           AlgorithmPolicy policy, bool all) {
  if (!all && policy != AlgorithmPolicy::fastest) return {least_workspace_algorithms(program)};
  std::size_t count = 1;
  for (const Op& op : program.ops) count = std::max(count, op.algorithms.size());
  if (count == 1) return {least_workspace_algorithms(program)};
  std::vector<std::vector<std::int32_t>> variants;
  for (std::size_t v = 0; v < count; ++v) {
    variants.push_back(variant(program, static_cast<int>(v)));
  }
  return variants;
}

std::optional<Lowered> kept_plan(const Program& program, const Machine& machine,
                                 std::vector<std::int32_t> algorithms, const Budget& budget) {
  Lowering lowering(program, machine);
  const Strategy strategy = keep_everything(program, lowering.index(), std::move(algorithms));
  LowerOptions options;
  options.allow_streaming = false;
  auto lowered = lowering.lower(strategy, budget, options);
  if (!lowered) return std::nullopt;
  return std::move(*lowered);
}

Result<Bytes> measure(Job& job, const Machine& machine, const Budget& budget, int iterations,
                      bool all, ProgressSink& progress) {
  const auto variants = variants_to_measure(job.program(), job.policy(), all);
  const auto share = [&](std::size_t v) {
    return static_cast<double>(v) / static_cast<double>(variants.size());
  };
  Bytes peak = 0;
  for (std::size_t v = 0; v < variants.size(); ++v) {
    auto used = measure_variant(job, machine, budget, variants[v], iterations, share(v),
                                share(v + 1), progress);
    if (!used) return used;
    peak = std::max(peak, *used);
  }
  return peak;
}

Result<Nanos> reference_iteration(const Job& job, ProgressSink& progress) {
  const std::filesystem::path file = cache_file(job);
  if (!file.empty() && std::filesystem::exists(file)) {
    if (const auto text = read_file(file)) {
      const auto known = read_json(*text, file.string(), [](const JsonCursor& json) {
        return Nanos{json["iteration_ns"].integer(1)};
      });
      if (known) return *known;  // a damaged cache file is measured anew and replaced
    }
  }
  JobArguments arguments;
  arguments.model = kReferenceModel;
  arguments.batch = kReferenceBatch;
  arguments.device = job.kind().name;
  arguments.threads = job.threads();
  arguments.link = "1GB";  // not used: nothing is copied but the inputs
  arguments.data = "synthetic";
  arguments.kernels = job.arguments().kernels;
  auto reference = Job::make(arguments);
  if (!reference) return fail(reference.error());
  const auto machine = reference->machine(Nanos{1});
  if (!machine) return fail(machine.error());
  if (auto done = measure(*reference, *machine, no_limit(), kReferenceIterations, false, progress);
      !done) {
    return fail(done.error());
  }
  const Nanos time = compute_time(reference->program(), AlgorithmPolicy::least_workspace);
  remember_reference(job, time);
  return time;
}

Result<Machine> device_machine(const Job& job, ProgressSink& progress) {
  Nanos reference{1};
  if (job.needs_reference()) {
    const auto known = reference_iteration(job, progress);
    if (!known) return fail(known.error());
    reference = *known;
  }
  return job.machine(reference);
}

void remember_reference(const Job& job, Nanos iteration) {
  const std::filesystem::path file = cache_file(job);
  if (file.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  const Json json = {{"fingerprint", job.fingerprint()}, {"iteration_ns", iteration.count()}};
  (void)write_file(file.string(), json.dump(2) + "\n");
}

Nanos compute_time(const Program& program, AlgorithmPolicy policy) {
  return tidepool::compute_time(program, choose_algorithms(program, policy));
}

}  // namespace tidepool::cli
