#include "spec_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>
#include <utility>

#include "context.h"
#include "job/data_sets.h"
#include "job/device_kind.h"
#include "job/job.h"
#include "job/job_spec.h"
#include "nn/models/model.h"
#include "planning/planning_spec.h"

namespace tidepool::cli {
namespace {

constexpr AlgorithmPolicy kPolicies[] = {AlgorithmPolicy::least_workspace,
                                         AlgorithmPolicy::heuristic, AlgorithmPolicy::fastest};

/// One of several values by name.
template <class Value>
CLI::Option* add_choice_option(CLI::App& command, const std::string& name, Value& value,
                               const std::vector<Value>& choices, const std::string& help) {
  std::vector<std::string> names;
  for (const Value choice : choices) names.emplace_back(to_text(choice));
  const auto choose = [&value, choices](const std::string& text) {
    for (const Value choice : choices) {
      if (to_text(choice) == text) value = choice;
    }
  };
  return command.add_option_function<std::string>(name, choose, help)
      ->check(CLI::IsMember(names))
      ->default_str(std::string(to_text(value)));
}

void add_data_options(CLI::App& command, DataSpec& data) {
  std::vector<std::string> names;
  std::string list;
  for (const DataSetInfo& info : data_sets()) {
    const bool last = names.size() + 1 == data_sets().size();
    list += names.empty() ? "" : last ? " or " : ", ";
    list += names.emplace_back(info.name);
  }
  command
      .add_option("--data", data.name,
                  list + " (default: text for models of text, else fashion-mnist)")
      ->check(CLI::IsMember(names));
  command.add_option("--data-dir", data.folder,
                     "folder of the data set's files; of text, those that end in .txt (default: "
                     "where Debian has them)");
}

void add_device_options(CLI::App& command, DeviceSpec& device) {
  const auto kinds = device_kinds();
  command.add_option("--device", device.name, "device to run on (see `tidepool machines`)")
      ->default_str(kinds.empty() ? "" : kinds.front().name);
  command
      .add_option("--threads", device.threads,
                  "compute threads (default: cores - 1); other numbers give other last bits")
      ->check(whole_number(1, 1024));
  const auto link = [&device](const std::string& text) {
    const auto speed = parse_bytes(text);
    if (!speed || *speed <= 0) {
      throw CLI::ValidationError(
          "--link", fmt::format("'{}' is not a speed in bytes per second such as 1GB", text));
    }
    device.link = *speed;
  };
  command.add_option_function<std::string>(
      "--link", link,
      "speed of the emulated link, bytes per second and direction, such as 1GB "
      "(default: in the ratio of a GTX 1080 Ti)");
  command.add_flag(
      "--tf32", device.kernels.tf32,
      "GPUs: convolutions, linear layers and attention may round their inputs to TF32");
  command.add_flag(
      "--allow-nondeterministic", device.kernels.nondeterministic,
      "GPUs: also measure and list algorithms that do not repeat their bits; no policy "
      "picks one while the op has another");
}

void add_optimizer_options(CLI::App& command, JobSpec& job) {
  const auto rate = [&job](const std::string& text) {
    const auto parsed = nn::parse_learning_rate(text);
    if (!parsed) throw CLI::ValidationError("--learning-rate", parsed.error().message);
    job.learning_rate = *parsed;
  };
  command
      .add_option_function<std::string>(
          "--learning-rate", rate,
          "a number or a schedule in epochs: step:0.1,30,60  cosine:0.1  warmup:1+cosine:0.1")
      ->default_str(to_text(job.learning_rate));
  using nn::Optimizer;
  add_choice_option(command, "--optimizer", job.optimizer,
                    std::vector{Optimizer::sgd, Optimizer::adamw}, "sgd (momentum 0.9) or adamw");
  command.add_option_function<double>(
      "--weight-decay",
      [&job](double decay) {
        if (!(decay >= 0)) {
          throw CLI::ValidationError("--weight-decay", fmt::format("{} is below 0", decay));
        }
        job.weight_decay = decay;
      },
      "(default: 5e-4 with sgd, 0.01 with adamw)");
}

void add_sub_batch_option(CLI::App& command, JobSpec& job) {
  const auto parse = [&job](const std::string& text) {
    job.choose_sub_batch = text == "auto";
    if (job.choose_sub_batch) return;
    const auto size = parse_whole_number(text, 1, std::int64_t{1} << 20);
    if (!size) throw CLI::ValidationError("--sub-batch", size.error().message + ", nor auto");
    job.sub_batch = *size;
  };
  command
      .add_option_function<std::string>(
          "--sub-batch", parse,
          "samples a round: an iteration runs its batch in rounds and sums their gradients, which "
          "gives other last bits; auto: the planner chooses by times, where the model has no batch "
          "norm (default: the whole batch)")
      ->type_name("N|auto");
}

void add_algorithms_option(CLI::App& command, JobSpec& job) {
  std::vector<std::string> names{"auto"};
  for (const AlgorithmPolicy policy : kPolicies) names.emplace_back(to_text(policy));
  const auto choose = [&job](const std::string& text) {
    job.choose_algorithms = text == "auto";
    for (const AlgorithmPolicy policy : kPolicies) {
      if (to_text(policy) == text) job.algorithms = policy;
    }
  };
  command
      .add_option_function<std::string>(
          "--algorithms", choose,
          "of ops that have several, which differ in their last bits: least-workspace; heuristic, "
          "what a GPU's library expects to be fastest; fastest, by measured times; auto, what the "
          "planner chooses by times, where it does (default: heuristic on GPUs, else "
          "least-workspace)")
      ->check(CLI::IsMember(names));
}

void add_workspace_limit_option(CLI::App& command, Bytes& most) {
  const auto parse = [&most](const std::string& text) {
    const auto bytes = parse_bytes(text);
    if (!bytes) throw CLI::ValidationError("--workspace-limit", bytes.error().message);
    most = *bytes;
  };
  command
      .add_option_function<std::string>(
          "--workspace-limit", parse,
          "no algorithm takes more workspace, such as 64MiB; what an op needs at least is not "
          "refused (default: no limit)")
      ->type_name("SIZE");
}

}  // namespace

void state_sub_batch(CLI::App& command) {
  command.get_option("--sub-batch")
      ->description(
          "samples a round: an iteration runs its batch in rounds and sums their gradients "
          "(default: the whole batch)")
      ->type_name("N");
}

Result<void> check_sub_batch_is_stated(const JobSpec& job, const char* command) {
  if (!job.choose_sub_batch) return {};
  return fail(ErrorCode::usage,
              fmt::format("--sub-batch auto: `tidepool {}` has no planner that could choose; give "
                          "a number of samples",
                          command));
}

void add_job_options(CLI::App& command, JobSpec& job) {
  // Callbacks run in the order of the options: a stated batch comes after the model's own.
  const auto own_batch = [&job](const std::string& name) {
    const auto model = nn::find_model(name);
    if (model && (*model)->batch > 0) job.batch = (*model)->batch;
  };
  command.add_option("model", job.model, "model to train (see `tidepool models`)")
      ->required()
      ->each(own_batch);
  command
      .add_option("--batch", job.batch,
                  "samples in an iteration; of K-means its points (default there: 60000)")
      ->check(whole_number(1, std::int64_t{1} << 20))
      ->capture_default_str();
  add_sub_batch_option(command, job);
  command.add_flag("--sub-batch-statistics", job.sub_batch_statistics,
                   "let batch norm take its statistics over a round, which changes training");
  command
      .add_option("--sequence", job.sequence,
                  "tokens of a sample, of models of text (default: the model's, see `tidepool "
                  "models`)")
      ->check(whole_number(1, std::int64_t{1} << 16));
  command
      .add_option("--clusters", job.clusters,
                  "clusters of K-means (default: the model's: 1024 of kmeans)")
      ->check(whole_number(1, std::int64_t{1} << 16));
  add_device_options(command, job.device);
  using nn::Storage;
  add_choice_option(command, "--storage", job.storage,
                    std::vector{Storage::in_place, Storage::separate, Storage::relu_in_place},
                    "activations: in-place, separate, or relu-in-place, as PyTorch has them");
  add_data_options(command, job.data);
  add_seed_option(command, job.seed,
                  "of initial weights, sample order, dropout and skipped branches");
  add_optimizer_options(command, job);
  add_algorithms_option(command, job);
  add_workspace_limit_option(command, job.workspace_limit);
}

void add_devices_options(CLI::App& command, JobSpec& job) {
  command
      .add_option("--devices", job.devices,
                  "devices in this machine that share each batch in equal parts, each inside the "
                  "budget; on the CPU so many emulated ones, whose links share one bus; "
                  "--sub-batch is of a part")
      ->check(whole_number(1, kMostDevices))
      ->capture_default_str();
  add_choice_option(command, "--accumulation", job.accumulation,
                    std::vector{Accumulation::overlapped, Accumulation::naive},
                    "with --devices, how gradients are summed: overlapped (by the host, each as "
                    "soon as it is there) or naive (by device 0 when all is done)");
  command.get_option("--accumulation")->needs("--devices");
}

CLI::Option* add_size_option(CLI::App& command, const std::string& name, SizeOrPercent& size,
                             const std::string& help) {
  const auto parse = [&size, name](const std::string& text) {
    const auto parsed = parse_size_or_percent(text);
    if (!parsed) throw CLI::ValidationError(name, parsed.error().message);
    size = *parsed;
  };
  auto* option = command.add_option_function<std::string>(name, parse, help)->type_name("SIZE");
  if (size.percent >= 0) option->default_str(fmt::format("{:.6g}%", size.percent));
  return option;
}

void add_size_options(CLI::App& command, BudgetSpec& budget) {
  add_size_option(command, "--budget", budget.device,
                  "device bytes: 400MiB, 2GB, or a percentage of the unlimited peak load such as "
                  "60%; 100% leaves no room for gaps between addresses (default: no limit)");
  add_host_budget_option(command, budget);
}

void add_host_budget_option(CLI::App& command, BudgetSpec& budget) {
  const auto host = [&budget](const std::string& text) {
    const auto bytes = parse_bytes(text);
    if (!bytes) throw CLI::ValidationError("--host-budget", bytes.error().message);
    if (*bytes == 0) throw CLI::ValidationError("--host-budget", "must be above 0");
    budget.host = *bytes;
  };
  command
      .add_option_function<std::string>("--host-budget", host,
                                        "host bytes for what leaves the device (default: no limit)")
      ->type_name("SIZE");
}

void add_planner_options(CLI::App& command, PlannerSpec& planner) {
  command.add_option("--planner", planner.name, "see `tidepool planners`")->capture_default_str();
  add_search_options(command, planner);
}

void add_search_options(CLI::App& command, PlannerSpec& planner) {
  add_duration_option(command, "--time-limit", planner.time_limit,
                      "10 s; auto: 2 s; dqn, dqn-swap: 60 s",
                      "what a planner that searches may take, and once more the optimality gap, "
                      "such as 500ms, 10s or 2min; Ctrl-C "
                      "ends it early");
  command
      .add_option("--evaluations", planner.evaluations,
                  "auto, tide, home and random end after so many trials of strategies, however "
                  "long they take, "
                  "and autoswap goes through all of its own: the same plan on every machine; "
                  "--time-limit is then for the optimality gap only")
      ->check(whole_number(1, std::numeric_limits<std::int64_t>::max()))
      ->type_name("N");
  command
      .add_option("--pso-particles", planner.swarm.particles,
                  "home: particles of its swarm (default: by the size of the network; published: "
                  "500)")
      ->check(whole_number(1, 100'000))
      ->type_name("N");
  command
      .add_option("--pso-iterations", planner.swarm.iterations,
                  "home: iterations of its swarm, within --time-limit (default: until it has "
                  "converged; published: 500)")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N");
  command.add_flag("--modnn-weights-leave", planner.modnn.weights_leave,
                   "modnn: weights leave the device like other tensors, whatever the budget "
                   "(default: where they have to)");
  command.add_flag("--modnn-one-stream", planner.modnn.one_data_stream,
                   "modnn: one stream for copies of both directions, as published (default: as "
                   "many as the machine has channels)");
}

namespace {

/// From 0 to 1; CLI::Range takes "nan" for that.
CLI::Validator finite_share() {
  return {[](const std::string& text) -> std::string {
            double value = 0;
            const auto [rest, error] =
                std::from_chars(text.data(), text.data() + text.size(), value);
            const bool whole = error == std::errc{} && rest == text.data() + text.size();
            if (whole && value >= 0 && value <= 1) return {};
            return fmt::format("'{}' is no number from 0 to 1", text);
          },
          "", "from 0 to 1"};
}

}  // namespace

void add_learning_options(CLI::App& command, LearningSpec& learning) {
  command
      .add_option("--episodes", learning.episodes,
                  "dqn, dqn-swap: episodes from which the network learns, within --time-limit "
                  "(default: the planner's own number)")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N");
  command.add_flag("--dqn-published", learning.published,
                   "dqn, dqn-swap: the paper's algorithm alone: targets of one reward, no plans of "
                   "other planners to begin with, no mutations of the best");
  command
      .add_option("--dqn-reach", learning.reach,
                  "dqn, dqn-swap: rewards in a target, each discounted once more, and then the "
                  "value of what follows; 0: all to the end (default: 0; published: 1)")
      ->check(whole_number(0, 1'000'000))
      ->type_name("N");
  command
      .add_option("--dqn-discount", learning.discount, "dqn, dqn-swap: of rewards (default: 0.99)")
      ->check(finite_share())
      ->type_name("NUMBER");
  command
      .add_option("--dqn-width", learning.width,
                  "dqn, dqn-swap: of the network's node states (default and published: 64)")
      ->check(whole_number(1, 256))
      ->type_name("N");
  command
      .add_option("--dqn-rate", learning.rate,
                  "dqn, dqn-swap: rate of learning; 0: nothing is learned (default: 0.003)")
      ->check(finite_share())
      ->type_name("NUMBER");
  command.add_flag("--dqn-uniform", learning.uniform,
                   "dqn, dqn-swap: all actions at random, without a network");
  command
      .add_option("--network", learning.network,
                  "dqn, dqn-swap: go on from this saved network, perhaps of another model; auto: "
                  "search on from one episode of it, on top of its own time")
      ->type_name("FILE");
  command
      .add_option("--save-network", learning.save_network,
                  "dqn, dqn-swap: write the network, as it is at the end or on Ctrl-C")
      ->type_name("FILE");
  command
      .add_option("--episode-log", learning.episode_log,
                  "dqn, dqn-swap: write a line for each episode: episode, steps, return, overhead, "
                  "best, loss (CSV)")
      ->type_name("FILE");
}

void add_cache_options(CLI::App& command, CacheSpec& cache) {
  CLI::Option* off =
      command.add_flag("--no-cache", cache.off,
                       "neither use nor keep files in $XDG_CACHE_HOME/tidepool (else "
                       "~/.cache/tidepool)");
  command
      .add_flag("--reprofile", cache.reprofile,
                "measure although the cache has a profile, and replace it")
      ->excludes(off);
}

void add_replan_option(CLI::App& command, CacheSpec& cache) {
  command.add_flag("--replan", cache.replan, "plan although the cache has a plan, and replace it")
      ->excludes(command.get_option("--no-cache"));
}

void refuse_ignored(CLI::App& command, std::vector<Ignored> pairs) {
  command.parse_complete_callback([&command, pairs = std::move(pairs)] {
    const auto given = [&](const std::string& name) {
      const CLI::Option* option = command.get_option_no_throw(name);
      return option != nullptr && option->count() > 0;
    };
    for (const Ignored& pair : pairs) {
      if (!given(pair.option)) continue;
      for (const std::string& other : pair.others) {
        if (given(other)) throw CLI::ExcludesError(pair.option, other);
      }
    }
  });
}

}  // namespace tidepool::cli
