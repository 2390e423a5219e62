#include "job/job_options.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "job/data_sets.h"
#include "job/device_kind.h"
#include "job/job.h"

namespace tidepool {
namespace {

using Type = OptionType;
constexpr std::string_view kAuto = "auto";
constexpr std::int64_t kMostSamples = std::int64_t{1} << 20;

std::int64_t whole(const OptionValue& value) { return std::get<std::int64_t>(value); }
const std::string& text(const OptionValue& value) { return std::get<std::string>(value); }

/// Values of an enumeration by their names.
template <auto... kChoices>
struct Named {
  static std::span<const std::string_view> names() {
    static const std::array<std::string_view, sizeof...(kChoices)> kNames{to_text(kChoices)...};
    return kNames;
  }
  static auto of(const OptionValue& value) {
    const std::array all{kChoices...};
    for (const auto choice : all) {
      if (to_text(choice) == text(value)) return choice;
    }
    return all.front();
  }
};
using Storages = Named<nn::Storage::in_place, nn::Storage::separate, nn::Storage::relu_in_place>;
using Optimizers = Named<nn::Optimizer::sgd, nn::Optimizer::adamw>;
using Accumulations = Named<Accumulation::overlapped, Accumulation::naive>;
using Policies =
    Named<AlgorithmPolicy::least_workspace, AlgorithmPolicy::heuristic, AlgorithmPolicy::fastest>;

std::span<const std::string_view> algorithm_names() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names{kAuto};
    for (const std::string_view name : Policies::names()) names.push_back(name);
    return names;
  }();
  return kNames;
}

constexpr OptionRecord kSubBatch{
    .name = "sub_batch", .type = Type::whole_number, .least = 1, .most = kMostSamples};

Result<void> check_sub_batch(std::string_view given) {
  if (given == kAuto || parse_option(kSubBatch, given)) return {};
  return fail(ErrorCode::usage,
              fmt::format("'{}' is not {}, nor auto", given, values_of(kSubBatch)));
}

Result<void> check_learning_rate(std::string_view given) {
  if (auto rate = nn::parse_learning_rate(given); !rate) return fail(rate.error());
  return {};
}

std::span<const std::string_view> data_set_names() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const DataSetInfo& info : data_sets()) names.push_back(info.name);
    return names;
  }();
  return kNames;
}

JobOption work(OptionRecord record, void (*set)(JobSpec& job, const OptionValue& value),
               OptionLevel level = OptionLevel::usual) {
  record.group = OptionGroup::work;
  record.level = level;
  return {record, set};
}

JobOption more_work(OptionRecord record, void (*set)(JobSpec& job, const OptionValue& value)) {
  return work(record, set, OptionLevel::advanced);
}

void set_sub_batch(JobSpec& job, const OptionValue& value) {
  job.choose_sub_batch = text(value) == kAuto;
  if (job.choose_sub_batch) return;
  job.sub_batch = whole(parse_option(kSubBatch, text(value)).value());
}

void set_algorithms(JobSpec& job, const OptionValue& value) {
  job.choose_algorithms = text(value) == kAuto;
  if (!job.choose_algorithms) job.algorithms = Policies::of(value);
}

void add_sizes(std::vector<JobOption>& all) {
  all.push_back(work({.name = "batch",
                      .type = Type::whole_number,
                      .least = 1,
                      .most = kMostSamples,
                      .usual = "100",
                      .help = "samples in an iteration; of K-means its points (default there: "
                              "60000)"},
                     [](JobSpec& job, const OptionValue& value) { job.batch = whole(value); }));
  all.push_back(work({.name = "sub_batch",
                      .type = Type::text,
                      .usual = "the whole batch",
                      .help = "samples a round: an iteration runs its batch in rounds and sums "
                              "their gradients, which gives other last bits; auto: the planner "
                              "chooses by times, where the model has no batch norm",
                      .form = "N|auto",
                      .sound = check_sub_batch},
                     set_sub_batch));
  all.push_back(
      more_work({.name = "sub_batch_statistics",
                 .help = "let batch norm take its statistics over a round, which changes training"},
                [](JobSpec& job, const OptionValue& value) {
                  job.sub_batch_statistics = std::get<bool>(value);
                }));
  all.push_back(work({.name = "sequence",
                      .type = Type::whole_number,
                      .least = 1,
                      .most = std::int64_t{1} << 16,
                      .usual = "the model's, see `tidepool models`",
                      .help = "tokens of a sample, of models of text"},
                     [](JobSpec& job, const OptionValue& value) { job.sequence = whole(value); }));
  all.push_back(
      more_work({.name = "clusters",
                 .type = Type::whole_number,
                 .least = 1,
                 .most = std::int64_t{1} << 16,
                 .usual = "the model's: 1024 of kmeans",
                 .help = "clusters of K-means"},
                [](JobSpec& job, const OptionValue& value) { job.clusters = whole(value); }));
}

void add_device(std::vector<JobOption>& all) {
  const auto kinds = device_kinds();
  all.push_back(
      work({.name = "device",
            .type = Type::text,
            .usual = kinds.empty() ? std::string_view() : kinds.front().name,
            .help = "device to run on (see `tidepool machines`)"},
           [](JobSpec& job, const OptionValue& value) { job.device.name = text(value); }));
  all.push_back(work({.name = "threads",
                      .type = Type::whole_number,
                      .least = 1,
                      .most = 1024,
                      .usual = "cores - 1",
                      .help = "compute threads; other numbers give other last bits"},
                     [](JobSpec& job, const OptionValue& value) {
                       job.device.threads = static_cast<int>(whole(value));
                     }));
  all.push_back(
      more_work({.name = "link",
                 .type = Type::size,
                 .least = 1,
                 .usual = "in the ratio of a GTX 1080 Ti",
                 .help = "speed of the emulated link, bytes per second and direction, such as 1GB"},
                [](JobSpec& job, const OptionValue& value) { job.device.link = whole(value); }));
  all.push_back(more_work(
      {.name = "tf32",
       .help = "GPUs: convolutions, linear layers and attention may round their inputs to TF32"},
      [](JobSpec& job, const OptionValue& value) {
        job.device.kernels.tf32 = std::get<bool>(value);
      }));
  all.push_back(more_work(
      {.name = "nondeterministic",
       .help = "GPUs: also measure and list algorithms that do not repeat their bits; no policy "
               "picks one while the op has another",
       .option = "allow-nondeterministic"},
      [](JobSpec& job, const OptionValue& value) {
        job.device.kernels.nondeterministic = std::get<bool>(value);
      }));
  all.push_back(
      more_work({.name = "storage",
                 .type = Type::choice,
                 .usual = Storages::names().front(),
                 .help = "of activations; relu-in-place is PyTorch's",
                 .choices = Storages::names()},
                [](JobSpec& job, const OptionValue& value) { job.storage = Storages::of(value); }));
}

void add_data(std::vector<JobOption>& all) {
  all.push_back(work({.name = "data",
                      .type = Type::choice,
                      .usual = "text for models of text, else fashion-mnist",
                      .help = "data set",
                      .choices = data_set_names()},
                     [](JobSpec& job, const OptionValue& value) { job.data.name = text(value); }));
  all.push_back(
      work({.name = "data_folder",
            .type = Type::text,
            .usual = "where Debian has them",
            .help = "folder of the data set's files; of text, those that end in .txt",
            .option = "data-dir"},
           [](JobSpec& job, const OptionValue& value) { job.data.folder = text(value); }));
}

void add_training(std::vector<JobOption>& all) {
  all.push_back(work({.name = "learning_rate",
                      .type = Type::text,
                      .usual = "0.02",
                      .help = "a number or a schedule in epochs: step:0.1,30,60  cosine:0.1  "
                              "warmup:1+cosine:0.1",
                      .sound = check_learning_rate},
                     [](JobSpec& job, const OptionValue& value) {
                       job.learning_rate = nn::parse_learning_rate(text(value)).value();
                     }));
  all.push_back(
      work({.name = "optimizer",
            .type = Type::choice,
            .usual = Optimizers::names().front(),
            .help = "sgd (momentum 0.9) or adamw",
            .choices = Optimizers::names()},
           [](JobSpec& job, const OptionValue& value) { job.optimizer = Optimizers::of(value); }));
  all.push_back(more_work(
      {.name = "weight_decay",
       .type = Type::number,
       .usual = "5e-4 with sgd, 0.01 with adamw",
       .help = "how much weights shrink in a step, over the learning rate"},
      [](JobSpec& job, const OptionValue& value) { job.weight_decay = std::get<double>(value); }));
}

void add_kernels(std::vector<JobOption>& all) {
  all.push_back(work({.name = "algorithms",
                      .type = Type::choice,
                      .usual = "heuristic on GPUs, else least-workspace",
                      .help = "of ops that have several, which differ in their last bits: "
                              "least-workspace; heuristic, what a GPU's library expects to be "
                              "fastest; fastest, by measured times; auto, what the planner chooses "
                              "by times, where it does",
                      .choices = algorithm_names()},
                     set_algorithms));
  all.push_back(more_work(
      {.name = "workspace_limit",
       .type = Type::size,
       .usual = "no limit",
       .help = "no algorithm takes more workspace, such as 64MiB; what an op needs at least is not "
               "refused"},
      [](JobSpec& job, const OptionValue& value) { job.workspace_limit = whole(value); }));
}

}  // namespace

std::span<const JobOption> job_options() {
  static const std::vector<JobOption> kAll = [] {
    std::vector<JobOption> all;
    add_sizes(all);
    add_device(all);
    add_data(all);
    add_training(all);
    add_kernels(all);
    return all;
  }();
  return kAll;
}

std::span<const JobOption> parallel_options() {
  static const std::array kAll{
      work({.name = "devices",
            .type = Type::whole_number,
            .least = 1,
            .most = kMostDevices,
            .usual = "1",
            .help = "devices in this machine that share each batch in equal parts, each inside the "
                    "budget; on the CPU so many emulated ones, whose links share one bus; "
                    "`sub_batch` is of a part"},
           [](JobSpec& job, const OptionValue& value) {
             job.devices = static_cast<std::int32_t>(whole(value));
           }),
      more_work({.name = "accumulation",
                 .type = Type::choice,
                 .usual = Accumulations::names().front(),
                 .help = "with `devices`, how gradients are summed: overlapped (by the host, each "
                         "as soon as it is there) or naive (by device 0 when all is done)",
                 .choices = Accumulations::names()},
                [](JobSpec& job, const OptionValue& value) {
                  job.accumulation = Accumulations::of(value);
                })};
  return kAll;
}

}  // namespace tidepool
